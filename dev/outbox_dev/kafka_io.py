"""What tests and demo do with a Kafka cluster, by a path of their own.

Nothing here shares code with the relay: what it reads is evidence.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from outbox_dev.server import Server

if TYPE_CHECKING:
    from aiokafka.admin import AIOKafkaAdminClient

Isolation = Literal["read_uncommitted", "read_committed"]
_METADATA_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Record:
    """One record as it lies in the topic.

    Attributes:
        topic: topic name.
        partition: partition number.
        offset: its place in the partition.
        key: raw bytes, or None.
        value: raw bytes, or None for a tombstone.
        headers: in order; duplicates are kept.
        timestamp: milliseconds since the epoch.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int


@dataclass
class KafkaIO:
    """Topics and records of one cluster.

    Attributes:
        internal_servers: `host:port,…` of a listener without security.
        replicas: of each partition, where nothing else is said.
    """

    internal_servers: str
    replicas: int

    async def create_topic(
        self, topic: str, partitions: int = 1, *, replicas: int | None = None, config: Mapping[str, str] | None = None
    ) -> None:
        """Create one topic; see `create_topics`."""
        await self.create_topics([topic], partitions, replicas=replicas, config=config)

    async def create_topics(
        self,
        topics: Iterable[str],
        partitions: int = 1,
        *,
        replicas: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create topics and wait until each partition has a leader.

        Args:
            topics: names.
            partitions: of each.
            replicas: of each partition; the cluster's default when absent.
            config: topic settings, for example `{"max.message.bytes": "1000"}`.

        Raises:
            KafkaError: the cluster refused one, for example since it exists.
        """
        from aiokafka.admin import NewTopic
        from aiokafka.errors import for_code

        names = list(topics)
        async with self.admin() as admin:
            wanted = [
                NewTopic(name, partitions, replicas or self.replicas, topic_configs=dict(config or {}))
                for name in names
            ]
            answer = await admin.create_topics(wanted)
            for name, code, *message in answer.topic_errors:
                if code:
                    raise for_code(code)(f"topic {name}: {message[0] if message else ''}")
            async with asyncio.timeout(_METADATA_TIMEOUT_SECONDS):
                while not all(_has_leaders(t, partitions) for t in await admin.describe_topics(names)):  # noqa: ASYNC110 - the broker cannot call us
                    await asyncio.sleep(0.02)

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic.

        Raises:
            KafkaError: the cluster refused.
        """
        from aiokafka.errors import for_code

        async with self.admin() as admin:
            answer = await admin.delete_topics([topic])
            for _, code in answer.topic_error_codes:
                if code:
                    raise for_code(code)(f"topic {topic}")

    async def partitions(self, topic: str) -> list[int]:
        """Return the numbers of a topic's partitions.

        Raises:
            KafkaError: there is no such topic.
        """
        from aiokafka.errors import for_code

        async with self.admin() as admin:
            (found,) = await admin.describe_topics([topic])
        if found["error_code"]:
            raise for_code(found["error_code"])(f"topic {topic}")
        return sorted(partition["partition"] for partition in found["partitions"])

    async def end_offsets(self, topic: str, *, isolation: Isolation = "read_uncommitted") -> dict[int, int]:
        """Return, for each partition, the offset after the last record a reader may see.

        With `read_committed` it stops before the first open transaction.
        """
        async with self._consumer(topic, isolation) as (consumer, partitions):
            return {p.partition: offset for p, offset in (await consumer.end_offsets(partitions)).items()}

    async def read_all(self, topic: str, *, isolation: Isolation = "read_uncommitted") -> list[Record]:
        """Return everything in the topic now, by partition and offset."""
        async with self._consumer(topic, isolation) as (consumer, partitions):
            ends = await consumer.end_offsets(partitions)
            found: list[Record] = []
            # Not a count of records: offsets have gaps (transaction markers, compaction).
            while any([await consumer.position(p) < ends[p] for p in partitions]):
                for partition, batch in (await consumer.getmany(timeout_ms=200)).items():
                    found += [to_record(record) for record in batch if record.offset < ends[partition]]
            return sorted(found, key=lambda record: (record.partition, record.offset))

    @asynccontextmanager
    async def admin(self) -> AsyncIterator["AIOKafkaAdminClient"]:
        """Return a started admin client, closed at the end."""
        from aiokafka.admin import AIOKafkaAdminClient

        client = AIOKafkaAdminClient(bootstrap_servers=self.internal_servers)
        await client.start()
        try:
            yield client
        finally:
            await client.close()

    @asynccontextmanager
    async def _consumer(self, topic: str, isolation: Isolation) -> AsyncIterator[tuple[Any, list[Any]]]:
        """Give a consumer that stands at the beginning of every partition, and the partitions."""
        from aiokafka import AIOKafkaConsumer, TopicPartition

        partitions = [TopicPartition(topic, number) for number in await self.partitions(topic)]
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.internal_servers, isolation_level=isolation, auto_offset_reset="earliest"
        )
        try:
            await consumer.start()
            consumer.assign(partitions)
            yield consumer, partitions
        finally:
            await consumer.stop()


def to_record(record: Any) -> Record:
    """Turn an aiokafka `ConsumerRecord` into a `Record`."""
    return Record(
        record.topic,
        record.partition,
        record.offset,
        record.key,
        record.value,
        tuple((name, value) for name, value in record.headers),
        record.timestamp,
    )


def serves(address: str, node_id: int) -> Callable[[Server], bool]:
    """Return a check whether the broker at `address` takes part in the cluster as `node_id`."""

    async def check() -> bool:
        from aiokafka.client import AIOKafkaClient
        from aiokafka.errors import KafkaError

        client = AIOKafkaClient(bootstrap_servers=address)
        try:
            # By hand first: the client would log an error for each try.
            _, writer = await asyncio.open_connection(*address.split(":"))
            writer.close()
            await client.bootstrap()
        except (OSError, KafkaError):
            return False
        else:
            return any(broker.nodeId == node_id for broker in client.cluster.brokers())
        finally:
            await client.close()

    return lambda _: asyncio.run(check())


def _has_leaders(topic: Mapping[str, Any], partitions: int) -> bool:
    return (
        topic["error_code"] == 0
        and len(topic["partitions"]) == partitions
        and all(partition["leader"] >= 0 for partition in topic["partitions"])
    )
