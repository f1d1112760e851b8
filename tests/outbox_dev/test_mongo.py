import pytest
from pymongo.errors import OperationFailure

from outbox_dev.mongo import MongoDB
from outbox_dev.mongod import mongod
from outbox_dev.processes import Processes
from outbox_dev.progress import SetupError


def test_a_replica_set_of_one_takes_transactions_and_streams_them(mongodb: MongoDB, database: str) -> None:
    with mongodb.client() as client:
        orders, outbox = client[database].orders, client[database].outbox
        with outbox.watch() as stream:
            with client.start_session() as session, session.start_transaction():
                orders.insert_one({"_id": 1}, session=session)
                outbox.insert_one({"_id": 2}, session=session)
            assert stream.next()["fullDocument"] == {"_id": 2}


def test_a_node_comes_back_with_its_data_after_a_kill(mongodb: MongoDB, database: str) -> None:
    with mongodb.client() as client:
        client[database].orders.insert_one({"_id": 1})
        mongodb.nodes[0].kill()
        mongodb.nodes[0].start()
        assert client[database].orders.find_one() == {"_id": 1}


def test_a_three_node_set_elects_another_primary_when_the_primary_dies(
    mongodb_replica_set: MongoDB, database: str
) -> None:
    first = mongodb_replica_set.primary()
    with mongodb_replica_set.client() as client:
        client[database].orders.insert_one({"_id": 1})
        first.kill()
        assert mongodb_replica_set.primary() != first
        assert client[database].orders.find_one() == {"_id": 1}


def test_a_standalone_server_refuses_change_streams(mongodb_standalone: MongoDB, database: str) -> None:
    with mongodb_standalone.client() as client:
        client[database].outbox.insert_one({"_id": 1})
        with pytest.raises(OperationFailure, match="only supported on replica sets"):
            client[database].outbox.watch()


def test_with_auth_each_user_has_exactly_the_roles_given(
    processes: Processes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mongodb = MongoDB.start(processes, tmp_path_factory.mktemp("auth"), auth=True, name="mongo-auth")
    try:
        uri = mongodb.add_user("reader", "p@ss/word", [{"role": "read", "db": "shop"}])
        with MongoDB(uri, mongodb.nodes, mongodb.replica_set).client() as client:
            assert client.shop.orders.find_one() is None
            with pytest.raises(OperationFailure, match="not authorized"):
                client.shop.orders.insert_one({})
        wrong = mongodb.uri_for("reader", "wrong")
        with (
            MongoDB(wrong, mongodb.nodes, mongodb.replica_set).client() as client,
            pytest.raises(OperationFailure, match="Authentication failed"),
        ):
            client.shop.orders.find_one()
    finally:
        mongodb.stop()


def test_a_mongod_named_by_the_environment_that_does_not_run_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_DEV_MONGOD", "/bin/false")
    with pytest.raises(SetupError, match="/bin/false does not run here"):
        mongod()
