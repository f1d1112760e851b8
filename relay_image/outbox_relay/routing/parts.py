"""The parts of a record that come from a field of their own: partition, timestamp, and the event's own headers."""

from collections.abc import Callable
from typing import Any

from bson import Timestamp
from bson.datetime_ms import DatetimeMS

from outbox_relay.encoding.text import text_bytes
from outbox_relay.events.decode import Document
from outbox_relay.events.fields import FieldPaths, optional
from outbox_relay.events.record import EventRefusedError, Reason
from outbox_relay.routing.template import lookup

IntOf = Callable[[Document], int | None]
HeadersOf = Callable[[Document], list[tuple[str, bytes]]]


def partition_field(name: str, paths: FieldPaths, *, ignore_missing: bool) -> IntOf:
    """Return the function that reads the partition's number; a null leaves the partition to the key."""
    path = paths.path(name)
    look_up = lookup(path, part="route.partitionField", ignore_missing=ignore_missing)

    def read(document: Document) -> int | None:
        value = look_up(document)
        number = _whole(value)
        if number is None and value is not None:
            raise _wrong_type(path, "route.partitionField", "a whole number")
        return number

    return read


def timestamp_field(name: str, paths: FieldPaths, *, ignore_missing: bool) -> IntOf:
    """Return the function that reads the timestamp in milliseconds since 1970; a null means the time of sending."""
    path = paths.path(name)
    look_up = lookup(path, part="route.timestampField", ignore_missing=ignore_missing)

    def read(document: Document) -> int | None:
        value = look_up(document)
        if isinstance(value, DatetimeMS):
            return int(value)
        if isinstance(value, Timestamp):
            return value.time * 1000
        number = _whole(value)
        if number is None and value is not None:
            raise _wrong_type(path, "route.timestampField", "a date, or a whole number of milliseconds since 1970")
        return number

    return read


def event_headers(path: str) -> HeadersOf:
    """Return the function that reads the headers an event brings along: a document of name and value.

    A null value is left out; an array is one header for each element. No such field means no headers.
    """
    get = optional(path)

    def read(document: Document) -> list[tuple[str, bytes]]:
        headers = get(document)
        if headers is None:
            return []
        if not isinstance(headers, dict):
            raise _wrong_type(path, "source.fields.headers", "a document of header names and values")
        return [
            (name, text_bytes(value))
            for name, values in headers.items()
            for value in (values if isinstance(values, list) else (values,))
            if value is not None
        ]

    return read


def _whole(value: Any) -> int | None:
    """Return a whole number, also one that a JavaScript producer stored as a double; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else None


def _wrong_type(path: str, part: str, wanted: str) -> EventRefusedError:
    return EventRefusedError(
        Reason.INVALID_FIELD,
        f"field {path} is not {wanted}, which {part} needs; correct it in the event, or change spec.{part}",
        field=path,
    )
