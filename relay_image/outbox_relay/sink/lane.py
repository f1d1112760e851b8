"""One topic-partition on its way to Kafka: a queue in order, and the batches that are not acknowledged yet."""

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from aiokafka.producer.message_accumulator import BatchBuilder

from outbox_relay.pipeline.tracker import Item
from outbox_relay.problems import Problem


@dataclass(slots=True)
class SentBatch:
    """Items that were given to the producer together, and the monotonic time of it."""

    items: list[Item]
    at: float


class Lane:
    """The order of one partition: what is not acknowledged stays in it and is sent again in the same order."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.waiting: deque[Item] = deque()
        self.sent: deque[SentBatch] = deque()
        self.wake = asyncio.Event()
        self.blocked: Problem | None = None
        self.attempts = 0
        self._suspects = 0
        self._limit = 0

    def add(self, items: Iterable[Item]) -> None:
        """Queue events behind those that wait."""
        self.waiting.extend(items)
        self.wake.set()

    @property
    def depth(self) -> int:
        """Events that are not acknowledged."""
        return len(self.waiting) + sum(len(batch.items) for batch in self.sent)

    def fill(self, builder: BatchBuilder) -> list[Item]:
        """Move waiting events into `builder` until it is full or nothing waits; at least one goes in."""
        append = builder.append
        filled = 0
        for item in islice(self.waiting, self._limit or None):
            record = item.record
            if append(timestamp=record.timestamp, key=record.key, value=record.value, headers=record.headers) is None:
                break
            filled += 1
        builder.close()
        return [self.waiting.popleft() for _ in range(filled)]

    def acknowledged(self) -> SentBatch:
        """Take the oldest batch out: Kafka has it. Batches of a partition are acknowledged in order."""
        batch = self.sent.popleft()
        self.attempts = 0
        if self._suspects:
            self._suspects = max(0, self._suspects - len(batch.items))
            if not self._suspects:
                self._limit = 0
        return batch

    def take_back(self) -> None:
        """Put everything that is not acknowledged back in front, in order: it has to be sent again."""
        while self.sent:
            self.waiting.extendleft(reversed(self.sent.pop().items))

    def narrow(self) -> Item | None:
        """After a refusal of the oldest batch: send its first half alone next. Returns the culprit once it is alone."""
        items = self.sent[0].items
        if len(items) == 1:
            self.attempts += 1
            return items[0]
        self._suspects = len(items)
        self._limit = len(items) // 2
        return None
