"""The record's value in format Json: the payload, in the form that needs no second parsing."""

from typing import Any

from outbox_relay.encoding.json_values import json_bytes


def json_payload(value: Any) -> bytes:
    """Return a text as its UTF-8 and a binary as its bytes, so neither is quoted; anything else, also null, as JSON.

    Raises:
        EncodingError: the value is nested too deep.
    """
    if isinstance(value, str):
        return value.encode()
    return bytes(value) if isinstance(value, bytes) else json_bytes(value)
