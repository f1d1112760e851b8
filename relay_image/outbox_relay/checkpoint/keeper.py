"""When the position is written: under load at an interval, when idle rarely, and at the end."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from outbox_api.checkpoint import Position
from outbox_api.quantities import parse_duration
from outbox_api.spec.checkpointing import Checkpointing
from outbox_relay.backoff import Backoff
from outbox_relay.checkpoint.store import CheckpointStore, Claimed, StoreError
from outbox_relay.pipeline.tracker import PositionTracker
from outbox_relay.report.board import Board, Part

log = structlog.get_logger(__name__)

T = TypeVar("T")


class CheckpointKeeper:
    """Claims the checkpoint for a term, and writes the tracker's position as it moves."""

    def __init__(self, store: CheckpointStore, spec: Checkpointing, board: Board, backoff: Backoff) -> None:
        self._store = store
        self._interval = parse_duration(spec.interval).total_seconds()
        self._idle_interval = parse_duration(spec.idle_interval).total_seconds()
        self._board = board
        self._backoff = backoff
        self._written: Position | None = None
        self._written_at = time.monotonic()
        self._written_events = 0

    async def claim(self, source: str) -> Claimed:
        """Claim the checkpoint, however long it takes."""
        claimed = await self._persist(lambda: self._store.claim(source))
        self._written = claimed.checkpoint.position
        return claimed

    async def write(self, position: Position) -> None:
        """Write a position now, however long it takes.

        Raises:
            SupersededError: a later leader has claimed the checkpoint.
        """
        await self._persist(lambda: self._store.write(position))
        self._written = position
        self._written_at = time.monotonic()

    async def follow(self, tracker: PositionTracker) -> None:
        """Write the tracker's position as it moves, until cancelled.

        Raises:
            SupersededError: a later leader has claimed the checkpoint.
        """
        while True:
            await asyncio.sleep(self._interval)
            # Events move the position at each interval; an idle stream moves it all the time, which is worth a
            # write only so that it does not age out of the oplog.
            idle = tracker.settled_events == self._written_events
            if not idle or time.monotonic() - self._written_at >= self._idle_interval:
                await self.flush(tracker)

    async def flush(self, tracker: PositionTracker) -> None:
        """Write the tracker's position if it is another than the last one written."""
        events, position = tracker.settled_events, tracker.position
        if position is not None and position != self._written:
            await self.write(position)
        self._written_events = events

    @property
    def written(self) -> Position | None:
        """The position last written or claimed."""
        return self._written

    @property
    def age(self) -> float:
        """Seconds since the position was last written, or since the term began."""
        return time.monotonic() - self._written_at

    async def _persist(self, operation: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                result = await operation()
            except StoreError as error:
                pause = self._backoff.next()
                log.warning("checkpoint failed", message=error.problem.message, retry_seconds=round(pause, 2))
                self._board.trouble(Part.CHECKPOINT, error.problem)
                await asyncio.sleep(pause)
            else:
                self._backoff.reset()
                self._board.clear(Part.CHECKPOINT)
                return result
