"""The course of a source: a backlog if there is no position yet, then the stream from right after it, for ever."""

from collections.abc import AsyncGenerator, Awaitable, Callable

import structlog

from outbox_api.checkpoint import ClusterTime, Position
from outbox_api.reasons import RelayReason
from outbox_relay.pipeline.batch import Marker, SourceBatch
from outbox_relay.pipeline.budget import Budget
from outbox_relay.report.board import Board
from outbox_relay.source.backlog import Backlog, SnapshotGoneError
from outbox_relay.source.settle import AfterPublish
from outbox_relay.source.stream import ChangeStream, InvalidatedError

log = structlog.get_logger(__name__)


class Course:
    """Yields every batch that a term of leadership has to send."""

    def __init__(
        self,
        namespace: str,
        after_publish: AfterPublish,
        *,
        operation_time: Callable[[], Awaitable[ClusterTime]],
        new_stream: Callable[[Position], ChangeStream],
        backlog: Backlog,
        persist: Callable[[Position], Awaitable[None]],
        heard: Callable[[], None],
        budget: Budget,
        board: Board,
    ) -> None:
        """Prepare it.

        Args:
            namespace: `database.collection`, for messages.
            after_publish: what happens to published events.
            operation_time: asks the server for its cluster time now.
            new_stream: makes the stream from a position on.
            backlog: reads what is unpublished at a cluster time.
            persist: writes a position to the checkpoint.
            heard: told of each batch of the stream, with or without events.
            budget: empty when everything that was yielded is settled.
            board: told what the relay is at.
        """
        self._namespace = namespace
        self._after_publish = after_publish
        self._operation_time = operation_time
        self._new_stream = new_stream
        self._backlog = backlog
        self._persist = persist
        self._heard = heard
        self._budget = budget
        self._board = board

    async def batches(self, position: Position | None) -> AsyncGenerator[SourceBatch]:
        """Yield batches from a position on; None or one with a pending backlog starts with the backlog.

        Raises:
            StalledError: the source cannot be read on.
        """
        while True:
            if position is None or position.backlog == "Pending":
                start = await self._operation_time()
                # Known before the first event goes out: a relay that dies now sweeps again, and loses nothing.
                position = Position(cluster_time=str(start), backlog="Pending")
                await self._persist(position)
                yield Marker(position)
                try:
                    async for batch in self._sweep(start):
                        yield batch
                except SnapshotGoneError:
                    log.info("the snapshot of the backlog is gone; taking a later one", cluster_time=str(start))
                    continue
                position = Position(cluster_time=str(start))
                yield Marker(position)
            message = f"events flow from {self._namespace} to Kafka"
            try:
                async for batch in self._new_stream(position).batches():
                    self._heard()
                    self._board.activity("Streaming", RelayReason.STREAMING, message)
                    yield batch
            except InvalidatedError as invalidated:
                log.warning("the collection was dropped, renamed or replaced", collection=self._namespace)
                # The collection may be another one now, filled by a rename, which is no insert: only a sweep finds
                # what is in it. With Keep everything ever sent would be sent again, so the stream just goes on.
                position = invalidated.position if self._after_publish == "Keep" else None
                await self._budget.empty()
                if position is not None:
                    yield Marker(position)

    async def _sweep(self, start: ClusterTime) -> AsyncGenerator[SourceBatch]:
        pieces = await self._backlog.list_ids(start)
        if pieces:
            message = f"sending the events that were in {self._namespace} before the start"
            self._board.activity("Streaming", RelayReason.SWEEPING, message)
            async for batch in self._backlog.batches(pieces):
                yield batch
