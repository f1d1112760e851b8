"""Effects that happen once for each event id, although events may be delivered more than once.

The id is recorded in the same transaction as the effect: both are there, or neither. This holds for effects in the
same MongoDB; a mail that was sent, or a call to another system, cannot be taken back by a transaction.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

# A handled event must survive a fail-over before its offset is committed in Kafka.
_TRANSACTION: dict[str, Any] = {"read_concern": ReadConcern("snapshot"), "write_concern": WriteConcern("majority")}
_TTL_INDEX = "handled_at_ttl"


class Inbox:
    """Remembers which events a consumer has handled, for code that uses `pymongo.MongoClient`.

    Args:
        collection: where handled ids are kept, from the client that writes the effects too.
        consumer: name of the consumer; several may share a collection, each handles every event once.
    """

    def __init__(self, collection: Collection[dict[str, Any]], consumer: str) -> None:
        self._collection = collection
        self._consumer = consumer

    def handle(self, event_id: str, effect: Callable[[ClientSession], object]) -> bool:
        """Run `effect` in a transaction if this consumer has not handled the event yet; return whether it ran.

        `effect` may run again when the transaction is retried, and must use the session for all that it writes.

        Raises:
            Exception: whatever `effect` raises; the event then counts as not handled.
        """

        def transaction(session: ClientSession) -> bool:
            if not self.first_time(session, event_id):
                return False
            effect(session)
            return True

        with self._collection.database.client.start_session() as session:
            return session.with_transaction(transaction, **_TRANSACTION)

    def first_time(self, session: ClientSession, event_id: str) -> bool:
        """Record the event in a transaction of your own; return False if it is recorded already."""
        done = self._collection.update_one(*_upsert(self._consumer, event_id), upsert=True, session=session)
        return done.upserted_id is not None

    def forget_after(self, age: timedelta) -> None:
        """Keep ids only so long (a TTL index): longer than any event may be delivered again.

        Raises:
            pymongo.errors.OperationFailure: the index exists with another age; change that by `collMod`.
        """
        self._collection.create_index("handled_at", name=_TTL_INDEX, expireAfterSeconds=int(age.total_seconds()))


class AsyncInbox:
    """`Inbox` for code that uses `pymongo.AsyncMongoClient`."""

    def __init__(self, collection: AsyncCollection[dict[str, Any]], consumer: str) -> None:
        self._collection = collection
        self._consumer = consumer

    async def handle(self, event_id: str, effect: Callable[[AsyncClientSession], Awaitable[object]]) -> bool:
        """Run `effect` in a transaction if this consumer has not handled the event yet; as `Inbox.handle`."""

        async def transaction(session: AsyncClientSession) -> bool:
            if not await self.first_time(session, event_id):
                return False
            await effect(session)
            return True

        async with self._collection.database.client.start_session() as session:
            return await session.with_transaction(transaction, **_TRANSACTION)

    async def first_time(self, session: AsyncClientSession, event_id: str) -> bool:
        """Record the event in a transaction of your own; return False if it is recorded already."""
        done = await self._collection.update_one(*_upsert(self._consumer, event_id), upsert=True, session=session)
        return done.upserted_id is not None

    async def forget_after(self, age: timedelta) -> None:
        """Keep ids only so long; as `Inbox.forget_after`."""
        await self._collection.create_index("handled_at", name=_TTL_INDEX, expireAfterSeconds=int(age.total_seconds()))


def _upsert(consumer: str, event_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return filter and update. An upsert, because a duplicate key error would end the caller's transaction."""
    return (
        {"_id": {"consumer": consumer, "event": event_id}},
        {"$setOnInsert": {"handled_at": datetime.now(UTC)}},
    )
