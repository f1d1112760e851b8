"""Events flow, in order, and are settled as configured."""

import json
from pathlib import Path
from typing import Any

import pytest

from outbox_api.checkpoint import Checkpoint


def test_events_arrive_in_order_per_key_and_are_marked(outbox: Any, new_relay: Any, eventually: Any) -> None:
    relay = new_relay(outbox).start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(3_000, aggregates=50)
    verdict = outbox.wait_until_delivered()
    assert verdict.holds
    assert verdict.duplicates == 0
    eventually(lambda: outbox.unpublished() == 0, "everything marked")


def test_events_that_were_there_before_the_first_start_arrive_in_order(outbox: Any, new_relay: Any) -> None:
    outbox.emit(2_500, aggregates=50)
    relay = new_relay(outbox).start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(500, aggregates=50)
    verdict = outbox.wait_until_delivered()
    assert verdict.holds
    assert verdict.duplicates == 0


@pytest.mark.parametrize("after_publish", ["Delete", "Keep"])
def test_events_are_deleted_or_kept_as_asked(outbox: Any, new_relay: Any, eventually: Any, after_publish: str) -> None:
    relay = new_relay(outbox, afterPublish=after_publish).start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(500)
    assert outbox.wait_until_delivered().holds
    if after_publish == "Delete":
        eventually(lambda: outbox.collection.count_documents({}) == 0, "an empty outbox")
    else:
        assert outbox.unpublished() == 500


def test_a_restart_goes_on_from_the_position_without_repeats(outbox: Any, new_relay: Any, tmp_path: Path) -> None:
    relay = new_relay(outbox, afterPublish="Keep").start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(500)
    outbox.wait_until_delivered()
    code, _ = relay.terminate()
    assert code == 0
    checkpoint = Checkpoint.model_validate_json((tmp_path / "checkpoint.json").read_text())
    assert checkpoint.position is not None
    assert checkpoint.position.token is not None

    outbox.emit(500)
    relay.start().wait_for_report("Streaming", "Streaming")
    verdict = outbox.wait_until_delivered()
    assert verdict.holds
    assert verdict.duplicates == 0


def test_an_insert_that_carries_the_mark_already_is_not_sent(outbox: Any, new_relay: Any, eventually: Any) -> None:
    relay = new_relay(outbox).start()
    relay.wait_for_report("Streaming", "Streaming")
    restored = outbox.document("a1")
    outbox.collection.insert_one({**restored, "published_at": restored["occurred_at"]})
    outbox.emit(1)
    eventually(lambda: outbox.arrived() == 1, "one record")
    assert outbox.verdict().holds, "the record is the one without the mark"


def test_dates_that_python_cannot_hold_do_not_cost_their_batch(outbox: Any, new_relay: Any) -> None:
    from bson.datetime_ms import DatetimeMS

    relay = new_relay(outbox).start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(10, occurred_at=DatetimeMS(253_402_300_800_000))  # the year 10000
    outbox.emit(10)
    assert outbox.wait_until_delivered().holds


def test_health_and_metrics_tell_what_happens(outbox: Any, new_relay: Any, eventually: Any) -> None:
    relay = new_relay(outbox).start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(200)
    outbox.wait_until_delivered()
    assert relay.page("/livez") == (200, "ok\n")
    eventually(lambda: relay.page("/readyz") == (200, "ok\n"), "ready")
    eventually(lambda: relay.metric("outbox_relay_published_total") == 200, "200 published")
    assert relay.metric("outbox_relay_leader") == 1
    assert relay.metric("outbox_relay_commit_to_ack_seconds_count") == 200
    eventually(lambda: relay.metric("outbox_relay_lag_seconds") == 0, "no lag")
    assert relay.metric("outbox_relay_producer_rebuilds_total") == 0
    assert relay.page("/nowhere")[0] == 404


def test_no_secret_is_logged(outbox: Any, new_relay: Any, tmp_path: Path) -> None:
    uri = tmp_path / "secret-uri"
    uri.write_text("mongodb://someone:hunter2@127.0.0.1:1/?serverSelectionTimeoutMS=100")
    relay = new_relay(outbox, uri_file=uri).start()
    report = relay.wait_for_report("Retrying", "SourceUnreachable")
    assert "hunter2" not in json.dumps(report)
    uri.write_text("mongodb://someone:hunter2@[broken/")
    relay.wait_for_report("Retrying", "SourceURIInvalid")
    assert "hunter2" not in relay.log.read_text()
