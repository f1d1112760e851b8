"""The position: the end of the settled prefix of what was read."""

import asyncio
from collections import deque
from collections.abc import Iterable

from outbox_api.checkpoint import Position
from outbox_relay.events import Record
from outbox_relay.pipeline.batch import SourceBatch
from outbox_relay.pipeline.budget import Budget


class Chunk:
    """A batch of the source on its way, with a flag for each event that is settled."""

    __slots__ = ("batch", "open", "settled")

    def __init__(self, batch: SourceBatch) -> None:
        self.batch = batch
        self.open = len(batch.documents)
        self.settled = bytearray(self.open)


class Item:
    """One event on its way to Kafka: its record, and its place in its chunk."""

    __slots__ = ("chunk", "index", "record")

    def __init__(self, chunk: Chunk, index: int, record: Record) -> None:
        self.chunk = chunk
        self.index = index
        self.record = record


class PositionTracker:
    """Follows what was read until it is settled. Chunks are added in stream order; events settle in any order.

    Attributes:
        event_position: position after the last event of the settled prefix; unlike `position` it rests when idle.
        moved: set whenever events were settled.
        unsettled: events that were added and are not settled.
        settled_events: events that were settled since the start.
    """

    def __init__(self, budget: Budget, start: Position | None = None) -> None:
        self._budget = budget
        self._chunks: deque[Chunk] = deque()
        self._settled = start
        self.event_position = start
        self.moved = asyncio.Event()
        self.unsettled = 0
        self.settled_events = 0

    def add(self, batch: SourceBatch) -> Chunk:
        """Take up the next batch; the budget gets its bytes back when the last of its events is settled."""
        chunk = Chunk(batch)
        last = self._chunks[-1] if self._chunks else None
        if not chunk.settled and last is not None and not last.settled:
            self._chunks.pop()  # a later marker replaces the one before: an idle stream does not pile them up
        self._chunks.append(chunk)
        self.unsettled += chunk.open
        self._advance()
        return chunk

    def settle(self, items: Iterable[Item]) -> None:
        """Note that events are settled; noting one twice has no effect."""
        for item in items:
            self._settle(item.chunk, item.index)
        self._advance()

    def skip(self, chunk: Chunk, indexes: Iterable[int]) -> None:
        """Note that events need nothing more: they were sent and marked before."""
        for index in indexes:
            self._settle(chunk, index)
        self._advance()

    @property
    def position(self) -> Position | None:
        """The position up to which everything is settled; None before the first is known."""
        if self._chunks:
            head = self._chunks[0]
            prefix = head.settled.find(0)
            if prefix > 0:
                return head.batch.position(prefix - 1) or self._settled
        return self._settled

    @property
    def oldest_commit(self) -> float | None:
        """When the oldest unsettled event was committed, in seconds since 1970; None if there is none or unknown."""
        for chunk in self._chunks:
            index = chunk.settled.find(0)
            if index >= 0:
                return chunk.batch.committed(index)
        return None

    def _settle(self, chunk: Chunk, index: int) -> None:
        if not chunk.settled[index]:
            chunk.settled[index] = 1
            chunk.open -= 1
            self.unsettled -= 1
            self.settled_events += 1

    def _advance(self) -> None:
        self.moved.set()
        while self._chunks and self._chunks[0].open == 0:
            chunk = self._chunks.popleft()
            events = len(chunk.settled)
            self._settled = chunk.batch.end or self._settled
            self._budget.give(chunk.batch.size, events)
            if events:
                self.event_position = chunk.batch.position(events - 1) or self.event_position
