"""One business transaction: an order is changed, and its events are written, in one transaction."""

from dataclasses import dataclass
from typing import Any

from pymongo import ReturnDocument
from pymongo.client_session import ClientSession
from pymongo.database import Database
from pymongo.errors import CollectionInvalid
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from outbox_client import Event, Outbox

_LATER_EVENTS = ("ItemAdded", "OrderPaid", "OrderShipped")


@dataclass(frozen=True)
class Written:
    """An event as it was written: `id` as text, `version` counts from 1 within the order."""

    id: str
    aggregate_id: str
    version: int
    event_type: str


class ChangeOfMindError(Exception):
    """The customer changed their mind after the events were written: the transaction must leave no trace."""

    def __init__(self, written: list[Written]) -> None:
        super().__init__("aborted on purpose")
        self.written = written


class Orders:
    """The orders of a shop and its outbox.

    Args:
        database: where both collections are.
        orders: name of the collection of orders.
        outbox: name of the outbox collection.
    """

    def __init__(self, database: Database[dict[str, Any]], orders: str, outbox: str) -> None:
        self._client = database.client
        self._orders = database[orders]
        self._outbox = Outbox(database[outbox])
        for name in (orders, outbox):
            try:
                # Made beforehand: transactions that create the same collection at once conflict with each other.
                database.create_collection(name)
            except CollectionInvalid:
                continue  # it is there already

    def advance(self, order_id: str, events: int, *, abort: bool = False) -> list[Written]:
        """Move an order on by so many events and return what was committed.

        The driver retries the transaction when it conflicts with another or the primary changes. Each attempt reads
        the order's version anew, so versions rise by one in the order of the commits.

        Raises:
            ChangeOfMindError: `abort` was asked for; nothing was committed.
        """

        def transaction(session: ClientSession) -> list[Written]:
            order = self._orders.find_one_and_update(
                {"_id": order_id},
                {"$inc": {"version": events, "total_cents": 1250 * events}, "$set": {"currency": "EUR"}},
                upsert=True,
                return_document=ReturnDocument.AFTER,
                session=session,
            )
            assert order is not None  # an upsert finds what it makes
            told = [_event(order, version) for version in range(order["version"] - events + 1, order["version"] + 1)]
            ids = self._outbox.emit(session, *told)
            written = [
                Written(str(event_id), order_id, event.version or 0, event.event_type)
                for event_id, event in zip(ids, told, strict=True)
            ]
            if abort:
                raise ChangeOfMindError(written)
            return written

        with self._client.start_session() as session:
            return session.with_transaction(
                transaction, read_concern=ReadConcern("snapshot"), write_concern=WriteConcern("majority")
            )


def _event(order: dict[str, Any], version: int) -> Event:
    event_type = "OrderPlaced" if version == 1 else _LATER_EVENTS[version % len(_LATER_EVENTS)]
    return Event(
        aggregate_type="Order",
        aggregate_id=order["_id"],
        event_type=event_type,
        version=version,
        payload={
            "order_id": order["_id"],
            "version": version,
            "customer": f"customer-{sum(order['_id'].encode()) % 97:04d}",
            "total_cents": 1250 * version,
            "currency": order["currency"],
        },
    )
