"""What record an event becomes: topic, key, partition, timestamp, headers and value."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from outbox_api.base import LongText, Model, ShortText, closed_model, rules, section
from outbox_api.spec.source import FieldPath

Template = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Replacement = Annotated[str, StringConstraints(max_length=1024)]
Converter = Literal["String", "Json"]


class TopicRewrite(Model):
    """A rewriting of the topic's name by a regular expression that must match the whole of it."""

    pattern: Pattern = Field(description="Regular expression; a topic that it does not match as a whole is unchanged.")
    replacement: Replacement = Field(description="Replacement; $1 is the first group.")


class Header(Model):
    """One record header."""

    name: ShortText = Field(description="Name of the header; may occur more than once.")
    value: Template = Field(description="Template of the value, such as {id}.")


class EnvelopeField(Model):
    """One field of the envelope around the payload."""

    name: ShortText = Field(description="Name of the field in the envelope.")
    field: FieldPath = Field(description="Logical field or document path whose value it carries.")


class ExtendedJson(Model):
    """Settings of format ExtendedJson."""

    mode: Literal["Relaxed", "Canonical"] = Field(default="Relaxed", description="MongoDB Extended JSON v2 mode.")


class CloudEvents(Model):
    """Settings of format CloudEvents 1.0."""

    mode: Literal["Structured", "Binary"] = Field(
        default="Structured", description="Structured: all in the value; Binary: attributes in ce_ headers."
    )
    source: LongText = Field(description="Attribute source: a URI reference that names the producer.")


class Debezium(Model):
    """Settings of format Debezium: the converters of the connector that is replaced."""

    key_converter: Converter = Field(default="String", description="Converter of the key.")
    value_converter: Converter = Field(default="String", description="Converter of the value.")
    header_converter: Converter = Field(default="String", description="Converter of headers.")


class Value(Model):
    """The record's value."""

    model_config = closed_model(
        **rules(
            (
                "!has(self.extendedJson) || self.format == 'ExtendedJson'",
                "spec.route.value.extendedJson is only for format ExtendedJson",
            ),
            (
                "has(self.cloudEvents) == (self.format == 'CloudEvents')",
                "spec.route.value.cloudEvents, with its source, is needed with format CloudEvents, and only there",
            ),
            (
                "!has(self.debezium) || self.format == 'Debezium'",
                "spec.route.value.debezium is only for format Debezium",
            ),
        )
    )

    format: Literal["Json", "ExtendedJson", "Debezium", "CloudEvents", "Raw"] = Field(
        default="Json", description="Encoding of the value."
    )
    from_: Literal["Payload", "Document"] = Field(
        default="Payload", alias="from", description="What is encoded: the payload, or the whole document."
    )
    expand_payload: bool | None = Field(
        default=None, description="Parse a payload that is a text of JSON, and carry it as an object."
    )
    envelope: list[EnvelopeField] | None = Field(
        default=None, max_length=64, description="Fields that go beside the payload, in an envelope."
    )
    tombstone_on_empty_payload: bool | None = Field(
        default=None, description="Send a record without value when the payload is empty or absent."
    )
    schema_version_field: FieldPath | None = Field(
        default=None, description="Logical field or document path of the schema's version."
    )
    extended_json: ExtendedJson | None = Field(default=None, description="Settings of format ExtendedJson.")
    cloud_events: CloudEvents | None = Field(default=None, description="Settings of format CloudEvents.")
    debezium: Debezium | None = Field(default=None, description="Settings of format Debezium.")


def _default_headers() -> list[Header]:
    return [Header(name="id", value="{id}"), Header(name="type", value="{eventType}")]


class Route(Model):
    """How an event becomes a record.

    A template holds {x} for a logical field or a document path x. In {a.b} the first segment is a logical
    name if it is one, else a field of the document.
    """

    topic: Template = Field(default="outbox.event.{aggregateType}", description="Template of the topic's name.")
    topic_rewrite: TopicRewrite | None = Field(default=None, description="Rewriting of the topic's name.")
    key: Template = Field(
        default="{aggregateId}", description="Template of the record's key; it decides the partition."
    )
    partition_field: FieldPath | None = Field(
        default=None, description="Field that holds the partition's number. Unset: murmur2 of the key, as in Java."
    )
    timestamp_field: FieldPath | None = Field(
        default=None, description="Field that holds the record's timestamp. Unset: the time of sending."
    )
    headers: list[Header] = Field(
        default_factory=_default_headers,
        max_length=64,
        description="Record headers, in order; duplicates are allowed; setting it replaces the default.",
        json_schema_extra={"default": [header.wire() for header in _default_headers()]},
    )
    on_missing_field: Literal["Fail", "Ignore"] = Field(
        default="Fail",
        description=(
            "What happens when a field that is named here is missing in an event: Fail treats the event as poison, "
            "Ignore leaves the part empty. The topic always needs its fields."
        ),
    )
    value: Value = section(Value, "The record's value.")
