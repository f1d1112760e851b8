"""Trying again what MongoDB did not do, with back-off, and telling about it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from pymongo.errors import PyMongoError

from outbox_relay.backoff import Backoff
from outbox_relay.problems import UnavailableError
from outbox_relay.report.board import Board, Part
from outbox_relay.source.connection import SourceConnection
from outbox_relay.source.errors import describe, needs_new_client

log = structlog.get_logger(__name__)

T = TypeVar("T")

SourceErrors = (PyMongoError, TimeoutError, UnavailableError)
"""What an operation on the source may raise for reasons that pass."""


class SourceRetry:
    """Repeats operations on the source until they succeed. Each user has its own, with its own pauses."""

    def __init__(self, connection: SourceConnection, part: Part, board: Board, backoff: Backoff) -> None:
        self._connection = connection
        self._part = part
        self._board = board
        self._backoff = backoff

    async def run(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `operation`, called until it succeeds.

        Raises:
            whatever `operation` raises that is not of `SourceErrors`.
        """
        while True:
            try:
                result = await operation()
            except SourceErrors as error:
                await self.pause(error)
            else:
                self.succeeded()
                return result

    async def pause(self, error: BaseException) -> None:
        """Tell about a failure and wait before the next attempt."""
        if isinstance(error, PyMongoError) and needs_new_client(error):
            await self._connection.reconnect()
        else:
            await self._connection.follow_file()
        problem = error.problem if isinstance(error, UnavailableError) else describe(error, self._connection.namespace)
        pause = self._backoff.next()
        log.warning(
            "source failed",
            part=self._part,
            reason=problem.reason,
            message=problem.message,
            retry_seconds=round(pause, 2),
        )
        self._board.trouble(self._part, problem)
        await asyncio.sleep(pause)

    def succeeded(self) -> None:
        """Note a success."""
        self._backoff.reset()
        self._board.clear(self._part)
