import json
from typing import Any, NoReturn

import bson
import pytest
from bson import SON, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.binary import Binary
from bson.datetime_ms import DatetimeMS
from hypothesis import given
from hypothesis import strategies as st

from outbox_relay.encoding.json_values import EncodingError, json_bytes
from outbox_relay.encoding.payload import json_payload
from outbox_relay.encoding.text import key_bytes, text
from outbox_relay.events import decode

UUID_BYTES = bytes.fromhex("00112233445566778899aabbccddeeff")

# value, its JSON, its text in topics, headers and keys
TABLE: list[tuple[Any, str, str]] = [
    ("plain ünïcode \U0001f600", '"plain ünïcode \U0001f600"', "plain ünïcode \U0001f600"),
    ("", '""', ""),
    ('a\x00\n"b', '"a\\u0000\\n\\"b"', 'a\x00\n"b'),
    (True, "true", "true"),
    (5, "5", "5"),
    (Int64(2**63 - 1), "9223372036854775807", "9223372036854775807"),
    (5.0, "5.0", "5.0"),
    (1e300, "1e+300", "1e+300"),
    (float("nan"), '"NaN"', "NaN"),
    (float("inf"), '"Infinity"', "Infinity"),
    (float("-inf"), '"-Infinity"', "-Infinity"),
    (Decimal128("12.30"), '"12.30"', "12.30"),
    (Decimal128("NaN"), '"NaN"', "NaN"),
    (ObjectId("0123456789abcdef01234567"), '"0123456789abcdef01234567"', "0123456789abcdef01234567"),
    (DatetimeMS(1_700_000_000_123), '"2023-11-14T22:13:20.123Z"', "2023-11-14T22:13:20.123Z"),
    (DatetimeMS(-1), '"1969-12-31T23:59:59.999Z"', "1969-12-31T23:59:59.999Z"),
    (DatetimeMS(-62_135_596_800_000), '"0001-01-01T00:00:00.000Z"', "0001-01-01T00:00:00.000Z"),
    (DatetimeMS(-62_135_596_800_001), '"0000-12-31T23:59:59.999Z"', "0000-12-31T23:59:59.999Z"),
    (DatetimeMS(-62_167_219_200_001), '"-000001-12-31T23:59:59.999Z"', "-000001-12-31T23:59:59.999Z"),
    (DatetimeMS(253_402_300_800_000), '"+010000-01-01T00:00:00.000Z"', "+010000-01-01T00:00:00.000Z"),
    (DatetimeMS(2**63 - 1), '"+292278994-08-17T07:12:55.807Z"', "+292278994-08-17T07:12:55.807Z"),
    (Timestamp(1_700_000_000, 7), '"1700000000.7"', "1700000000.7"),
    (b"\x00\xff", '"AP8="', "AP8="),
    (Binary(UUID_BYTES, 4), '"00112233-4455-6677-8899-aabbccddeeff"', "00112233-4455-6677-8899-aabbccddeeff"),
    (Binary(UUID_BYTES, 3), '"ABEiM0RVZneImaq7zN3u/w=="', "ABEiM0RVZneImaq7zN3u/w=="),
    (Binary(b"short", 4), '"c2hvcnQ="', "c2hvcnQ="),
    (Regex("^a/b", "ims"), '"/^a/b/ims"', "/^a/b/ims"),
    (Code("f()"), '"f()"', "f()"),
    (Code("f()", {"x": 1}), '"f()"', "f()"),
    (MinKey(), '"MinKey"', "MinKey"),
    (MaxKey(), '"MaxKey"', "MaxKey"),
    ({}, "{}", "{}"),
    ([], "[]", "[]"),
    (SON([("b", None), ("a", [1, {"c": False}])]), '{"b":null,"a":[1,{"c":false}]}', '{"b":null,"a":[1,{"c":false}]}'),
    (DBRef("c", 1, "d"), '{"$ref":"c","$id":1,"$db":"d"}', '{"$ref":"c","$id":1,"$db":"d"}'),
]


def stored(value: Any) -> Any:
    """Return the value as the relay sees it: through BSON."""
    return decode(bson.encode({"v": value}))["v"]


@pytest.mark.parametrize(("value", "as_json", "as_text"), TABLE, ids=lambda value: repr(value)[:40])
def test_each_bson_type_has_one_json_form_and_one_text(value: Any, as_json: str, as_text: str) -> None:
    assert json_bytes(stored(value)).decode() == as_json
    assert text(stored(value)) == as_text


def test_a_symbol_is_its_text_and_undefined_is_null() -> None:
    symbol, undefined = b"\x0es\x00\x02\x00\x00\x00a\x00", b"\x06u\x00"
    raw = len(symbol + undefined + b"12345").to_bytes(4, "little") + symbol + undefined + b"\x00"
    assert json_bytes(decode(raw)) == b'{"s":"a","u":null}'


def test_numbers_that_json_cannot_write_are_named_at_any_depth_and_nulls_stay() -> None:
    first = {"r": DBRef("c", float("inf")), "n": None}
    assert json.loads(json_bytes(stored(first))) == {"r": {"$ref": "c", "$id": "Infinity"}, "n": None}
    value = {"a": [float("nan"), None, {"b": float("-inf")}], "r": DBRef("c", float("inf")), "n": 1.5}
    assert json.loads(json_bytes(stored(value))) == {
        "a": ["NaN", None, {"b": "-Infinity"}],
        "r": {"$ref": "c", "$id": "Infinity"},
        "n": 1.5,
    }


def test_nesting_beyond_the_encoder_is_an_error_of_that_value() -> None:
    nested: Any = 1
    for _ in range(300):
        nested = {"a": nested}
    with pytest.raises(EncodingError):
        json_bytes(nested)


def test_a_value_of_no_bson_type_is_an_error_of_that_value() -> None:
    with pytest.raises(EncodingError, match="not JSON serializable"):
        json_bytes({"a": {1}})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"a":1}', b'{"a":1}'),
        ("just text", b"just text"),
        ("", b""),
        (b"\x00\xff", b"\x00\xff"),
        (Binary(UUID_BYTES, 4), UUID_BYTES),
        ({}, b"{}"),
        ([{"p": 1}], b'[{"p":1}]'),
        (None, b"null"),
        (42, b"42"),
        (ObjectId("0123456789abcdef01234567"), b'"0123456789abcdef01234567"'),
    ],
)
def test_text_and_binary_payloads_are_sent_as_they_are_and_others_as_json(value: Any, expected: bytes) -> None:
    assert json_payload(stored(value)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ключ", "ключ".encode()),
        ("", b""),
        (b"\x00\xff\xfe", b"\x00\xff\xfe"),
        (Binary(b"\x00\xff\xfe", 128), b"\x00\xff\xfe"),
        (Binary(UUID_BYTES, 3), UUID_BYTES),
        (Binary(UUID_BYTES, 4), b"00112233-4455-6677-8899-aabbccddeeff"),
        (5, b"5"),
        (Int64(5), b"5"),
        ({"a": 1}, b'{"a":1}'),
    ],
)
def test_a_binary_key_is_its_own_bytes_and_every_other_key_its_text(value: Any, expected: bytes) -> None:
    assert key_bytes(stored(value)) == expected
    assert key_bytes(stored(value)) == key_bytes(stored(value))


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    texts,
    st.binary(max_size=20),
    st.builds(Binary, st.binary(max_size=20), st.sampled_from([3, 4, 5, 9, 128])),
    st.builds(ObjectId, st.binary(min_size=12, max_size=12)),
    st.builds(DatetimeMS, st.integers(-(2**63), 2**63 - 1)),
    st.builds(Timestamp, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    st.builds(Decimal128.from_bid, st.binary(min_size=16, max_size=16)),
    st.builds(Regex, names, st.sampled_from(["", "i", "mx", "su"])),
    st.builds(Code, texts),
    st.sampled_from([MinKey(), MaxKey()]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(names, st.sampled_from(["$ref", "$id", "$db"])), inner, max_size=4),
    ),
    max_leaves=12,
)


def refuse(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not JSON")


@given(values)
def test_a_strict_parser_reads_every_value_and_the_bytes_are_the_same_each_time(value: Any) -> None:
    raw = bson.encode({"v": value})
    encoded = json_bytes(decode(raw)["v"])
    json.loads(encoded.decode("utf-8"), parse_constant=refuse)
    assert json_bytes(decode(raw)["v"]) == encoded
