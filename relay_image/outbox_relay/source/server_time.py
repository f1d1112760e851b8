"""The server's times: its wall clock, carried on by our own monotonic one, and its cluster time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bson import Timestamp
from bson.datetime_ms import DatetimeMS
from pymongo.errors import OperationFailure

from outbox_api.checkpoint import ClusterTime
from outbox_relay.problems import StalledError
from outbox_relay.source.connection import SourceConnection
from outbox_relay.source.errors import no_change_streams
from outbox_relay.source.tokens import to_cluster_time

_RETRY_SECONDS = 30.0


class ServerClock:
    """The source's wall clock: lags are told by this one clock only, so they never mix two machines' clocks."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._offset: float | None = None

    def set(self, server_seconds: float, asked_at: float) -> None:
        """Note what the server's clock said to a request sent at monotonic `asked_at`."""
        self._offset = server_seconds - asked_at

    def now(self) -> float | None:
        """Return the server's time now, in seconds since 1970; None before it was heard once."""
        return None if self._offset is None else self._monotonic() + self._offset


@dataclass(frozen=True)
class Hello:
    """What the primary says of itself.

    Attributes:
        operation_time: cluster time of the last operation it had applied.
    """

    operation_time: ClusterTime


async def ask(connection: SourceConnection, clock: ServerClock) -> Hello:
    """Ask the primary for its times, and whether it has change streams at all.

    Raises:
        StalledError: it is a standalone server, which has none.
        UnavailableError: there is no connection.
        PyMongoError: it did not answer.
    """
    client = await connection.client()
    asked_at = time.monotonic()
    reply: Any = await client.admin.command("hello")
    local: DatetimeMS | Any = reply["localTime"]
    seconds = int(local) / 1000 if isinstance(local, DatetimeMS) else local.timestamp()
    clock.set(seconds, asked_at)
    if "setName" not in reply and reply.get("msg") != "isdbgrid":
        problem = no_change_streams(connection.namespace, "it is a standalone server")
        raise StalledError(problem, _RETRY_SECONDS)
    operation_time = reply.get("operationTime")
    if not isinstance(operation_time, Timestamp):
        raise OperationFailure("the server's reply has no operationTime")
    return Hello(to_cluster_time(operation_time))
