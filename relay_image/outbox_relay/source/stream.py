"""The change stream: inserts of one collection as raw BSON, opened again whenever it breaks."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import structlog
from bson import Timestamp
from pymongo.asynchronous.command_cursor import AsyncRawBatchCommandCursor
from pymongo.errors import PyMongoError

from outbox_api.checkpoint import ClusterTime, Position
from outbox_api.reasons import RelayReason
from outbox_relay.pipeline.batch import Marker, SourceBatch
from outbox_relay.problems import Problem, StalledError
from outbox_relay.source.change_events import ChangeEvents
from outbox_relay.source.connection import SourceConnection
from outbox_relay.source.errors import describe, is_history_lost, is_permanent
from outbox_relay.source.retry import SourceErrors, SourceRetry
from outbox_relay.source.tokens import position_of, resume_token, start_after, token_text, token_time

log = structlog.get_logger(__name__)

BATCH_EVENTS = 1_000
"""Events a read at most: enough that the cost of a read does not count, few enough that stages overlap."""

AWAIT_SECONDS = 1.0
"""How long the server waits for events before it answers an empty batch, with a newer position."""

_ANSWER_SECONDS = 30.0
"""Longest time for an answer to one read; the driver's own timeouts do not end a server that has stopped."""

_RETRY_SECONDS = 30.0


class InvalidatedError(Exception):
    """The collection was dropped, renamed or replaced; the stream goes on after `position`."""

    def __init__(self, position: Position) -> None:
        super().__init__("the watched collection was dropped, renamed or replaced")
        self.position = position


class StreamBatch(SourceBatch):
    """Insert events of one read of the stream. What only few of them need is decoded when asked for."""

    def __init__(self, events: ChangeEvents, size: int, end: Position, replayed_until: ClusterTime) -> None:
        self._events = events
        self.documents = [document for document in events.documents if document is not None]
        self.size = size
        self.end = end
        self.replayed = ClusterTime(*events.cluster_times[0]) <= replayed_until

    def position(self, index: int) -> Position:
        """Return the position just after event `index`."""
        return position_of(self._events, index)

    def committed(self, index: int) -> float:
        """Return the commit's wall-clock time by the server, in seconds since 1970."""
        wall = self._events.wall_times[index]
        # The cluster time has whole seconds.
        return float(self._events.cluster_times[index][0]) if wall is None else wall / 1000

    def rendered(self) -> None:
        """Let go of the documents: tokens and times stay."""
        self.documents = ()
        self._events.documents.clear()


class ChangeStream:
    """Reads a collection's inserts from a position on, through every failure that heals."""

    def __init__(
        self,
        connection: SourceConnection,
        fields: Iterable[str],
        position: Position,
        *,
        replayed_until: ClusterTime,
        retry: SourceRetry,
    ) -> None:
        """Prepare it; nothing is read yet.

        Args:
            connection: the source.
            fields: top-level fields of the documents to read.
            position: where to go on.
            replayed_until: events up to this cluster time may have been sent by a former leader.
            retry: waits after failures and tells about them.
        """
        self._connection = connection
        self._position = position
        self._replayed_until = replayed_until
        self._retry = retry
        self._skip_through: str | None = None
        # The match must be the same for ever: a token is refused once a match excludes its own event.
        self._stages: list[dict[str, Any]] = [
            {"$match": {"operationType": {"$in": ["insert", "invalidate"]}}},
            {"$project": {"clusterTime": 1, "wallTime": 1, "fullDocument": dict.fromkeys(sorted(fields), 1)}},
        ]

    async def batches(self) -> AsyncIterator[SourceBatch]:
        """Yield what is read, for ever. Every batch that was yielded counts as handed on.

        Raises:
            StalledError: history is lost, or the server has no change streams.
            InvalidatedError: the collection was dropped, renamed or replaced.
        """
        while True:
            try:
                cursor = await self._open()
                try:
                    async for batch in self._read(cursor):
                        self._retry.succeeded()
                        yield batch
                finally:
                    await self._close(cursor)
            except SourceErrors as error:
                await self._wait_after(error)

    async def _open(self) -> AsyncRawBatchCommandCursor[Any]:
        collection = await self._connection.stream_collection()
        token = resume_token(self._position)
        if token is not None and self._skip_through is None:
            # Unlike resumeAfter, startAfter also takes the token of an invalidate event.
            start: dict[str, Any] = {"startAfter": token}
        else:
            start = {"startAtOperationTime": start_after(self._position)}
            if self._skip_through is not None:
                time = ClusterTime.parse(self._position.cluster_time)
                start = {"startAtOperationTime": Timestamp(time.seconds, time.increment)}
        async with asyncio.timeout(_ANSWER_SECONDS):
            cursor = await collection.aggregate_raw_batches(
                [{"$changeStream": start}, *self._stages],
                batchSize=BATCH_EVENTS,
                maxAwaitTimeMS=int(AWAIT_SECONDS * 1000),
            )
        return cast("AsyncRawBatchCommandCursor[Any]", cursor)

    async def _read(self, cursor: AsyncRawBatchCommandCursor[Any]) -> AsyncIterator[SourceBatch]:
        while True:
            async with asyncio.timeout(_ANSWER_SECONDS):
                data = await cursor.try_next()
            events = ChangeEvents(data or b"")
            self._pass_over_settled(events)
            # A private name of the driver, covered by the lock and by tests: its public change stream offers the
            # position of an empty batch only together with one decoded event at a time.
            after = cursor._post_batch_resume_token  # noqa: SLF001
            invalidate = _take_out_invalidate(events)
            if len(events):
                # Before an invalidate the position stays: after a crash it has to be met again, for its sweep.
                self._position = self._end(None if invalidate else after, events)
                yield StreamBatch(events, len(data or b""), self._position, self._replayed_until)
            elif after is not None and invalidate is None and not self._behind(after):
                self._position = self._end(after, None)
                yield Marker(self._position)
            if invalidate is not None:
                raise InvalidatedError(invalidate)
            if not cursor.alive:
                return

    def _end(self, after: Any, events: ChangeEvents | None) -> Position:
        """Return the position after a batch: the server's own, which is never before the last event's."""
        if events is not None:
            last = position_of(events, len(events) - 1)
            if after is None:
                return last
        else:
            last = self._position
        return Position(cluster_time=str(token_time(after) or last.cluster_time), token=token_text(after))

    def _pass_over_settled(self, events: ChangeEvents) -> None:
        """Drop what is settled already, after an opening at the position's cluster time instead of its token."""
        if self._skip_through is not None:
            events.drop([index for index in range(len(events)) if not self._behind(events.token(index))])

    def _behind(self, token: Any) -> bool:
        """Say whether `token` is not past the settled one; once one is past it, none is asked any more."""
        if self._skip_through is None:
            return False
        if token["_data"] > self._skip_through:  # hexadecimal of a sort key: it compares as the stream is ordered
            self._skip_through = None
            return False
        return True

    async def _wait_after(self, error: BaseException) -> None:
        if isinstance(error, PyMongoError):
            if is_permanent(error):
                raise StalledError(describe(error, self._connection.namespace), _RETRY_SECONDS) from None
            if is_history_lost(error):
                self._fall_back(error)
                return
        await self._retry.pause(error)

    def _fall_back(self, error: PyMongoError) -> None:
        """Try the position's cluster time when its token is refused although the oplog may still hold all.

        Raises:
            StalledError: that was tried: events may be missing.
        """
        token = resume_token(self._position)
        if self._skip_through is None and token is not None and isinstance(token.get("_data"), str):
            log.warning("the resume token is refused; starting at its cluster time", error=describe(error, "").message)
            self._skip_through = token["_data"]
            return
        raise StalledError(
            Problem(
                RelayReason.HISTORY_LOST,
                f"the oplog no longer reaches back to the position {self._position.cluster_time} of "
                f"{self._connection.namespace}; events since then may never have been sent. Suspend the relay, delete "
                "its checkpoint to start anew from the unpublished events, and enlarge the oplog",
            )
        ) from None

    async def _close(self, cursor: AsyncRawBatchCommandCursor[Any]) -> None:
        try:
            async with asyncio.timeout(1.0):
                await cursor.close()
        except (PyMongoError, TimeoutError):
            return  # the server ends an abandoned cursor by itself


def _take_out_invalidate(events: ChangeEvents) -> Position | None:
    """Remove the invalidate event, which is always the last, and return the position after it, if there is one."""
    if not len(events) or events.documents[-1] is not None:
        return None
    position = position_of(events, len(events) - 1)
    events.drop(range(len(events) - 1))
    return position
