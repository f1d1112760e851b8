"""An event that the broker refuses, in words for its user."""

from outbox_api.reasons import RelayReason
from outbox_relay.events.describe import describe_id
from outbox_relay.pipeline.tracker import Item
from outbox_relay.problems import Problem

STOPPED = (
    "the relay has stopped before it and nothing behind it is lost; correct the cause and restart the relay, or remove "
    "the event by marking its document as published while the relay is suspended"
)


def refused(item: Item, topic: str, partition: int, error: BaseException) -> Problem:
    """Return the problem of an event that alone was refused by the broker of a partition."""
    size = len(item.record.value or b"") + len(item.record.key or b"")
    return Problem(
        RelayReason.POISON_EVENT,
        f"Kafka refused document {describe_id(item.record.document_id)} for {topic}-{partition} "
        f"({type(error).__name__}; key and value have {size} bytes before compression): {STOPPED}",
    )
