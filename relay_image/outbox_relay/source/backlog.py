"""The backlog: what is unpublished at one cluster time, read before the stream that starts right after it.

Ids are listed by a snapshot read at that time, so the backlog and the stream neither overlap nor leave a gap; the
documents are fetched after, a few megabytes at a time.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from typing import Any

import bson
from bson import Timestamp
from bson.raw_bson import RawBSONDocument
from pymongo.errors import PyMongoError

from outbox_api.checkpoint import ClusterTime, Position
from outbox_relay.pipeline.batch import SourceBatch
from outbox_relay.source.connection import RAW, SourceConnection
from outbox_relay.source.errors import is_snapshot_gone
from outbox_relay.source.replay import id_bytes
from outbox_relay.source.retry import SourceRetry

_LIST_BATCH = 10_000
_FETCH_EVENTS = 500
_FETCH_BYTES = 4 * 1024 * 1024
_ANSWER_SECONDS = 60.0


class SnapshotGoneError(Exception):
    """The snapshot at the chosen cluster time cannot be read any more; choose a later one."""


class SweptBatch(SourceBatch):
    """Documents of the backlog. They do not move the position: that waits for the end of the sweep."""

    end = None
    replayed = False

    def __init__(self, documents: Sequence[bytes]) -> None:
        self.documents = documents
        self.size = sum(map(len, documents))

    def rendered(self) -> None:
        """Let go of the documents."""
        self.documents = ()

    def position(self, index: int) -> Position | None:  # noqa: ARG002
        """Return None: a sweep that was interrupted starts again with what is still unpublished."""
        return None

    def committed(self, index: int) -> float | None:  # noqa: ARG002
        """Return None: a document does not say when it was committed."""
        return None


class Backlog:
    """Lists and reads the unpublished events as of one cluster time."""

    def __init__(
        self,
        connection: SourceConnection,
        fields: Iterable[str],
        published_field: str,
        order_field: str,
        retry: SourceRetry,
    ) -> None:
        """Prepare it.

        Args:
            connection: the source.
            fields: top-level fields of the documents to read.
            published_field: path of the mark; null or missing means unpublished.
            order_field: path by which the backlog is ordered, then by id.
            retry: repeats reads that failed.
        """
        self._connection = connection
        self._projection = dict.fromkeys(sorted(fields), 1)
        self._unpublished = {published_field: None}
        self._retry = retry
        self._sort = {order_field: 1} | {"_id": 1}

    async def list_ids(self, time: ClusterTime) -> deque[bytes]:
        """Return the ids of the unpublished at `time`, in order: BSON documents `{_id}`, many to a piece.

        Raises:
            SnapshotGoneError: that time can no longer be read.
        """
        return await self._retry.run(lambda: self._list_ids(time))

    async def _list_ids(self, time: ClusterTime) -> deque[bytes]:
        collection = await self._connection.collection()
        pieces: deque[bytes] = deque()
        try:
            cursor = await collection.database.cursor_command(
                {
                    "find": collection.name,
                    "filter": self._unpublished,
                    "sort": self._sort,
                    "projection": {"_id": 1},
                    "batchSize": _LIST_BATCH,
                    "allowDiskUse": True,
                    "readConcern": {"level": "snapshot", "atClusterTime": Timestamp(time.seconds, time.increment)},
                },
                codec_options=RAW,
            )
            async with cursor:
                batch: list[bytes] = []
                async for document in cursor:
                    batch.append(bytes(document.raw))
                    if len(batch) == _LIST_BATCH:
                        pieces.append(b"".join(batch))
                        batch.clear()
                if batch:
                    pieces.append(b"".join(batch))
        except PyMongoError as error:
            if is_snapshot_gone(error):
                raise SnapshotGoneError from error
            raise
        return pieces

    async def batches(self, pieces: deque[bytes]) -> AsyncIterator[SweptBatch]:
        """Yield the documents of the listed ids in that order, those that are still there and unpublished.

        Consumes `pieces`.
        """
        size = 32
        while pieces:
            ids = [document["_id"] for document in bson.decode_all(pieces[0], RAW)]
            start = 0
            while start < len(ids):
                some = ids[start : start + size]
                batch = SweptBatch(await self._retry.run(partial(self._fetch, some)))
                if batch.documents:
                    yield batch
                start += len(some)
                average = max(1, batch.size // max(1, len(batch.documents)))
                size = max(1, min(_FETCH_EVENTS, size * 2, _FETCH_BYTES // average))
            pieces.popleft()

    async def _fetch(self, ids: Sequence[Any]) -> list[bytes]:
        collection = await self._connection.collection()
        found: dict[bytes, RawBSONDocument] = {}
        async with asyncio.timeout(_ANSWER_SECONDS):
            async for document in collection.find({"_id": {"$in": list(ids)}, **self._unpublished}, self._projection):
                found[id_bytes(document["_id"])] = document
        return [bytes(found[key].raw) for key in map(id_bytes, ids) if key in found]
