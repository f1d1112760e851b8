"""Events are cut out of a batch exactly as a decoder would read them."""

from datetime import UTC, datetime
from typing import Any

import bson
import pytest
from bson import Timestamp
from bson.datetime_ms import DatetimeMS

from outbox_relay.source.change_events import ChangeEvents

WALL = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)


def event(number: int, document: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "_id": {"_data": f"82{number:016X}"},
        "clusterTime": Timestamp(1_000 + number, number),
        "wallTime": WALL,
        "fullDocument": {"_id": number, "text": "x" * number} if document is None else document,
        **fields,
    }


def cut(*events: dict[str, Any]) -> ChangeEvents:
    return ChangeEvents(b"".join(map(bson.encode, events)))


def test_a_batch_of_the_usual_form_is_cut_into_its_events() -> None:
    events = cut(*(event(number) for number in range(1, 4)))
    assert len(events) == 3
    assert [bson.decode(document or b"") for document in events.documents] == [
        {"_id": number, "text": "x" * number} for number in range(1, 4)
    ]
    assert events.cluster_times == [(1_001, 1), (1_002, 2), (1_003, 3)]
    assert events.wall_times == [int(WALL.timestamp() * 1000)] * 3
    assert events.token(1) == {"_data": "820000000000000002"}


@pytest.mark.parametrize("document", [{}, {"when": DatetimeMS(10**15)}, {"nested": {"fullDocument": {"a": [1, 2]}}}])
def test_the_document_is_not_looked_into(document: dict[str, Any]) -> None:
    raw = cut(event(1, document)).documents[0]
    assert raw == bson.encode(document)


def test_a_document_that_cannot_be_decoded_costs_only_itself() -> None:
    broken = bson.encode(event(1, {"text": "abc"})).replace(b"abc", b"\xff\xfe\xfd")
    events = ChangeEvents(broken + bson.encode(event(2)))
    assert events.documents[0] is not None
    assert b"\xff\xfe\xfd" in events.documents[0]
    assert bson.decode(events.documents[1] or b"")["_id"] == 2
    assert events.token(0) == {"_data": "820000000000000001"}


def test_another_order_of_fields_is_read_too() -> None:
    usual = event(1)
    events = cut(dict(reversed(usual.items())))
    assert events.documents == [bson.encode(usual["fullDocument"])]
    assert events.cluster_times == [(1_001, 1)]
    assert events.wall_times == [int(WALL.timestamp() * 1000)]
    assert events.token(0) == usual["_id"]


def test_a_server_without_wall_times_is_understood() -> None:
    old = event(1)
    del old["wallTime"]
    assert cut(old).wall_times == [None]


def test_an_event_without_a_document_is_no_insert() -> None:
    invalidate = event(2)
    del invalidate["fullDocument"]
    events = cut(event(1), invalidate)
    assert events.documents[1] is None
    events.drop([0])
    assert len(events) == 1
    assert events.token(0) == {"_data": "820000000000000001"}


def test_an_empty_batch_has_no_events() -> None:
    assert len(ChangeEvents(b"")) == 0
