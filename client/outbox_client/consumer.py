"""A Kafka consumer whose effects happen once: offsets are committed after the effects, and repeats are skipped."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError
from pymongo.asynchronous.client_session import AsyncClientSession

from outbox_client.inbox import AsyncInbox

logger = logging.getLogger(__name__)

Effect = Callable[[ConsumerRecord, AsyncClientSession], Awaitable[object]]


class EventIdMissingError(ValueError):
    """A record without the header that carries the event's id."""


def event_id(record: ConsumerRecord, header: str = "id") -> str:
    """Return the event's id from a header of the record; the relay writes `id` unless its route says otherwise.

    Raises:
        EventIdMissingError: there is no such header.
    """
    for name, value in record.headers:
        if name == header:
            return str(value, "utf-8")
    raise EventIdMissingError(
        f"record {record.topic}[{record.partition}]@{record.offset} has no header {header!r}: "
        "add it to spec.route.headers of the relay, or name another"
    )


async def consume(
    consumer: AIOKafkaConsumer, inbox: AsyncInbox, effect: Effect, *, header: str = "id", poll_ms: int = 500
) -> None:
    """Handle records for ever: each event's effect once, in the order of its partition. End it by cancelling.

    Args:
        consumer: started, with a `group_id` and `enable_auto_commit=False`.
        inbox: remembers what was handled.
        effect: what a record does, in the transaction of the session that it is given.
        header: header that carries the event's id.
        poll_ms: longest wait for records before the next round.

    Raises:
        EventIdMissingError: a record without that header.
        Exception: whatever `effect` raises; the record is then not committed and will be delivered again.
    """
    while True:
        for records in (await consumer.getmany(timeout_ms=poll_ms)).values():
            for record in records:
                await inbox.handle(event_id(record, header), partial(effect, record))
            await commit(consumer, records[-1])


async def commit(consumer: AIOKafkaConsumer, last: ConsumerRecord) -> None:
    """Commit the offset after a record, unless its partition has gone to another member of the group."""
    try:
        await consumer.commit({TopicPartition(last.topic, last.partition): last.offset + 1})
    except (CommitFailedError, IllegalStateError):
        # The partition went to another member. It reads these records again, and the inbox skips them there.
        logger.info("offset %s of %s[%s] left to another member", last.offset + 1, last.topic, last.partition)
