"""An event, and the document that it becomes in the outbox."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from bson.binary import Binary, UuidRepresentation


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to an aggregate.

    Attributes:
        aggregate_type: kind of the aggregate, such as `Order`; by default it names the topic.
        aggregate_id: which one; by default the record's key, so that its events stay in order.
        event_type: what happened, such as `OrderPlaced`.
        payload: what consumers get as the value: a document becomes JSON, a text or bytes are sent as they are.
        version: number of the event within its aggregate, for consumers that check the order.
        headers: additional record headers, such as `traceparent`.
        occurred_at: when it happened, time zone aware; None means now. Ought to rise with the commits of an aggregate.
        id: unique id; None lets the outbox choose one.
    """

    aggregate_type: str
    aggregate_id: Any
    event_type: str
    payload: Any
    version: int | None = None
    headers: Mapping[str, str] | None = None
    occurred_at: datetime | None = None
    id: Any = None


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Document paths that events are written to; the same as `spec.source.fields` of the relay. Paths may have dots."""

    id: str = "_id"
    aggregate_type: str = "aggregate"
    aggregate_id: str = "aggregate_id"
    event_type: str = "event_type"
    payload: str = "payload"
    version: str = "version"
    occurred_at: str = "occurred_at"
    headers: str = "headers"


OUTBOX_FIELDS = Fields()
"""The relay's preset Outbox."""

DEBEZIUM_FIELDS = Fields(aggregate_type="aggregatetype", aggregate_id="aggregateid", event_type="type")
"""The relay's preset Debezium: the names that Debezium's outbox event router reads."""


def to_document(event: Event, fields: Fields, *, event_id: Any, occurred_at: datetime) -> dict[str, Any]:
    """Return the document of an event. Absent optional parts are left out; a UUID becomes BSON binary of subtype 4."""
    document: dict[str, Any] = {}
    for path, value in (
        (fields.id, event_id),
        (fields.aggregate_type, event.aggregate_type),
        (fields.aggregate_id, event.aggregate_id),
        (fields.event_type, event.event_type),
        (fields.payload, event.payload),
        (fields.occurred_at, occurred_at),
    ):
        _put(document, path, value)
    if event.version is not None:
        _put(document, fields.version, event.version)
    if event.headers is not None:
        _put(document, fields.headers, dict(event.headers))
    return document


def storable_id(value: Any) -> Any:
    """Return an id in a form that every codec stores alike: drivers refuse a bare UUID unless they are told how."""
    return Binary.from_uuid(value, UuidRepresentation.STANDARD) if isinstance(value, UUID) else value


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        document = document.setdefault(parent, {})
    document[name] = storable_id(value)
