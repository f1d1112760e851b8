"""Sends what the lanes hold: one submitting task a partition, one producer at a time, built anew when it fails."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from outbox_api.relay_config import RelaySink
from outbox_relay.backoff import Backoff
from outbox_relay.leadership.deadline import Deadline
from outbox_relay.leadership.io_guard import GuardedSelector
from outbox_relay.pipeline.tracker import Item
from outbox_relay.problems import LeadershipLostError, Problem
from outbox_relay.report.board import Board, Part
from outbox_relay.sink.lane import Lane, SentBatch
from outbox_relay.sink.poison import refused
from outbox_relay.sink.producer import abandon, abort_connections, start_producer
from outbox_relay.sink.verdict import Verdict, describe, judge, missing_topic

log = structlog.get_logger(__name__)

_OUTSTANDING = 2
"""Batches of a partition in the producer: one at the broker, one ready to follow it without a pause."""

_SILENCE_SECONDS = 5.0
"""Without an acknowledgement for so long, while something waits for one, the report says so."""

_REBUILD_SECONDS = 60.0
"""Without one for so long the producer is built anew: the brokers may have moved."""

_STEADY_SECONDS = 30.0
"""A producer that lived so long without a failure forgets the failures before."""

_TOPIC_SECONDS = 2.0
"""Longest pause between two questions for a topic that is missing."""

_ANSWER_SECONDS = 5.0
_CANCEL_SECONDS = 1.0


class _ProducerFailedError(Exception):
    """The producer can no longer be used; everything unacknowledged has to be sent by another.

    Attributes:
        cause: what ended it; None if nothing is wrong with the sink and the next may start at once.
    """

    def __init__(self, cause: BaseException | None, topic: str | None = None) -> None:
        super().__init__()
        self.cause = cause
        self.topic = topic


class Sender:
    """The way to Kafka. Within a partition nothing passes what was submitted before it, whatever fails.

    Attributes:
        connected: set while there is a producer that the brokers took.
    """

    def __init__(
        self,
        sink: RelaySink,
        deadline: Deadline,
        *,
        io_guard: GuardedSelector,
        acknowledged: Callable[[Sequence[Item]], None],
        poisoned: Callable[[Problem], None],
        rebuilt: Callable[[], None],
        max_attempts: int,
        board: Board,
        backoff: Backoff,
    ) -> None:
        """Prepare it.

        Args:
            sink: where to send.
            deadline: until when.
            io_guard: asks whether the deadline has passed, before the loop writes anything.
            acknowledged: told of events that all in-sync replicas have, in order within a partition.
            poisoned: told when a partition stops at an event that the broker refuses.
            rebuilt: told when a producer is replaced.
            max_attempts: attempts at one event whose refusal may pass.
            board: where trouble is told.
            backoff: pauses between producers.
        """
        self._sink = sink
        self._deadline = deadline
        self._io_guard = io_guard
        self._acknowledged = acknowledged
        self._poisoned = poisoned
        self._rebuilt = rebuilt
        self._max_attempts = max_attempts
        self._board = board
        self._backoff = backoff
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._producer: AIOKafkaProducer | None = None
        self.connected = asyncio.Event()
        self._failure: asyncio.Future[Exception] | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self._last_progress = time.monotonic()

    def submit(self, topic: str, partition: int, items: Iterable[Item]) -> None:
        """Queue events for a partition, behind those that are there."""
        lane = self._lanes.get((topic, partition))
        if lane is None:
            lane = self._lanes[topic, partition] = Lane(topic, partition)
            if self._producer is not None and self._failure is not None:
                self._start_pump(lane, self._producer, self._failure)
        if not self.unacknowledged:
            self._last_progress = time.monotonic()
        lane.add(items)

    @property
    def unacknowledged(self) -> int:
        """Events that are queued or sent and not acknowledged, without those behind a poison event."""
        return sum(lane.depth for lane in self._lanes.values() if lane.blocked is None)

    async def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic, waiting until there is such a topic."""
        pause = _TOPIC_SECONDS / 16
        while True:
            await self.connected.wait()
            if self._producer is not None:
                cluster = self._producer.client.cluster
                if known := cluster.partitions_for_topic(topic):
                    self._board.clear(Part.TOPIC)
                    return len(known)
                await self._ask_for(topic, self._producer)
                if cluster.partitions_for_topic(topic):
                    continue
            await asyncio.sleep(pause)
            pause = min(2 * pause, _TOPIC_SECONDS)

    async def _ask_for(self, topic: str, producer: AIOKafkaProducer) -> None:
        """Ask the brokers for a topic, and say so when there is none."""
        client, servers = producer.client, self._sink.bootstrap_servers
        client.add_topic(topic)
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                answered = await client.force_metadata_update()
        except (TimeoutError, KafkaError):
            answered = False
        if not answered:
            self._board.trouble(Part.TOPIC, describe(TimeoutError(), servers))
        elif topic in client.cluster.unauthorized_topics:
            self._board.trouble(Part.TOPIC, describe(TopicAuthorizationFailedError(), servers, topic))
        elif not client.cluster.partitions_for_topic(topic):
            self._board.trouble(Part.TOPIC, missing_topic(topic))

    async def run(self) -> None:
        """Send until cancelled.

        Raises:
            LeadershipLostError: the deadline has passed.
        """
        first = True
        while True:
            try:
                producer = await start_producer(self._sink, self._deadline)
            except (KafkaError, TimeoutError, OSError) as error:
                await self._pause(error, None)
                continue
            if not first:
                self._rebuilt()
            first = False
            began = time.monotonic()
            try:
                await self._serve(producer)
            except _ProducerFailedError as failure:
                self._deadline.check()
                if time.monotonic() - began > _STEADY_SECONDS:
                    self._backoff.reset()
                if failure.cause is not None:
                    await self._pause(failure.cause, failure.topic)

    async def _serve(self, producer: AIOKafkaProducer) -> None:
        """Send by one producer until it fails."""
        self._producer = producer
        self._io_guard.before_io = self._close_when_over
        failure: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._failure = failure
        self._last_progress = time.monotonic()
        try:
            for lane in self._lanes.values():
                self._start_pump(lane, producer, failure)
            self.connected.set()
            await self._watch(failure)
        finally:
            self._io_guard.before_io = None
            self.connected.clear()
            self._producer = None
            self._failure = None  # what batches of this producer say from now on counts no more
            pumps = list(self._pumps)
            for pump in pumps:
                pump.cancel()
            if pumps:
                await asyncio.wait(pumps, timeout=_CANCEL_SECONDS)
            await abandon(producer)
            for lane in self._lanes.values():
                lane.take_back()

    async def _watch(self, failure: "asyncio.Future[Exception]") -> None:
        """Wait for the failure of the producer, which may also be that it does nothing.

        Raises:
            _ProducerFailedError: always, at last.
            LeadershipLostError: the deadline has passed.
        """
        while True:
            await asyncio.wait([failure], timeout=min(1.0, self._deadline.remaining))
            self._deadline.check()
            if failure.done():
                raise failure.result()
            if not self.unacknowledged:
                self._last_progress = time.monotonic()
            silent = time.monotonic() - self._last_progress
            if silent > _SILENCE_SECONDS:
                self._board.trouble(Part.SINK, describe(TimeoutError(), self._sink.bootstrap_servers))
            if silent > _REBUILD_SECONDS:
                raise _ProducerFailedError(TimeoutError())

    def _close_when_over(self) -> None:
        if self._producer is not None and self._deadline.passed:
            abort_connections(self._producer)

    def _start_pump(self, lane: Lane, producer: AIOKafkaProducer, failure: "asyncio.Future[Exception]") -> None:
        if lane.blocked is None:
            pump = asyncio.create_task(self._pump(lane, producer, failure))
            self._pumps.add(pump)
            pump.add_done_callback(self._pump_ended)

    def _pump_ended(self, pump: "asyncio.Task[None]") -> None:
        self._pumps.discard(pump)
        if not pump.cancelled() and (error := pump.exception()) is not None:
            self._fail(error)

    async def _pump(self, lane: Lane, producer: AIOKafkaProducer, failure: "asyncio.Future[Exception]") -> None:
        """Submit the batches of one partition, one after the other: two submitters would reorder them."""
        while True:
            while not lane.waiting or len(lane.sent) >= _OUTSTANDING:
                lane.wake.clear()
                await lane.wake.wait()
            builder = producer.create_batch()
            items = lane.fill(builder)
            batch = SentBatch(items, time.monotonic())
            lane.sent.append(batch)  # before anything is awaited: a cancelled pump must not lose them
            delivery = await producer.send_batch(builder, lane.topic, partition=lane.partition)
            delivery.add_done_callback(partial(self._delivered, lane, failure))

    def _delivered(self, lane: Lane, failure: "asyncio.Future[Exception]", delivery: "asyncio.Future[Any]") -> None:
        error = KafkaError("the batch was cancelled") if delivery.cancelled() else delivery.exception()
        if failure is not self._failure or failure.done():
            return  # of a producer that is given up: its events are taken back and sent again
        if error is not None:
            self._refused(lane, error)
            return
        batch = lane.acknowledged()
        self._last_progress = time.monotonic()
        self._board.clear(Part.SINK)
        lane.wake.set()
        self._acknowledged(batch.items)

    def _refused(self, lane: Lane, error: BaseException) -> None:
        verdict = judge(error)
        if verdict is Verdict.SINK:
            self._fail(error, lane.topic)
            return
        culprit = lane.narrow()
        if culprit is not None and (verdict is Verdict.REFUSED or lane.attempts >= self._max_attempts):
            lane.blocked = refused(culprit, lane.topic, lane.partition, error)
            self._poisoned(lane.blocked)
        # After a refused batch the partition's later ones are out of sequence for the broker: only a new producer
        # helps, at once if the next attempt is another one.
        again = verdict is Verdict.SUSPECT and culprit is not None and lane.blocked is None
        self._fail(error if again else None, lane.topic)

    def _fail(self, error: BaseException | None, topic: str | None = None) -> None:
        failure = self._failure
        if failure is None or failure.done():
            return
        if isinstance(error, LeadershipLostError):
            failure.set_result(error)
            return
        log.warning("producer replaced", error=type(error).__name__, text=str(error)[:300], topic=topic)
        failure.set_result(_ProducerFailedError(error, topic))

    async def _pause(self, error: BaseException, topic: str | None) -> None:
        pause = self._backoff.next()
        problem = describe(error, self._sink.bootstrap_servers, topic)
        log.warning("sink failed", reason=problem.reason, message=problem.message, retry_seconds=round(pause, 2))
        self._board.trouble(Part.SINK, problem)
        await asyncio.sleep(min(pause, self._deadline.remaining))
        self._deadline.check()
