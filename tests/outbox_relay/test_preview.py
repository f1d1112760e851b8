import json
from typing import Any

import pytest

from outbox_relay.preview import BadLine, preview

EVENT = {
    "_id": {"$oid": "0123456789abcdef01234567"},
    "aggregate": "Order",
    "aggregate_id": "order-1",
    "event_type": "OrderPlaced",
    "payload": {"total": {"$numberLong": "5"}},
}


def lines(*documents: dict[str, Any]) -> list[bytes]:
    return [json.dumps(document).encode() + b"\n" for document in documents]


def shown(renderer: Any, **changes: Any) -> Any:
    (outcome,) = preview(lines(EVENT | changes), renderer)
    assert isinstance(outcome, bytes), outcome
    return json.loads(outcome)


def test_a_document_is_shown_as_the_record_that_it_becomes(make_renderer: Any) -> None:
    assert shown(make_renderer()) == {
        "topic": "outbox.event.Order",
        "partition": None,
        "timestamp": None,
        "key": "order-1",
        "headers": [["id", "0123456789abcdef01234567"], ["type", "OrderPlaced"]],
        "value": '{"total":5}',
    }


def test_bytes_that_are_no_text_are_shown_in_base64(make_renderer: Any) -> None:
    binary = {"$binary": {"base64": "AP8=", "subType": "00"}}
    outcome = shown(make_renderer(), aggregate_id=binary, payload=binary)
    assert (outcome["key_base64"], outcome["value_base64"]) == ("AP8=", "AP8=")
    assert "key" not in outcome
    assert "value" not in outcome


def test_a_routed_partition_and_timestamp_are_shown_unclamped(make_renderer: Any) -> None:
    renderer = make_renderer(partitionField="n", timestampField="ts", key="{none}")
    outcome = shown(renderer, n=-1, ts={"$date": {"$numberLong": "14222264625338"}}, none=None)
    assert (outcome["partition"], outcome["timestamp"], outcome["key"]) == (-1, 14222264625338, None)


def test_an_event_that_cannot_be_sent_is_shown_as_its_dead_letter(make_renderer: Any) -> None:
    assert shown(make_renderer(), aggregate=None) == {
        "deadLetter": {
            "reason": "MissingField",
            "message": "document _id=0123456789abcdef01234567: field aggregate is missing or null, "
            "and route.topic needs it; set it in the event, or change spec.route.topic",
        }
    }


def test_blank_lines_are_skipped_and_counted(make_renderer: Any) -> None:
    outcomes = list(preview([b"\n", *lines(EVENT), b"  \n", b"x\n", *lines(EVENT)], make_renderer()))
    assert [type(outcome) for outcome in outcomes] == [bytes, BadLine, bytes]
    assert outcomes[1] == BadLine(4, "not valid JSON: Expecting value at column 1")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"\xff", "not valid UTF-8"),
        (b"[1]", "a document is a JSON object, and this is list"),
        (b'{"$oid": "0123456789abcdef01234567"}', "a document is a JSON object, and this is ObjectId"),
        (b'{"a": {"$oid": "1"}}', "not valid Extended JSON: "),
        (b'{"a": {"$numberLong": "x"}}', "not valid Extended JSON: "),
        (b'{"a": {"$numberDecimal": "x"}}', "not valid Extended JSON: "),
        (b'{"a": {"$date": "2020"}}', "not valid Extended JSON: "),
        (b'{"a": 99999999999999999999}', "cannot be stored in MongoDB: "),
        (b'{"a": "\\ud800"}', "cannot be stored in MongoDB: "),
        (b'{"a\\u0000": 1}', "cannot be stored in MongoDB: "),
    ],
)
def test_a_line_that_is_no_document_is_reported_with_what_is_wrong(
    make_renderer: Any, line: bytes, problem: str
) -> None:
    (outcome,) = preview([line], make_renderer())
    assert isinstance(outcome, BadLine)
    assert outcome.problem.startswith(problem)


def test_extended_json_keeps_dates_and_uuids_that_the_driver_would_refuse(make_renderer: Any) -> None:
    payload = {
        "far": {"$date": {"$numberLong": "253402300800000"}},
        "uuid": {"$uuid": "00112233-4455-6677-8899-aabbccddeeff"},
    }
    assert json.loads(shown(make_renderer(), payload=payload)["value"]) == {
        "far": "+010000-01-01T00:00:00.000Z",
        "uuid": "00112233-4455-6677-8899-aabbccddeeff",
    }
