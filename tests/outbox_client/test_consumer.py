import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from pymongo.asynchronous.database import AsyncDatabase

from outbox_client import AsyncInbox
from outbox_client.consumer import EventIdMissingError, commit, consume
from outbox_dev.kafka import Kafka

DEADLINE_SECONDS = 60


@asynccontextmanager
async def consumer_of(kafka: Kafka, topic: str) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=kafka.bootstrap_servers,
        group_id=f"{topic}-group",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def send(kafka: Kafka, topic: str, *ids: str | None) -> None:
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all") as producer:
        for event_id in ids:
            headers = [("type", b"x")] if event_id is None else [("type", b"x"), ("id", event_id.encode())]
            await producer.send_and_wait(topic, b"v", key=b"k", headers=headers)


@pytest.fixture
async def topic(kafka: Kafka, unique: str) -> str:
    await kafka.create_topic(unique, partitions=1)
    return unique


async def test_a_record_that_is_delivered_twice_has_one_effect_and_its_offset_is_committed(
    kafka: Kafka, topic: str, async_shop: AsyncDatabase[Any]
) -> None:
    await send(kafka, topic, "a", "b", "a", "c", "b")
    seen: list[str] = []

    async def effect(record: Any, session: Any) -> None:
        await async_shop.effects.insert_one({"id": dict(record.headers)["id"].decode()}, session=session)
        seen.append(dict(record.headers)["id"].decode())

    async with consumer_of(kafka, topic) as consumer:
        task = asyncio.create_task(consume(consumer, AsyncInbox(async_shop.handled, "billing"), effect, poll_ms=50))
        async with asyncio.timeout(DEADLINE_SECONDS):
            while await consumer.committed(TopicPartition(topic, 0)) != 5:  # noqa: ASYNC110 - no event tells of it
                await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [effect["id"] for effect in await async_shop.effects.find().sort("_id").to_list()] == ["a", "b", "c"]
    assert seen == ["a", "b", "c"]


async def test_an_effect_that_fails_leaves_its_record_to_be_delivered_again(
    kafka: Kafka, topic: str, async_shop: AsyncDatabase[Any]
) -> None:
    await send(kafka, topic, "a")

    async def fail(record: Any, session: Any) -> None:
        raise KeyError(record.key)

    async with consumer_of(kafka, topic) as consumer:
        async with asyncio.timeout(DEADLINE_SECONDS):
            with pytest.raises(KeyError):
                await consume(consumer, AsyncInbox(async_shop.handled, "billing"), fail)
        assert await consumer.committed(TopicPartition(topic, 0)) is None
    assert await async_shop.handled.count_documents({}) == 0


async def test_a_record_without_an_id_is_refused_by_its_place(
    kafka: Kafka, topic: str, async_shop: AsyncDatabase[Any]
) -> None:
    await send(kafka, topic, None)

    async def effect(record: Any, session: Any) -> None:
        raise AssertionError

    async with consumer_of(kafka, topic) as consumer, asyncio.timeout(DEADLINE_SECONDS):
        with pytest.raises(EventIdMissingError, match=rf"{topic}\[0\]@0 has no header 'id'"):
            await consume(consumer, AsyncInbox(async_shop.handled, "billing"), effect)


async def test_the_offset_of_a_partition_that_went_to_another_member_is_left_to_it(kafka: Kafka, topic: str) -> None:
    await send(kafka, topic, "a")
    async with consumer_of(kafka, topic) as former, asyncio.timeout(DEADLINE_SECONDS):
        record = await former.getone()
        former.unsubscribe()
        await commit(former, record)
    async with consumer_of(kafka, topic) as owner, asyncio.timeout(DEADLINE_SECONDS):
        assert (await owner.getone()).offset == 0
