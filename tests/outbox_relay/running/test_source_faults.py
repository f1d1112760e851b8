"""What the relay does, and says, when MongoDB or its secret is not as it should be."""

from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from outbox_api.checkpoint import Checkpoint, ClusterTime, Position
from outbox_dev.mongo import MongoDB
from outbox_dev.processes import Processes


def test_a_missing_secret_is_named_and_the_relay_goes_on_when_it_appears(
    outbox: Any, new_relay: Any, tmp_path: Path
) -> None:
    uri = tmp_path / "secret-orders-mongo" / "uri"
    relay = new_relay(outbox, uri_file=uri).start()
    report = relay.wait_for_report("Retrying", "SecretMissing")
    assert "create secret orders-mongo with the key uri" in report["message"]
    assert relay.page("/livez")[0] == 200, "liveness does not depend on MongoDB"
    status, why = relay.page("/readyz")
    assert status == 503
    assert "secret orders-mongo" in why
    assert relay.metric("outbox_relay_lag_seconds") is None, "lag is absent until it is known"
    outbox.emit(10)
    uri.parent.mkdir()
    uri.write_text(outbox.mongodb.uri)
    relay.wait_for_report("Streaming", "Streaming")
    assert outbox.wait_until_delivered().holds


def test_a_wrong_password_is_told_bounded_and_healed_by_the_file(
    processes: Processes, outbox: Any, new_relay: Any, tmp_path: Path, unique: str
) -> None:
    secured = MongoDB.start(processes, tmp_path / "mongo-auth", auth=True, name=f"mongo-auth-{unique}")
    try:
        roles = [{"role": "readWrite", "db": outbox.database}]
        right = secured.add_user("relay", "right", roles)
        outbox.mongodb, outbox.client = secured, secured.client()
        uri = tmp_path / "uri-auth"
        uri.write_text(secured.uri_for("relay", "wrong"))
        relay = new_relay(outbox, uri_file=uri).start()
        report = relay.wait_for_report("Retrying", "SourceAuthenticationFailed")
        assert "wrong" not in report["message"]
        attempts = sum(line.get("event") == "source failed" for line in relay.lines())
        assert attempts < 100
        with secured.client() as admin:
            connections = admin.admin.command("serverStatus")["connections"]["current"]
        assert connections < 40, "failed attempts leak no connections"
        uri.write_text(right)
        relay.wait_for_report("Streaming", "Streaming")
        outbox.emit(50)
        assert outbox.wait_until_delivered().holds
    finally:
        outbox.client.close()
        secured.stop()


def test_a_standalone_server_is_told_with_what_to_do(
    mongodb_standalone: MongoDB, outbox: Any, new_relay: Any, tmp_path: Path
) -> None:
    uri = tmp_path / "uri-standalone"
    uri.write_text(mongodb_standalone.uri)
    relay = new_relay(outbox, uri_file=uri).start()
    report = relay.wait_for_report("Stalled", "ChangeStreamUnavailable")
    assert "replica set" in report["message"]
    assert "Polling" in report["message"]


def test_a_server_that_restarts_loses_nothing(outbox: Any, new_relay: Any, eventually: Any) -> None:
    relay = new_relay(outbox).start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(100)
    node = outbox.mongodb.nodes[0]
    node.kill()
    relay.wait_for_report("Retrying", "SourceUnreachable")
    node.start()
    relay.wait_for_report("Streaming", "Streaming", within=60)
    outbox.emit(100)
    assert outbox.wait_until_delivered().holds
    eventually(lambda: outbox.unpublished() == 0, "everything marked")


@pytest.mark.timeout(180)
def test_a_fail_over_loses_nothing_and_keeps_the_order(
    mongodb_replica_set: MongoDB, outbox: Any, new_relay: Any, tmp_path: Path
) -> None:
    with mongodb_replica_set.client() as client:
        outbox.mongodb, outbox.client = mongodb_replica_set, client
        client[outbox.database].create_collection("outbox")
        uri = tmp_path / "uri-three"
        # None of these may weaken what the relay promises.
        uri.write_text(f"{mongodb_replica_set.uri}&readPreference=secondary&w=1&readConcernLevel=local")
        relay = new_relay(outbox, uri_file=uri).start()
        relay.wait_for_report("Streaming", "Streaming")
        outbox.emit(200)
        primary = mongodb_replica_set.primary()
        primary.kill()
        outbox.emit(200)
        primary.start()
        outbox.emit(200)
        assert outbox.wait_until_delivered().holds


def test_a_collection_that_is_dropped_and_made_again_goes_on(outbox: Any, new_relay: Any, eventually: Any) -> None:
    relay = new_relay(outbox).start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(100)
    eventually(lambda: outbox.arrived() == 100, "100 records")
    outbox.collection.drop()
    outbox.emit(100)
    verdict = outbox.wait_until_delivered()
    assert verdict.holds
    # A collection renamed onto the outbox brings documents that no insert event tells of.
    waiting = outbox.client[outbox.database]["prepared"]
    waiting.insert_many([outbox.document(f"b{number}") for number in range(50)])
    waiting.rename("outbox", dropTarget=True)
    eventually(lambda: outbox.arrived() >= 250, "what came by the rename", within=60)


def test_cursors_killed_while_idle_do_not_stop_the_position(outbox: Any, new_relay: Any, eventually: Any) -> None:
    relay = new_relay(outbox, checkpoint={"idleInterval": "1s"}).start()
    relay.wait_for_report("Streaming", "Streaming")
    admin = outbox.client.admin
    for _ in range(3):
        cursors = admin.aggregate(
            [{"$currentOp": {"idleCursors": True, "allUsers": True}}, {"$match": {"cursor": {"$exists": True}}}]
        )
        for operation in cursors:
            if operation.get("ns", "").startswith(outbox.database):
                outbox.client[outbox.database].command(
                    "killCursors", "outbox", cursors=[operation["cursor"]["cursorId"]]
                )
        outbox.emit(20)
        eventually(lambda: outbox.unpublished() == 0, "everything marked")
    assert outbox.wait_until_delivered().holds


def test_an_idle_position_moves_on(outbox: Any, new_relay: Any, tmp_path: Path, eventually: Any) -> None:
    def position() -> ClusterTime | None:
        found = Checkpoint.model_validate_json((tmp_path / "checkpoint.json").read_text()).position
        return found and ClusterTime.parse(found.cluster_time)

    relay = new_relay(outbox, checkpoint={"idleInterval": "1s"}).start()
    relay.wait_for_report("Streaming", "Streaming")
    first = eventually(position, "a position")
    outbox.client[outbox.database]["other"].insert_one({})
    eventually(lambda: position() > first, "a newer position")


@pytest.mark.timeout(240)
def test_a_lost_history_is_told_and_nothing_is_passed_over(
    processes: Processes, outbox: Any, new_relay: Any, tmp_path: Path, unique: str, eventually: Any
) -> None:
    small = MongoDB.start(processes, tmp_path / "mongo-small", oplog_size_mb=5, name=f"mongo-small-{unique}")
    try:
        with small.client() as client:
            outbox.mongodb, outbox.client = small, client
            client[outbox.database].create_collection("outbox")
            relay = new_relay(outbox).start()
            relay.wait_for_report("Streaming", "Streaming")
            outbox.emit(10)
            eventually(lambda: outbox.unpublished() == 0, "everything marked")
            relay.terminate()
            position = _position(tmp_path)
            outbox.emit(10)
            eventually(lambda: _rolled_over(client, position), "an oplog that rolled over", within=120)
            relay.start()
            report = relay.wait_for_report("Stalled", "HistoryLost", within=60)
            assert "oplog" in report["message"]
            assert outbox.arrived() == 10
            assert _position(tmp_path) == position
    finally:
        small.stop()


def _position(folder: Path) -> Position:
    position = Checkpoint.model_validate_json((folder / "checkpoint.json").read_text()).position
    assert position is not None
    return position


def _rolled_over(client: MongoClient[dict[str, Any]], position: Position) -> bool:
    """Write elsewhere; say whether the oplog no longer reaches back to the position.

    It is cut only up to the last checkpoint of the storage, which a server writes every minute.
    """
    client["elsewhere"]["filler"].insert_many([{"filler": "f" * 100_000} for _ in range(10)])
    oldest = client["local"]["oplog.rs"].find_one(sort=[("$natural", 1)])
    return oldest is not None and oldest["ts"].time > ClusterTime.parse(position.cluster_time).seconds
