from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import bson
import pytest
from bson import ObjectId
from bson.binary import Binary
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.database import Database

from outbox_client import DEBEZIUM_FIELDS, AsyncOutbox, Event, Fields, NotInTransactionError, Outbox

PLACED = Event(aggregate_type="Order", aggregate_id="order-1", event_type="OrderPlaced", payload={"total": 5})


def test_an_event_is_there_when_its_transaction_commits_together_with_the_change(shop: Database[Any]) -> None:
    outbox = Outbox(shop.outbox)
    started = datetime.now(UTC)
    with shop.client.start_session() as session, session.start_transaction():
        shop.orders.insert_one({"_id": "order-1"}, session=session)
        (event_id,) = outbox.emit(session, PLACED)
        assert shop.outbox.count_documents({}) == 0
    (stored,) = shop.outbox.find()
    age = (started.replace(tzinfo=None) - stored.pop("occurred_at")).total_seconds()
    assert abs(age) < 60
    assert stored == {
        "_id": event_id,
        "aggregate": "Order",
        "aggregate_id": "order-1",
        "event_type": "OrderPlaced",
        "payload": {"total": 5},
    }
    assert isinstance(event_id, ObjectId)


def test_an_event_of_an_aborted_transaction_never_existed(shop: Database[Any]) -> None:
    outbox = Outbox(shop.outbox)
    with shop.client.start_session() as session:
        session.start_transaction()
        outbox.emit(session, PLACED)
        session.abort_transaction()
    assert shop.outbox.count_documents({}) == 0


def test_an_event_outside_a_transaction_is_refused(shop: Database[Any]) -> None:
    outbox = Outbox(shop.outbox)
    with shop.client.start_session() as session, pytest.raises(NotInTransactionError, match=r"with_transaction"):
        outbox.emit(session, PLACED)
    assert shop.outbox.count_documents({}) == 0


def test_several_events_keep_their_order_by_time_and_id(shop: Database[Any]) -> None:
    outbox = Outbox(shop.outbox)
    with shop.client.start_session() as session:
        ids = session.with_transaction(lambda session: outbox.emit(session, *[PLACED] * 20))
    stored = list(shop.outbox.find().sort({"occurred_at": 1, "_id": 1}))
    assert [document["_id"] for document in stored] == ids


def test_everything_that_an_event_carries_is_written_under_the_names_of_the_fields(shop: Database[Any]) -> None:
    fields = Fields(id="event.id", aggregate_type="event.kind", headers="meta", version="v")
    outbox = Outbox(shop.outbox, fields=fields)
    aggregate, at = uuid4(), datetime(2024, 1, 2, tzinfo=UTC)
    event = Event(
        aggregate_type="Order",
        aggregate_id=aggregate,
        event_type="OrderPaid",
        payload="text",
        version=3,
        headers={"traceparent": "00-1"},
        occurred_at=at,
        id="e-1",
    )
    with shop.client.start_session() as session:
        assert session.with_transaction(lambda session: outbox.emit(session, event)) == ["e-1"]
    (stored,) = shop.outbox.find({}, {"_id": False})
    assert stored == {
        "event": {"id": "e-1", "kind": "Order"},
        "aggregate_id": Binary(aggregate.bytes, 4),
        "event_type": "OrderPaid",
        "payload": "text",
        "occurred_at": at.replace(tzinfo=None),
        "v": 3,
        "meta": {"traceparent": "00-1"},
    }


def test_ids_may_be_uuids_and_fields_those_of_debezium(shop: Database[Any]) -> None:
    outbox = Outbox(shop.outbox, fields=DEBEZIUM_FIELDS, new_id=uuid4)
    with shop.client.start_session() as session:
        (event_id,) = session.with_transaction(lambda session: outbox.emit(session, PLACED))
    (stored,) = shop.outbox.find({}, {"occurred_at": False})
    assert UUID(bytes=bytes(event_id)).version == 4
    assert stored == {
        "_id": event_id,
        "aggregatetype": "Order",
        "aggregateid": "order-1",
        "type": "OrderPlaced",
        "payload": {"total": 5},
    }


async def test_the_asynchronous_outbox_writes_the_same_documents(async_shop: AsyncDatabase[Any]) -> None:
    outbox = AsyncOutbox(async_shop.outbox)
    async with async_shop.client.start_session() as session:
        with pytest.raises(NotInTransactionError):
            await outbox.emit(session, PLACED)
        async with await session.start_transaction():
            (event_id,) = await outbox.emit(session, PLACED)
            assert await async_shop.outbox.count_documents({}) == 0
    (stored,) = await async_shop.outbox.find({}, {"occurred_at": False}).to_list()
    assert bson.encode(stored) == bson.encode(
        {
            "_id": event_id,
            "aggregate": "Order",
            "aggregate_id": "order-1",
            "event_type": "OrderPlaced",
            "payload": {"total": 5},
        }
    )
