from collections.abc import Iterable
from pathlib import Path

import pytest

from outbox_dev.delivery import Committed, Delivery, Verdict, committed_by, committed_in
from outbox_dev.kafka_io import Record
from outbox_dev.mongo import MongoDB


def event(aggregate: str, version: int) -> Committed:
    return Committed(f"{aggregate}{version}", aggregate, version)


def record(event_id: str | None, offset: int, partition: int = 0, topic: str = "orders") -> Record:
    headers = (("type", b"Placed"),) + ((("id", event_id.encode()),) if event_id else ())
    return Record(topic, partition, offset, b"key", b"value", headers, 0)


def judge(committed: Iterable[Committed], records: Iterable[Record]) -> Verdict:
    delivery = Delivery()
    delivery.committed(committed)
    for each in records:
        delivery.arrived(each)
    return delivery.verdict()


def test_all_there_and_in_order_holds() -> None:
    verdict = judge([event("a", 1), event("b", 1), event("a", 2)], [record("b1", 0), record("a1", 1), record("a2", 2)])
    assert verdict.holds
    assert str(verdict) == "3 committed, 0 missing, 0 out of order, 0 unknown, 0 duplicates"


def test_what_did_not_arrive_is_missing() -> None:
    verdict = judge([event("a", 1), event("a", 2)], [record("a2", 0)])
    assert verdict.missing == [event("a", 1)]
    assert not verdict.holds


def test_a_first_appearance_after_a_later_event_is_an_inversion() -> None:
    verdict = judge([event("a", 1), event("a", 2)], [record("a2", 0), record("a1", 1)])
    assert [str(inversion) for inversion in verdict.inversions] == ["a: version 1 after 2 at orders/0 offset 1"]
    assert not verdict.holds


def test_each_event_that_was_overtaken_counts() -> None:
    events = [event("a", version) for version in (1, 2, 3)]
    assert len(judge(events, [record("a3", 0), record("a1", 1), record("a2", 2)]).inversions) == 2


def test_a_repeat_is_a_duplicate_and_no_inversion() -> None:
    verdict = judge([event("a", 1), event("a", 2)], [record("a1", 0), record("a2", 1), record("a1", 2)])
    assert verdict.holds
    assert verdict.duplicates == 1


def test_an_aggregate_in_two_partitions_has_no_order() -> None:
    verdict = judge([event("a", 1), event("a", 2)], [record("a1", 0), record("a2", 0, partition=1)])
    assert len(verdict.inversions) == 1


def test_order_is_within_a_topic() -> None:
    verdict = judge([event("a", 1), event("a", 2)], [record("a2", 0), record("a1", 0, topic="payments")])
    assert verdict.holds


@pytest.mark.parametrize("event_id", ["x1", None])
def test_a_record_that_nobody_committed_is_unknown(event_id: str | None) -> None:
    verdict = judge([event("a", 1)], [record("a1", 0), record(event_id, 1)])
    assert verdict.unknown == [event_id]
    assert not verdict.holds


def test_a_record_may_be_read_before_its_commit_is_known() -> None:
    delivery = Delivery()
    assert delivery.arrived(record("a1", 0))
    assert not delivery.arrived(record("a1", 1))
    delivery.committed([event("a", 1), event("a", 2)])
    assert delivery.outstanding == 1
    delivery.arrived(record("a2", 2))
    assert delivery.outstanding == 0
    assert delivery.verdict().holds


def test_the_outbox_collection_tells_what_was_committed(mongodb: MongoDB, database: str) -> None:
    with mongodb.client() as client:
        outbox = client[database].outbox
        outbox.insert_one({"_id": "a1", "aggregate": "Order", "aggregate_id": "a", "version": 1, "payload": {}})
        assert committed_in(outbox) == [event("a", 1)]


def test_the_order_services_journal_tells_what_was_committed(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    line = '{"outcome": "%s", "id": "a%d", "aggregate_id": "a", "version": %d, "event_type": "OrderPlaced"}\n'
    journal.write_text(line % ("committed", 1, 1) + line % ("aborted", 2, 2))
    assert committed_by(journal) == [event("a", 1)]
