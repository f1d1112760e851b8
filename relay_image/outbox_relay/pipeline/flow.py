"""The stages of one run through a source: read, render, send, settle. They overlap, and what is between is bounded."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence

import structlog

from outbox_api.reasons import RelayReason
from outbox_relay.events import Record, Refusal
from outbox_relay.pipeline.batch import SourceBatch
from outbox_relay.pipeline.budget import Budget
from outbox_relay.pipeline.tracker import Item, PositionTracker
from outbox_relay.problems import Problem, StalledError
from outbox_relay.render import Renderer
from outbox_relay.routing.sendable import is_legal_topic, placement, sendable
from outbox_relay.sink.poison import STOPPED
from outbox_relay.sink.sender import Sender
from outbox_relay.source.done_before import DoneBefore

log = structlog.get_logger(__name__)

_READ_AHEAD = 2
"""Batches read and not rendered yet: the next one is on its way while one is worked on."""


class Flow:
    """Moves a source's batches through rendering to the sender, in order, until stopped."""

    def __init__(
        self,
        renderer: Renderer,
        sender: Sender,
        tracker: PositionTracker,
        budget: Budget,
        done_before: DoneBefore,
        *,
        outstanding: Callable[[], int],
        refused: Callable[[Refusal], None],
        skipped: Callable[[int], None],
    ) -> None:
        """Prepare it.

        Args:
            renderer: makes records of documents.
            sender: takes records.
            tracker: follows what is not settled yet.
            budget: bounds what is read ahead.
            done_before: knows which events need nothing more.
            outstanding: returns how many events are on their way and will be settled.
            refused: told of an event that becomes no record.
            skipped: told how many events were done before.
        """
        self._renderer = renderer
        self._sender = sender
        self._tracker = tracker
        self._budget = budget
        self._done_before = done_before
        self._outstanding = outstanding
        self._refused = refused
        self._skipped = skipped
        self._poison: Problem | None = None
        self._stopping = asyncio.Event()
        self._give_up_at: float | None = None

    def stop(self, within: float) -> None:
        """Read no further; `run` returns once what was taken up is settled, or after `within` seconds."""
        self._give_up_at = asyncio.get_running_loop().time() + within
        self._stopping.set()
        self._tracker.moved.set()

    def poisoned(self, problem: Problem) -> None:
        """Stop at an event that cannot be sent, after everything else that was taken up."""
        if self._poison is None:
            self._poison = problem
            self._stopping.set()
        self._tracker.moved.set()  # what the poison holds back is no longer waited for

    async def run(self, batches: AsyncGenerator[SourceBatch]) -> None:
        """Work until the source ends or `stop` is called, then until what was taken up is settled.

        Raises:
            StalledError: an event is poison; all before it is settled.
            Exception: whatever ends the source; what was read before is settled.
        """
        queue: asyncio.Queue[SourceBatch | None] = asyncio.Queue(_READ_AHEAD)
        reader = asyncio.create_task(self._read(batches, queue))
        renderer = asyncio.create_task(self._render(queue))
        stopper = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([renderer, stopper], return_when=asyncio.FIRST_COMPLETED)
            if not renderer.done():
                reader.cancel()  # what it has read and nobody rendered is read again by whoever comes next
                await asyncio.wait([reader])
                renderer.cancel()
                await asyncio.wait([renderer])
            await self._settled()
            if self._poison is not None:
                raise StalledError(self._poison)
            for task in (reader, renderer):
                if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                    raise error
        finally:
            stopper.cancel()
            for task in (reader, renderer):
                task.cancel()
            await asyncio.wait([reader, renderer])
            await batches.aclose()

    async def _read(self, batches: AsyncGenerator[SourceBatch], queue: "asyncio.Queue[SourceBatch | None]") -> None:
        try:
            async for batch in batches:
                self._budget.take(batch.size, len(batch.documents))
                await queue.put(batch)
                await self._budget.room()
        except Exception:
            await queue.put(None)
            raise
        await queue.put(None)

    async def _render(self, queue: "asyncio.Queue[SourceBatch | None]") -> None:
        while (batch := await queue.get()) is not None:
            await self._take_up(batch)
            if self._poison is not None:
                return
            # The loop has other work: acknowledgements, renewals, health.
            await asyncio.sleep(0)

    async def _take_up(self, batch: SourceBatch) -> None:
        outcomes = [self._renderer.render(document) for document in batch.documents]
        done = await self._done_before.indexes(batch, outcomes)
        counts = await self._partition_counts(outcomes)
        # From here on nothing is awaited: a stop never finds a batch half taken up.
        chunk = self._tracker.add(batch)
        batch.rendered()
        lanes: dict[tuple[str, int], list[Item]] = {}
        now_ms = int(time.time() * 1000)
        skipped: list[int] = []
        for index, outcome in enumerate(outcomes):
            if index in done:
                skipped.append(index)
                continue
            placed = _place(outcome, counts, now_ms)
            if isinstance(placed, Refusal):
                self._refuse(placed)
                break
            record, partition = placed
            key = (record.topic, partition)
            items = lanes.get(key)
            if items is None:
                items = lanes[key] = []
            items.append(Item(chunk, index, record))
        if skipped:
            self._tracker.skip(chunk, skipped)
            self._skipped(len(skipped))
        for (topic, partition), items in lanes.items():
            self._sender.submit(topic, partition, items)

    async def _partition_counts(self, outcomes: Sequence[Record | Refusal]) -> dict[str, int]:
        """Return the number of partitions of every topic, waiting for those that are missing."""
        topics = {outcome.topic for outcome in outcomes if isinstance(outcome, Record)}
        return {topic: await self._sender.partitions(topic) for topic in topics if is_legal_topic(topic)}

    def _refuse(self, refusal: Refusal) -> None:
        self._refused(refusal)
        log.error("poison event", reason=refusal.reason, message=refusal.message)
        self.poisoned(Problem(RelayReason.POISON_EVENT, f"{refusal.message}: {STOPPED}"))

    async def _settled(self) -> None:
        """Wait until all that was taken up is settled, except what a poison event holds back."""
        while self._outstanding():
            self._tracker.moved.clear()
            try:
                async with asyncio.timeout_at(self._give_up_at):
                    await self._tracker.moved.wait()
            except TimeoutError:
                log.warning("not everything was settled in time; the next leader sends it", events=self._outstanding())
                return


def _place(outcome: Record | Refusal, counts: dict[str, int], now_ms: int) -> tuple[Record, int] | Refusal:
    if isinstance(outcome, Refusal):
        return outcome
    record = sendable(outcome, now_ms)
    if isinstance(record, Refusal):
        return record
    partition = placement(record, counts[record.topic])
    return partition if isinstance(partition, Refusal) else (record, partition)
