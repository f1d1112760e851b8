"""The process: stand by until leading, lead, give up, and start over, until told to stop."""

import asyncio
from collections.abc import Callable

import structlog

from outbox_api.reasons import RelayReason
from outbox_relay.checkpoint.keeper import CheckpointKeeper
from outbox_relay.checkpoint.store import SupersededError
from outbox_relay.leadership.deadline import Deadline
from outbox_relay.leadership.elector import Elector
from outbox_relay.line import Surroundings
from outbox_relay.problems import LeadershipLostError
from outbox_relay.report.writer import Reporter
from outbox_relay.source.pending import PendingCount
from outbox_relay.tasks import run_with, unless
from outbox_relay.term import Term

log = structlog.get_logger(__name__)

EXIT_SUPERSEDED = 3
_AGAIN_SECONDS = 1.0
_LAST_REPORT_SECONDS = 2.0


class Relay:
    """One process of a shard.

    Attributes:
        term: the term that is led now; None while standing by.
    """

    def __init__(
        self,
        around: Surroundings,
        elector: Elector,
        *,
        new_keeper: Callable[[], CheckpointKeeper],
        new_reporter: Callable[[], Reporter],
        pending: PendingCount,
        elected: bool,
        stop: asyncio.Event,
        drain_seconds: float,
    ) -> None:
        """Prepare it.

        Args:
            around: what outlives a term.
            elector: makes one process the leader.
            new_keeper: makes the checkpoint's keeper of a term.
            new_reporter: makes the reporter of a term.
            pending: counts what is unpublished while this process leads.
            elected: whether there is an election at all; without one, a second relay ends this one.
            stop: set when the process is to end.
            drain_seconds: how long its end may take.
        """
        self._around = around
        self._elector = elector
        self._new_keeper = new_keeper
        self._new_reporter = new_reporter
        self._pending = pending
        self._elected = elected
        self._stop = stop
        self._drain_seconds = drain_seconds
        self.term: Term | None = None

    async def run(self) -> int:
        """Work until told to stop; returns the exit code of the process."""
        while not self._stop.is_set():
            self._around.board.activity("Starting", RelayReason.STANDBY, "waiting to lead")
            deadline = await unless(self._stop, self._elector.acquire())
            if deadline is None:
                break
            try:
                await self._lead(deadline)
            except LeadershipLostError as lost:
                log.warning("no longer leading", why=str(lost))
                if isinstance(lost, SupersededError) and not self._elected:
                    return EXIT_SUPERSEDED
                await unless(self._stop, asyncio.sleep(_AGAIN_SECONDS))
        return 0

    async def _lead(self, deadline: Deadline) -> None:
        board = self._around.board
        board.clear_all()
        board.activity("Starting", RelayReason.STARTING, "taking up the position")
        self.term = Term(self._around, self._new_keeper(), deadline, stop=self._stop, drain_seconds=self._drain_seconds)
        reporter = self._new_reporter()
        try:
            await run_with(self.term.run(), self._elector.keep(deadline), reporter.run(), self._pending.run())
            board.activity("Stopped", RelayReason.DRAINING, "drained")
            await _last_word(reporter)
            await self._elector.release()
        finally:
            deadline.revoke()
            self.term = None


async def _last_word(reporter: Reporter) -> None:
    try:
        async with asyncio.timeout(_LAST_REPORT_SECONDS):
            await reporter.flush()
    except TimeoutError:
        log.warning("the last report was not written")
