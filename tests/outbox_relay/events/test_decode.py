import struct
from contextlib import suppress

import bson
import pytest
from bson import Regex
from bson.binary import Binary
from bson.datetime_ms import DatetimeMS
from hypothesis import given
from hypothesis import strategies as st

from outbox_relay.events import EventRefusedError, Reason, decode
from outbox_relay.events.describe import describe_id


def document_of(element: bytes) -> bytes:
    return struct.pack("<i", len(element) + 5) + element + b"\x00"


@pytest.mark.parametrize("milliseconds", [-(2**63), -62_135_596_800_001, 253_402_300_800_000, 2**63 - 1])
def test_a_date_outside_the_years_1_to_9999_is_kept(milliseconds: int) -> None:
    decoded = decode(bson.encode({"at": DatetimeMS(milliseconds)}))
    assert int(decoded["at"]) == milliseconds


def test_uuids_of_both_subtypes_keep_their_bytes() -> None:
    legacy, standard = Binary(b"0123456789abcdef", 3), Binary(b"0123456789abcdef", 4)
    assert decode(bson.encode({"a": legacy, "b": standard})) == {"a": legacy, "b": standard}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"_id": 7, "payload": {"lines": [{"note": "xyzzy"}]}}, "payload.lines.0.note"),
        ({"_id": 7, "other": [1, {}], "xyzzy": 1}, "xy?zy"),
        ({"_id": 7, "ref": {"$ref": "xyzzy", "$id": 1}}, "ref.$ref"),
    ],
)
def test_a_text_that_is_not_utf8_is_refused_with_document_id_and_field(document: dict[str, object], path: str) -> None:
    raw = bson.encode(document).replace(b"xyzzy", b"xy\xffzy")
    with pytest.raises(EventRefusedError) as refused:
        decode(raw)
    assert refused.value.reason is Reason.UNDECODABLE
    assert refused.value.document_id == 7
    assert refused.value.field == path
    assert f"field {path} is not valid UTF-8" in refused.value.problem


def test_a_regular_expression_that_is_not_utf8_is_refused() -> None:
    raw = bson.encode({"_id": 7, "pattern": Regex("xyzzy")}).replace(b"xyzzy", b"xy\xffzy")
    with pytest.raises(EventRefusedError) as refused:
        decode(raw)
    assert refused.value.reason is Reason.UNDECODABLE


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x10\x00\x00\x00\x00", id="length beyond its end"),
        pytest.param(document_of(b"\x10n\x00\x01"), id="truncated integer"),
        pytest.param(document_of(b"\x77n\x00\x01"), id="unknown type"),
    ],
)
def test_what_is_no_bson_is_refused_and_says_so(raw: bytes) -> None:
    with pytest.raises(EventRefusedError, match="not valid BSON") as refused:
        decode(raw)
    assert refused.value.reason is Reason.UNDECODABLE


@given(st.binary(max_size=64))
def test_no_bytes_make_the_decoder_fail_otherwise(element: bytes) -> None:
    for raw in (element, document_of(element)):
        with suppress(EventRefusedError):
            assert isinstance(decode(raw), dict)


def test_a_document_is_named_by_the_text_of_its_id() -> None:
    at = DatetimeMS(1_704_164_645_000)
    assert describe_id(at) == "_id=2024-01-02T03:04:05.000Z"
    assert describe_id("x" * 500) == f"_id={'x' * 120}…"
    assert describe_id(None) == "without an _id that can be read"


def test_an_id_nested_beyond_what_json_carries_is_still_named() -> None:
    nested: object = 1
    for _ in range(300):
        nested = {"a": nested}
    assert describe_id(nested) == "with an _id that has no text form"
