"""The bound of what is read ahead, in bytes and in events."""

import asyncio


class Budget:
    """Counts what is on its way, and makes the reader wait while that is too much.

    A batch is taken up whole, so the bytes on their way stay below `max_bytes` plus one batch of the source.
    """

    def __init__(self, max_bytes: int, max_events: int) -> None:
        self._max_bytes = max_bytes
        self._max_events = max_events
        self._room = asyncio.Event()
        self._room.set()
        self._empty = asyncio.Event()
        self._empty.set()
        self.bytes = 0
        self.events = 0

    def take(self, size: int, events: int) -> None:
        """Count a batch that is now on its way."""
        self.bytes += size
        self.events += events
        if self.events:
            self._empty.clear()
        if self.bytes >= self._max_bytes or self.events >= self._max_events:
            self._room.clear()

    def give(self, size: int, events: int) -> None:
        """Count a batch that is settled."""
        self.bytes -= size
        self.events -= events
        if self.bytes < self._max_bytes and self.events < self._max_events:
            self._room.set()
        if not self.events:
            self._empty.set()

    async def room(self) -> None:
        """Wait until one more batch may be read."""
        await self._room.wait()

    async def empty(self) -> None:
        """Wait until everything that was read is settled."""
        await self._empty.wait()
