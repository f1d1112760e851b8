"""What happens to an event in its collection once Kafka has it: marked, deleted, or kept."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from pymongo.errors import DocumentTooLarge

from outbox_relay.pipeline.tracker import Item
from outbox_relay.source.connection import SourceConnection
from outbox_relay.source.retry import SourceRetry

AfterPublish = Literal["Mark", "Delete", "Keep"]

_WRITE_EVENTS = 1_000
_WRITERS = 2
"""Writes in flight: while the server waits for the majority of one, it works on the other."""

_ANSWER_SECONDS = 30.0


class Settler:
    """Takes acknowledged events and settles them, in batches, in no particular order, until each is done.

    Attributes:
        unsettled: events that were acknowledged and are not settled.
    """

    def __init__(
        self,
        connection: SourceConnection,
        after_publish: AfterPublish,
        published_field: str,
        *,
        settled: Callable[[Sequence[Item]], None],
        new_retry: Callable[[], SourceRetry],
    ) -> None:
        """Prepare it.

        Args:
            connection: the source.
            after_publish: what to do to the documents.
            published_field: path of the field to mark.
            settled: told of the events that need nothing more.
            new_retry: makes what repeats the failed writes of one writer.
        """
        self._connection = connection
        self._after_publish = after_publish
        self._published_field = published_field
        self._settled = settled
        self._new_retry = new_retry
        self._waiting: deque[Item] = deque()
        self._wake = asyncio.Event()
        self.unsettled = 0

    def acknowledged(self, items: Sequence[Item]) -> None:
        """Take over events that Kafka has."""
        if self._after_publish == "Keep":
            self._settled(items)
            return
        self.unsettled += len(items)
        self._waiting.extend(items)
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled."""
        if self._after_publish == "Keep":
            return
        async with asyncio.TaskGroup() as group:
            for _ in range(_WRITERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        retry = self._new_retry()
        while True:
            while not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            items = [self._waiting.popleft() for _ in range(min(_WRITE_EVENTS, len(self._waiting)))]
            ids = [item.record.document_id for item in items]
            await retry.run(partial(self._apply, ids))
            self.unsettled -= len(items)
            self._settled(items)

    async def _apply(self, ids: list[Any]) -> None:
        collection = await self._connection.collection()
        selected = {"_id": {"$in": ids}}
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                if self._after_publish == "Delete":
                    await collection.delete_many(selected)
                else:
                    await collection.update_many(
                        {**selected, self._published_field: None}, {"$currentDate": {self._published_field: True}}
                    )
        except DocumentTooLarge:
            # Ids may be documents of some kilobytes; one alone always fits.
            half = len(ids) // 2
            await self._apply(ids[:half])
            await self._apply(ids[half:])
