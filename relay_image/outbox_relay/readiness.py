"""Whether this process could lead: its configuration is read, and source and sink were reached once."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from aiokafka.errors import KafkaError

from outbox_api.relay_config import RelaySink
from outbox_relay.problems import UnavailableError
from outbox_relay.sink.producer import reach
from outbox_relay.sink.verdict import describe
from outbox_relay.source.connection import SourceConnection

log = structlog.get_logger(__name__)

_PAUSE_SECONDS = 2.0


class Readiness:
    """Finds out once; what was reached before is not asked again, since readiness is not health."""

    def __init__(self, connection: SourceConnection, sink: RelaySink) -> None:
        self._connection = connection
        self._sink = sink
        self._missing = {"source": "not asked yet", "sink": "not asked yet"}

    def missing(self) -> str | None:
        """Return what keeps this process from leading; None if nothing does."""
        return "; ".join(f"{what}: {why}" for what, why in self._missing.items()) or None

    async def run(self) -> None:
        """Try until both were reached."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._until_reached("source", self._reach_source))
            group.create_task(self._until_reached("sink", self._reach_sink))

    async def _until_reached(self, what: str, reach_it: Callable[[], Awaitable[str | None]]) -> None:
        while (why := await reach_it()) is not None:
            if self._missing[what] != why:
                self._missing[what] = why
                log.warning("not ready", part=what, message=why)
            await asyncio.sleep(_PAUSE_SECONDS)
        del self._missing[what]

    async def _reach_source(self) -> str | None:
        try:
            await self._connection.client()
        except UnavailableError as error:
            return error.problem.message
        return None

    async def _reach_sink(self) -> str | None:
        try:
            await reach(self._sink)
        except (KafkaError, TimeoutError, OSError) as error:
            return describe(error, self._sink.bootstrap_servers).message
        return None
