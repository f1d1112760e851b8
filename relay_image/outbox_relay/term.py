"""One term of leadership: from claiming the checkpoint to the last write of the position."""

import asyncio

import structlog

from outbox_api.reasons import RelayReason
from outbox_relay.checkpoint.keeper import CheckpointKeeper
from outbox_relay.checkpoint.store import Claimed
from outbox_relay.leadership.deadline import Deadline
from outbox_relay.line import Line, Surroundings
from outbox_relay.problems import Problem, StalledError
from outbox_relay.report.board import Part
from outbox_relay.source.server_time import ask
from outbox_relay.tasks import first_of, run_with, unless

log = structlog.get_logger(__name__)

_CLOCK_SECONDS = 30.0
_LAST_WRITE_SECONDS = 3.0


class Term:
    """Leads a shard until it is told to stop, or the leadership is lost.

    Attributes:
        epoch: of the claimed checkpoint; None before.
        line: what moves events now; None before and between.
    """

    def __init__(
        self,
        around: Surroundings,
        keeper: CheckpointKeeper,
        deadline: Deadline,
        *,
        stop: asyncio.Event,
        drain_seconds: float,
    ) -> None:
        """Prepare it.

        Args:
            around: what outlives the term.
            keeper: the checkpoint.
            deadline: until when to send.
            stop: set when the process is to end.
            drain_seconds: how long its end may take.
        """
        self._around = around
        self._keeper = keeper
        self._deadline = deadline
        self._stop = stop
        self._drain_seconds = drain_seconds
        self.epoch: int | None = None
        self.line: Line | None = None

    @property
    def position_age(self) -> float:
        """Seconds since the position was last written, or since the term began."""
        return self._keeper.age

    async def run(self) -> None:
        """Lead until told to stop, and drain.

        Raises:
            LeadershipLostError: another leads, or may soon.
        """
        board = self._around.board
        claimed: Claimed | None = None
        while not self._stop.is_set():
            try:
                claimed = claimed or await self._claim()
                if claimed is not None:
                    self._refuse_lost(claimed)
                    await self._work()
            except StalledError as stalled:
                log.warning("stalled", reason=stalled.problem.reason, message=stalled.problem.message)
                board.trouble(Part.STALL, stalled.problem)
                await first_of(self._stop, within=stalled.retry_after)
                if not self._stop.is_set():
                    board.clear(Part.STALL)

    async def _claim(self) -> Claimed | None:
        claimed = await unless(self._stop, self._keeper.claim(self._around.connection.namespace))
        if claimed is not None:
            self.epoch = claimed.checkpoint.epoch
            position = claimed.checkpoint.position
            log.info("claimed the checkpoint", epoch=self.epoch, position=position and position.cluster_time)
        return claimed

    def _refuse_lost(self, claimed: Claimed) -> None:
        if claimed.lost is not None:
            raise StalledError(
                Problem(
                    RelayReason.HISTORY_LOST,
                    f"the position of {self._around.connection.namespace} is gone (it was {claimed.lost}); starting "
                    "anew would pass over what was inserted since. Restore the checkpoint, or delete the checkpoint "
                    "and the report to start from the unpublished events",
                )
            )

    async def _work(self) -> None:
        around = self._around
        hello = await unless(self._stop, around.retry(Part.STREAM).run(lambda: ask(around.connection, around.clock)))
        if hello is None:
            return
        self.line = line = Line(around, self._keeper, self._deadline, hello.operation_time)
        await run_with(
            self._move(line),
            line.sender.run(),
            line.settler.run(),
            self._keeper.follow(line.tracker),
            line.follow_clock(_CLOCK_SECONDS),
            self._drain(line),
        )

    async def _move(self, line: Line) -> None:
        await first_of(line.sender.connected, self._stop)
        if self._stop.is_set():
            return
        try:
            await line.run()
        finally:
            if not self._deadline.passed:
                await self._write_last(line)

    async def _drain(self, line: Line) -> None:
        """Once told to stop, let the line come to its end."""
        await self._stop.wait()
        self._around.board.activity("Streaming", RelayReason.DRAINING, "finishing what was read")
        line.flow.stop(self._drain_seconds)
        await asyncio.Event().wait()

    async def _write_last(self, line: Line) -> None:
        try:
            async with asyncio.timeout(_LAST_WRITE_SECONDS):
                await self._keeper.flush(line.tracker)
        except TimeoutError:
            log.warning("the last position was not written; the next leader goes on from the one before")
