"""The two outcomes of an event: a record for Kafka, or a refusal that says why there is none."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Reason(StrEnum):
    """Why an event cannot be sent. Each is deterministic: the same document meets it at every attempt."""

    UNDECODABLE = "UndecodableDocument"
    MISSING_FIELD = "MissingField"
    INVALID_FIELD = "InvalidField"
    ENCODING = "EncodingFailed"
    INVALID_TOPIC = "InvalidTopicName"
    INVALID_PARTITION = "InvalidPartition"


@dataclass(slots=True)
class Record:
    """A record as the route renders it.

    Attributes:
        topic: name of the topic; whether Kafka allows it is checked before sending (`routing.sendable`).
        partition: the routed partition, unchecked; None leaves it to the hash of the key.
        timestamp: the routed timestamp in milliseconds since 1970, unchecked; None means the time of sending.
        key: bytes of the key; None means no key.
        value: bytes of the value; None is a tombstone.
        headers: name and value in order; a name may occur more than once.
        document_id: the document's `_id` as decoded from BSON, fit for a query by `_id`.
    """

    topic: str
    partition: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]
    document_id: Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an event becomes no record.

    Attributes:
        reason: the kind of refusal.
        message: the document's id, the field, what is wrong and what to do next; never the field's value.
        document_id: the document's `_id` as decoded from BSON; None where it could not be read.
        field: path of the field in the document; None where no single field is to blame.
    """

    reason: Reason
    message: str
    document_id: Any = None
    field: str | None = None


class EventRefusedError(Exception):
    """Raised inside the rendering of one event; it never leaves `Renderer.render`, which turns it into a `Refusal`."""

    def __init__(self, reason: Reason, problem: str, *, field: str | None = None, document_id: Any = None) -> None:
        super().__init__(problem)
        self.reason = reason
        self.problem = problem
        self.field = field
        self.document_id = document_id
