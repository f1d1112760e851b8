"""The text of each BSON scalar that JSON has no type for. The table for users: `docs/reference/bson-types.md`."""

import math
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from bson import Code, Decimal128, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.binary import UUID_SUBTYPE, Binary
from bson.datetime_ms import DatetimeMS

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - arithmetic only; every BSON date is UTC
_FIRST_SECOND = -62_135_596_800  # 0001-01-01T00:00:00, the first that datetime knows
_LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59, the last
_CYCLE = 146_097 * 86_400  # seconds of 400 Gregorian years, after which the calendar repeats
_REGEX_FLAGS = ((2, "i"), (4, "l"), (8, "m"), (16, "s"), (32, "u"), (64, "x"))  # BSON's order: alphabetical


def date_text(value: DatetimeMS) -> str:
    """Return ISO 8601 in UTC with milliseconds; years beyond 0000 to 9999 have a sign and six digits or more.

    The long form is the "expanded year" of ECMAScript, which `java.time` reads as well.
    """
    seconds, millis = divmod(int(value), 1000)
    if _FIRST_SECOND <= seconds <= _LAST_SECOND:
        return f"{(_EPOCH + timedelta(seconds=seconds)).isoformat()}.{millis:03d}Z"
    cycles, within = divmod(seconds, _CYCLE)
    moment = _EPOCH + timedelta(seconds=within)
    year = moment.year + 400 * cycles
    shown = f"{year:04d}" if year == 0 else f"{year:+07d}"
    return f"{shown}{moment.isoformat()[4:]}.{millis:03d}Z"


def is_uuid(value: bytes) -> bool:
    """Say whether a binary is a UUID whose byte order is known: subtype 4, 16 bytes."""
    return type(value) is Binary and value.subtype == UUID_SUBTYPE and len(value) == 16


def binary_text(value: bytes) -> str:
    """Return a UUID of subtype 4 in its usual form, and any other binary in base64.

    Subtype 3 is not shown as a UUID: its byte order depends on the driver that wrote it.
    """
    if is_uuid(value):
        digits = value.hex()
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return b64encode(value).decode()


def float_text(value: float) -> str | None:
    """Return the name of a number that JSON cannot write: NaN, Infinity or -Infinity; None for every other number."""
    if math.isfinite(value):
        return None
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _regex_text(value: "Regex[str]") -> str:
    return f"/{value.pattern}/{''.join(letter for flag, letter in _REGEX_FLAGS if value.flags & flag)}"


def _timestamp_text(value: Timestamp) -> str:
    return f"{value.time}.{value.inc}"


SCALAR_TEXTS: dict[type, Callable[[Any], str]] = {
    ObjectId: str,
    DatetimeMS: date_text,
    Decimal128: str,
    bytes: binary_text,
    Binary: binary_text,
    Timestamp: _timestamp_text,
    Regex: _regex_text,
    Code: str,
    MinKey: lambda _: "MinKey",
    MaxKey: lambda _: "MaxKey",
}
"""By exact type, as the decoder makes them: each scalar's text, which is also its JSON string."""
