"""A Kafka producer that cannot outlive our leadership, nor hang at its end.

aiokafka offers neither a check before bytes are written nor a stop without flushing, so this module reaches into
names that are private there. It is the only one that does, and the version is pinned.
"""

import asyncio
import contextlib
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.client import ConnectionGroup
from aiokafka.errors import KafkaError, NodeNotReadyError, RequestTimedOutError

from outbox_api.quantities import parse_size
from outbox_api.relay_config import RelaySink
from outbox_relay.leadership.deadline import Deadline
from outbox_relay.problems import LeadershipLostError

BATCH_BYTES = 256 * 1024
"""Records of one batch before compression: a larger one gains nothing, and costs latency and memory."""

_REQUEST_SECONDS = 20.0
_START_SECONDS = 15.0
_ABANDON_SECONDS = 1.0
_METADATA_SECONDS = 30.0


async def start_producer(sink: RelaySink, deadline: Deadline) -> AIOKafkaProducer:
    """Connect to the brokers: acknowledged by all in-sync replicas, idempotent, sending only before `deadline`.

    Raises:
        KafkaError: the brokers refuse.
        TimeoutError: they did not answer in time.
    """
    producer = AIOKafkaProducer(
        bootstrap_servers=sink.bootstrap_servers,
        client_id="outbox-relay",
        acks="all",
        enable_idempotence=True,
        compression_type=None if sink.compression == "none" else sink.compression,
        max_batch_size=min(BATCH_BYTES, parse_size(sink.max_request_size)),
        max_request_size=parse_size(sink.max_request_size),
        linger_ms=0,
        request_timeout_ms=int(_REQUEST_SECONDS * 1000),
        metadata_max_age_ms=int(_METADATA_SECONDS * 1000),
        retry_backoff_ms=100,
    )
    _guard(producer, deadline)
    try:
        async with asyncio.timeout(_START_SECONDS):
            await producer.start()
    except BaseException:
        await abandon(producer)
        raise
    return producer


async def abandon(producer: AIOKafkaProducer) -> None:
    """End a producer at once: connections are closed without flushing, and nothing waits for a broker."""
    abort_connections(producer)
    # What its own stop() would do, without the flush that waits for brokers which may never answer.
    producer._closed = True  # noqa: SLF001
    client = producer.client
    sender_task = producer._sender.sender_task  # noqa: SLF001
    tasks = [task for task in (sender_task, client._sync_task) if task is not None]  # noqa: SLF001
    for task in tasks:
        task.cancel()
    if client._md_update_fut is not None:  # noqa: SLF001 - or tasks of the sender wait on it for ever
        client._md_update_fut.cancel()  # noqa: SLF001
    if tasks:
        await asyncio.wait(tasks, timeout=_ABANDON_SECONDS)
    abort_connections(producer)
    with contextlib.suppress(TimeoutError, asyncio.CancelledError):
        async with asyncio.timeout(_ABANDON_SECONDS):
            await client.close()


def abort_connections(producer: AIOKafkaProducer) -> None:
    """Close every connection now and drop what was not sent yet."""
    for connection in list(producer.client._conns.values()):  # noqa: SLF001
        if connection._writer is not None:  # noqa: SLF001
            connection._writer.transport.abort()  # noqa: SLF001


def _guard(producer: AIOKafkaProducer, deadline: Deadline) -> None:
    """Let the producer write requests only before the deadline."""
    client = producer.client

    async def send(node_id: int, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> Any:
        connection = await client._get_conn(node_id, group=group)  # noqa: SLF001
        if connection is None:
            raise NodeNotReadyError(f"broker {node_id} is not ready")
        # Nothing is awaited between this check and the write to the socket.
        if deadline.passed:
            abort_connections(producer)
            raise LeadershipLostError("the time for which this process may send is over")
        try:
            return await connection.send(request)
        except TimeoutError as error:
            connection.close()
            raise RequestTimedOutError from error

    client.send = send


async def reach(sink: RelaySink) -> None:
    """Connect once and leave, to know that the brokers answer and accept us.

    Raises:
        KafkaError: the brokers refuse.
        TimeoutError: they did not answer in time.
    """
    await abandon(await start_producer(sink, Deadline.never()))


__all__ = ["BATCH_BYTES", "KafkaError", "abandon", "abort_connections", "reach", "start_producer"]
