"""BSON values as strict JSON (RFC 8259): what any parser accepts, the same bytes each time."""

from typing import Any

import orjson
from bson.dbref import DBRef

from outbox_relay.encoding.scalars import SCALAR_TEXTS, float_text


class EncodingError(ValueError):
    """A value that JSON cannot carry."""


def json_bytes(value: Any) -> bytes:
    """Return the value as compact JSON in UTF-8.

    Raises:
        EncodingError: the value is nested too deep (254 levels; MongoDB itself allows 100).
    """
    try:
        encoded = orjson.dumps(value, default=_plain)
        # The encoder writes null for NaN and infinities. Looking for a null first keeps the walk off the usual path.
        if b"null" in encoded and _has_non_finite(value):
            encoded = orjson.dumps(_named(value), default=_plain)
    except orjson.JSONEncodeError as error:
        raise EncodingError(str(error)) from error
    return encoded


def _plain(value: Any) -> Any:
    """Return what the encoder knows for a BSON type that it does not know."""
    to_text = SCALAR_TEXTS.get(type(value))
    if to_text is not None:
        return to_text(value)
    if type(value) is DBRef:
        return value.as_doc()
    raise TypeError(f"no JSON form for {type(value).__name__}")


def _has_non_finite(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        return any(map(_has_non_finite, value.values()))
    if kind is list:
        return any(map(_has_non_finite, value))
    if kind is DBRef:
        return any(map(_has_non_finite, value.as_doc().values()))
    return kind is float and float_text(value) is not None


def _named(value: Any) -> Any:
    """Return the value with NaN and infinities replaced by their names."""
    kind = type(value)
    if kind is DBRef:
        value = value.as_doc()
    if isinstance(value, dict):
        return {name: _named(inner) for name, inner in value.items()}
    if kind is list:
        return [_named(inner) for inner in value]
    return (float_text(value) or value) if kind is float else value
