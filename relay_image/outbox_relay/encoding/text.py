"""BSON values as text, for topics and headers, and as the bytes of a key."""

from typing import Any

from outbox_relay.encoding.json_values import json_bytes
from outbox_relay.encoding.scalars import SCALAR_TEXTS, float_text, is_uuid


def text(value: Any) -> str:
    """Return the text of a value that is not null: what its JSON says, without quotes around a scalar.

    Raises:
        EncodingError: the value is nested too deep.
    """
    kind = type(value)
    if kind is str:
        return str(value)
    to_text = SCALAR_TEXTS.get(kind)
    if to_text is not None:
        return to_text(value)
    if kind is float and (name := float_text(value)) is not None:
        return name
    return json_bytes(value).decode()


def text_bytes(value: Any) -> bytes:
    """Return the text in UTF-8."""
    return value.encode() if type(value) is str else text(value).encode()


def key_bytes(value: Any) -> bytes:
    """Return the bytes of a key that is one field alone: a binary as it is, anything else as its text.

    A UUID of subtype 4 is text, so that it meets the same key written by a producer that has the id as a string.
    """
    if type(value) is str:
        return value.encode()
    if isinstance(value, bytes) and not is_uuid(value):
        return bytes(value)
    return text(value).encode()
