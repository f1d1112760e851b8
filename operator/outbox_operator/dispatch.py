"""Hands the queue's keys to a coroutine, several at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from outbox_operator.queue import KeyedQueue

K = TypeVar("K", bound=Hashable)


class Dispatcher(Generic[K]):
    """Runs `work` for each key that the queue hands out.

    `work` gets the key and the seconds it waited, and calls `done` or `retry` of the queue itself: what a failure means
    is its own decision. An exception that escapes it is a programming error and ends `run`.
    """

    def __init__(self, queue: KeyedQueue[K], work: Callable[[K, float], Awaitable[None]], *, concurrency: int) -> None:
        """A dispatcher that does not run yet.

        Args:
            queue: where keys come from; its `wake` is taken over.
            work: called for each key handed out.
            concurrency: how many keys may be in work at once.
        """
        self._queue = queue
        self._work = work
        self._concurrency = concurrency
        self._wake = asyncio.Event()
        queue.wake = self._wake.set

    async def run(self) -> None:
        """Work until cancelled; what is in work then is cancelled with it."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._wake.clear()
                while self._queue.in_flight < self._concurrency and (taken := self._queue.take()) is not None:
                    task = tasks.create_task(self._run_one(taken.key, taken.waited), name=f"reconcile {taken.key}")
                    task.add_done_callback(lambda _: self._wake.set())
                await self._until_woken()

    async def _run_one(self, key: K, waited: float) -> None:
        await self._work(key, waited)

    async def _until_woken(self) -> None:
        full = self._queue.in_flight >= self._concurrency
        timeout = None if full else self._queue.next_due()
        try:
            async with asyncio.timeout(timeout):
                await self._wake.wait()
        except TimeoutError:
            return  # a key is due
