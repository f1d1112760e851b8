"""Events written in the transaction of the business change that they tell of: both are there, or neither.

There is no way here to write an event outside a transaction, because that is the fault an outbox exists to prevent.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.client_session import ClientSession
from pymongo.collection import Collection

from outbox_client.event import OUTBOX_FIELDS, Event, Fields, storable_id, to_document


class NotInTransactionError(RuntimeError):
    """An event was to be written by a session that has no transaction open."""

    def __init__(self) -> None:
        super().__init__(
            "an outbox event belongs into the transaction of the change that it tells of: "
            "call emit inside session.with_transaction(...) or session.start_transaction()"
        )


class Outbox:
    """Writes events to an outbox collection, for code that uses `pymongo.MongoClient`.

    Args:
        collection: the outbox, from the client that writes the business data too.
        fields: names of the fields in the documents; the relay must be told the same.
        new_id: makes ids. ObjectIds, the default, rise within a process, so that events of one millisecond keep their
            order also when a backlog is swept; `uuid.uuid4` is the choice where ids must not tell time and machine.
    """

    def __init__(
        self,
        collection: Collection[dict[str, Any]],
        *,
        fields: Fields = OUTBOX_FIELDS,
        new_id: Callable[[], Any] = ObjectId,
    ) -> None:
        self._collection = collection
        self._fields = fields
        self._new_id = new_id

    def emit(self, session: ClientSession, *events: Event) -> list[Any]:
        """Write events in the session's transaction, in this order, in one request; return their ids.

        Raises:
            NotInTransactionError: the session has no transaction open.
            pymongo.errors.PyMongoError: let it pass, so that the transaction is retried or ends.
        """
        documents, ids = _documents(session, events, self._fields, self._new_id)
        self._collection.insert_many(documents, session=session)
        return ids


class AsyncOutbox:
    """`Outbox` for code that uses `pymongo.AsyncMongoClient`; the arguments are the same."""

    def __init__(
        self,
        collection: AsyncCollection[dict[str, Any]],
        *,
        fields: Fields = OUTBOX_FIELDS,
        new_id: Callable[[], Any] = ObjectId,
    ) -> None:
        self._collection = collection
        self._fields = fields
        self._new_id = new_id

    async def emit(self, session: AsyncClientSession, *events: Event) -> list[Any]:
        """Write events in the session's transaction; as `Outbox.emit`."""
        documents, ids = _documents(session, events, self._fields, self._new_id)
        await self._collection.insert_many(documents, session=session)
        return ids


def _documents(
    session: ClientSession | AsyncClientSession, events: Sequence[Event], fields: Fields, new_id: Callable[[], Any]
) -> tuple[list[dict[str, Any]], list[Any]]:
    if not session.in_transaction:
        raise NotInTransactionError
    now = datetime.now(UTC)
    ids = [storable_id(new_id() if event.id is None else event.id) for event in events]
    documents = [
        to_document(event, fields, event_id=event_id, occurred_at=event.occurred_at or now)
        for event, event_id in zip(events, ids, strict=True)
    ]
    return documents, ids
