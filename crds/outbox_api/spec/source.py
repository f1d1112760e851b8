"""Where events come from: a MongoDB collection, and how its documents are laid out."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from outbox_api.base import Duration, Model, closed_model, rules
from outbox_api.spec.references import SecretKeyRef, Tls

Preset = Literal["Outbox", "Debezium"]
DatabaseName = Annotated[str, StringConstraints(pattern=r'^[^/\\. "$*<>:|?]+$', min_length=1, max_length=63)]
CollectionName = Annotated[str, StringConstraints(pattern=r"^[^$]+$", min_length=1, max_length=200)]
FieldPath = Annotated[str, StringConstraints(pattern=r"^[^.$ ]+(\.[^.$ ]+)*$", min_length=1, max_length=253)]


class Polling(Model):
    """How mode Polling reads."""

    interval: Duration = Field(default="1s", description="Time between two reads when nothing was found.")
    batch_size: int = Field(default=100, ge=1, le=10_000, description="Events read at a time.")


class Fields(Model):
    """How a document of the outbox is laid out: a preset, and the fields that are named differently."""

    preset: Preset = Field(
        default="Outbox",
        description=(
            "Outbox: _id, aggregate, aggregate_id, event_type, payload, version, occurred_at, published_at, attempts, "
            "headers, tracing. Debezium: _id, aggregatetype, aggregateid, type, payload, tracingspancontext, "
            "and the others as Outbox."
        ),
    )
    id: FieldPath | None = Field(default=None, description="Field of the event's id, unique in the collection.")
    aggregate_type: FieldPath | None = Field(default=None, description="Field of the aggregate's type.")
    aggregate_id: FieldPath | None = Field(default=None, description="Field of the aggregate's id.")
    event_type: FieldPath | None = Field(default=None, description="Field of the event's type.")
    payload: FieldPath | None = Field(default=None, description="Field of the event's payload.")
    version: FieldPath | None = Field(default=None, description="Field of the aggregate's version.")
    occurred_at: FieldPath | None = Field(default=None, description="Field of the time at which the event occurred.")
    published_at: FieldPath | None = Field(default=None, description="Field that the relay marks when published.")
    attempts: FieldPath | None = Field(default=None, description="Field in which refused attempts are counted.")
    headers: FieldPath | None = Field(default=None, description="Field of additional headers of the event.")
    tracing: FieldPath | None = Field(default=None, description="Field of the trace context.")


class CommonSource(Model):
    """What the resource and the relay's configuration say in the same words about the source."""

    database: DatabaseName = Field(description="Database of the outbox. Immutable.")
    collection: CollectionName = Field(description="Collection of the outbox. Immutable.")
    mode: Literal["ChangeStream", "Polling"] = Field(
        default="ChangeStream",
        description=(
            "ChangeStream follows the oplog of a replica set; Polling also works on a standalone mongod. "
            "May be changed only while suspended; the new mode starts from the unpublished events."
        ),
    )
    polling: Polling | None = Field(
        default=None, description="Settings of mode Polling; not allowed with another mode."
    )
    order_field: FieldPath | None = Field(
        default=None,
        description=(
            "Logical field or document path by which a backlog is swept and Polling reads, then by id. "
            "Default: occurredAt; id under the preset Debezium."
        ),
    )
    fields: Fields = Field(
        default_factory=Fields, description="Layout of the documents.", json_schema_extra={"default": {}}
    )


class Source(CommonSource):
    """The MongoDB collection that events come from."""

    model_config = closed_model(
        **rules(
            (
                "!has(self.polling) || self.mode == 'Polling'",
                "spec.source.polling is only for mode Polling: remove it, or set spec.source.mode to Polling",
            ),
            (
                "self.database == oldSelf.database && self.collection == oldSelf.collection",
                "spec.source.database and spec.source.collection are immutable: create another OutboxRelay",
            ),
        )
    )

    uri_secret_ref: SecretKeyRef = Field(description="Secret key that holds the MongoDB connection string.")
    tls: Tls | None = Field(default=None, description="TLS towards MongoDB, in addition to what the URI says.")


@dataclass(frozen=True)
class FieldNames:
    """The document paths of the logical fields, after preset and renames."""

    id: str
    aggregate_type: str
    aggregate_id: str
    event_type: str
    payload: str
    version: str
    occurred_at: str
    published_at: str
    attempts: str
    headers: str
    tracing: str


_COMMON = {
    "id": "_id",
    "payload": "payload",
    "version": "version",
    "occurred_at": "occurred_at",
    "published_at": "published_at",
    "attempts": "attempts",
    "headers": "headers",
}
_PRESETS: dict[Preset, FieldNames] = {
    "Outbox": FieldNames(
        **_COMMON,
        aggregate_type="aggregate",
        aggregate_id="aggregate_id",
        event_type="event_type",
        tracing="tracing",
    ),
    "Debezium": FieldNames(
        **_COMMON,
        aggregate_type="aggregatetype",
        aggregate_id="aggregateid",
        event_type="type",
        tracing="tracingspancontext",
    ),
}


def field_names(fields: Fields) -> FieldNames:
    """Return the document path of every logical field."""
    preset = _PRESETS[fields.preset]
    return FieldNames(
        **{
            name: renamed if (renamed := getattr(fields, name)) is not None else getattr(preset, name)
            for name in FieldNames.__dataclass_fields__
        }
    )


def order_field(source: CommonSource) -> str:
    """Return the logical field or document path that orders a sweep: `orderField`, or the preset's default."""
    if source.order_field is not None:
        return source.order_field
    return "id" if source.fields.preset == "Debezium" else "occurredAt"
