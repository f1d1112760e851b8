import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.client_session import ClientSession
from pymongo.database import Database

from outbox_client import AsyncInbox, Inbox


def add_one(shop: Database[Any], session: ClientSession) -> None:
    shop.totals.update_one({"_id": "orders"}, {"$inc": {"count": 1}}, upsert=True, session=session)


def total(shop: Database[Any]) -> int:
    found = shop.totals.find_one({"_id": "orders"})
    return 0 if found is None else int(found["count"])


def test_the_effect_of_an_event_happens_once(shop: Database[Any]) -> None:
    inbox = Inbox(shop.handled, "billing")
    ran = [inbox.handle(event, lambda session: add_one(shop, session)) for event in ("a", "b", "a", "a")]
    assert ran == [True, True, False, False]
    assert total(shop) == 2


def test_an_effect_that_fails_is_undone_and_may_be_tried_again(shop: Database[Any]) -> None:
    inbox = Inbox(shop.handled, "billing")

    def fail(session: ClientSession) -> None:
        add_one(shop, session)
        raise KeyError

    with pytest.raises(KeyError):
        inbox.handle("a", fail)
    assert total(shop) == 0
    assert inbox.handle("a", lambda session: add_one(shop, session))
    assert total(shop) == 1


def test_one_event_that_arrives_many_times_at_once_has_one_effect(shop: Database[Any]) -> None:
    inbox = Inbox(shop.handled, "billing")
    together = threading.Barrier(6)

    def deliver(_: int) -> bool:
        together.wait(timeout=30)
        return inbox.handle("a", lambda session: add_one(shop, session))

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(deliver, range(6))) == [False] * 5 + [True]
    assert total(shop) == 1


def test_consumers_that_share_a_collection_each_handle_every_event(shop: Database[Any]) -> None:
    for consumer in ("billing", "shipping"):
        assert Inbox(shop.handled, consumer).handle("a", lambda session: add_one(shop, session))
    assert total(shop) == 2


def test_ids_are_forgotten_after_a_time_by_an_index(shop: Database[Any]) -> None:
    inbox = Inbox(shop.handled, "billing")
    inbox.forget_after(timedelta(days=30))
    inbox.forget_after(timedelta(days=30))
    index = shop.handled.index_information()["handled_at_ttl"]
    assert (index["key"], index["expireAfterSeconds"]) == ([("handled_at", 1)], 30 * 86_400)


async def test_the_asynchronous_inbox_keeps_the_same_promise(async_shop: AsyncDatabase[Any]) -> None:
    inbox = AsyncInbox(async_shop.handled, "billing")
    await inbox.forget_after(timedelta(days=30))

    async def effect(session: Any) -> None:
        await async_shop.totals.update_one({"_id": "orders"}, {"$inc": {"count": 1}}, upsert=True, session=session)

    assert [await inbox.handle(event, effect) for event in ("a", "a", "b")] == [True, False, True]
    found = await async_shop.totals.find_one({"_id": "orders"})
    assert found == {"_id": "orders", "count": 2}
