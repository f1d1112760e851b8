"""The line from source to sink for one term: its parts, put together."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from outbox_api.checkpoint import ClusterTime, Position
from outbox_api.relay_config import RelaySpec
from outbox_api.spec import field_names, order_field
from outbox_relay.backoff import Backoff
from outbox_relay.checkpoint.keeper import CheckpointKeeper
from outbox_relay.events import Refusal
from outbox_relay.events.fields import FieldPaths, top_level
from outbox_relay.leadership.deadline import Deadline
from outbox_relay.leadership.io_guard import GuardedSelector
from outbox_relay.observe.lag import Lag
from outbox_relay.observe.metrics import Metrics
from outbox_relay.pipeline.budget import Budget
from outbox_relay.pipeline.flow import Flow
from outbox_relay.pipeline.tracker import Item, PositionTracker
from outbox_relay.problems import Problem
from outbox_relay.render import Renderer
from outbox_relay.report.board import Board, Part
from outbox_relay.sink.sender import Sender
from outbox_relay.source.backlog import Backlog
from outbox_relay.source.connection import SourceConnection
from outbox_relay.source.course import Course
from outbox_relay.source.done_before import DoneBefore
from outbox_relay.source.retry import SourceRetry
from outbox_relay.source.server_time import ServerClock, ask
from outbox_relay.source.settle import Settler
from outbox_relay.source.stream import ChangeStream

READ_AHEAD_BYTES = 16 * 1024 * 1024
READ_AHEAD_EVENTS = 10_000


@dataclass(frozen=True)
class Surroundings:
    """What outlives a term: made once for the process.

    Attributes:
        spec: what to relay.
        connection: the source.
        renderer: makes records of documents.
        board: told what goes on.
        metrics: counted into.
        clock: the server's wall clock.
        lag: told what to measure.
        io_guard: asks whether the deadline has passed, before the loop writes anything.
    """

    spec: RelaySpec
    connection: SourceConnection
    renderer: Renderer
    board: Board
    metrics: Metrics
    clock: ServerClock
    lag: Lag
    io_guard: GuardedSelector

    @property
    def published_field(self) -> str:
        """Path of the field that is marked in a published document."""
        return field_names(self.spec.source.fields).published_at

    def backoff(self) -> Backoff:
        """Return new pauses between attempts."""
        return Backoff.from_spec(self.spec.failure.backoff)

    def retry(self, part: Part) -> SourceRetry:
        """Return what repeats failed operations on the source for a part of the relay."""
        return SourceRetry(self.connection, part, self.board, self.backoff())


class Line:
    """Reads, sends and settles from the checkpoint's position on.

    Attributes:
        tracker: what is on its way, and the position.
        budget: how much is on its way.
        last_published: when an event was last acknowledged, in seconds since 1970.
    """

    def __init__(self, around: Surroundings, keeper: CheckpointKeeper, deadline: Deadline, now: ClusterTime) -> None:
        """Put the parts together.

        Args:
            around: what outlives the term.
            keeper: the claimed checkpoint.
            deadline: until when to send.
            now: the server's cluster time after the leadership was won: events up to it may have been sent before.
        """
        spec = around.spec
        published = around.published_field
        self._around = around
        self._keeper = keeper
        self._now = now
        self._published_field = published
        self._fields = around.renderer.fields | top_level([published])
        self.last_published: float | None = None
        self.budget = Budget(READ_AHEAD_BYTES, READ_AHEAD_EVENTS)
        self.tracker = PositionTracker(self.budget, keeper.written)
        self.settler = Settler(
            around.connection,
            spec.after_publish,
            published,
            settled=self.tracker.settle,
            new_retry=lambda: around.retry(Part.MARKS),
        )
        self.sender = Sender(
            spec.sink,
            deadline,
            io_guard=around.io_guard,
            acknowledged=self._acknowledged,
            poisoned=self._poisoned,
            rebuilt=around.metrics.rebuilds.inc,
            max_attempts=spec.failure.max_attempts,
            board=around.board,
            backoff=around.backoff(),
        )
        self.flow = Flow(
            around.renderer,
            self.sender,
            self.tracker,
            self.budget,
            DoneBefore(around.connection, spec.after_publish, published, around.retry(Part.STREAM)),
            outstanding=lambda: self.sender.unacknowledged + self.settler.unsettled,
            refused=self._refused,
            skipped=around.metrics.skipped.inc,
        )

    async def run(self) -> None:
        """Move events until `flow` is stopped and what was taken up is settled.

        Raises:
            StalledError: there is no going on.
        """
        around = self._around
        course = Course(
            around.connection.namespace,
            around.spec.after_publish,
            operation_time=self._operation_time,
            new_stream=self._stream,
            backlog=self._backlog(),
            persist=self._keeper.write,
            heard=around.lag.heard,
            budget=self.budget,
            board=around.board,
        )
        around.lag.follow(self.tracker)
        try:
            await self.flow.run(course.batches(self._keeper.written))
        finally:
            around.lag.follow(None)

    async def follow_clock(self, every: float) -> None:
        """Keep the server's clock fresh until cancelled: ours may run at another speed."""
        retry = self._around.retry(Part.CLOCK)
        while True:
            await asyncio.sleep(every)
            await retry.run(lambda: ask(self._around.connection, self._around.clock))

    async def _operation_time(self) -> ClusterTime:
        around = self._around
        hello = await around.retry(Part.SWEEP).run(lambda: ask(around.connection, around.clock))
        return hello.operation_time

    def _stream(self, position: Position) -> ChangeStream:
        around = self._around
        return ChangeStream(
            around.connection, self._fields, position, replayed_until=self._now, retry=around.retry(Part.STREAM)
        )

    def _backlog(self) -> Backlog:
        source = self._around.spec.source
        order = FieldPaths(field_names(source.fields)).path(order_field(source))
        return Backlog(
            self._around.connection, self._fields, self._published_field, order, self._around.retry(Part.SWEEP)
        )

    def _acknowledged(self, items: Sequence[Item]) -> None:
        metrics = self._around.metrics
        self.last_published = time.time()
        metrics.published.labels(items[0].record.topic).inc(len(items))
        self._observe_latency(items)
        self.settler.acknowledged(items)

    def _observe_latency(self, items: Sequence[Item]) -> None:
        """Note the latency of a batch by its first and its last event: each of them would cost more than sending."""
        now = self._around.clock.now()
        if now is None:
            return
        half = (len(items) + 1) // 2
        for item, events in ((items[0], half), (items[-1], len(items) - half)):
            committed = item.chunk.batch.committed(item.index)
            if committed is not None and events:
                self._around.metrics.latency.observe(max(0.0, now - committed), events)

    def _poisoned(self, problem: Problem) -> None:
        self.flow.poisoned(problem)

    def _refused(self, refusal: Refusal) -> None:
        self._around.metrics.failed.labels("", refusal.reason).inc()
