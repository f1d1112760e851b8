"""Insert events as they come over the wire: cut out of a batch without decoding what only few of them need.

A driver that decodes every event into objects costs as much again as all the rest of a relay's work.
"""

import struct
from collections.abc import Sequence
from typing import Any

import bson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument

_CODEC: CodecOptions[RawBSONDocument] = CodecOptions(
    document_class=RawBSONDocument, datetime_conversion=DatetimeConversion.DATETIME_MS
)
_SIZE = struct.Struct("<i")
_ID = b"\x03_id\x00"
_ID_SIZE_AT = 4 + len(_ID)
# What the projection leaves of an insert event after its _id, in the order in which servers write it:
# clusterTime (increment, then seconds), wallTime, and the beginning of fullDocument with its size.
_REST = struct.Struct("<13sII10sq14si")
_CLUSTER_TIME, _WALL_TIME, _DOCUMENT = b"\x11clusterTime\x00", b"\x09wallTime\x00", b"\x03fullDocument\x00"


class ChangeEvents:
    """The events of one batch.

    Attributes:
        documents: the inserted document of each event, as raw BSON; None of an event that is no insert.
        cluster_times: (seconds, increment) of each.
        wall_times: commit of each in milliseconds since 1970; None where the server does not say it (before 6.0).
    """

    def __init__(self, data: bytes) -> None:
        """Cut a batch, which is BSON documents one after the other, into its events."""
        self._data = data
        self._starts: list[int] = []
        self.documents: list[bytes | None] = []
        self.cluster_times: list[tuple[int, int]] = []
        self.wall_times: list[int | None] = []
        at, end = 0, len(data)
        while at < end:
            (size,) = _SIZE.unpack_from(data, at)
            self._starts.append(at)
            if not self._cut(data, at, size):
                self._decode(data[at : at + size])
            at += size

    def __len__(self) -> int:
        return len(self._starts)

    def token(self, index: int) -> dict[str, Any]:
        """Return the resume token of an event."""
        start = self._starts[index]
        (size,) = _SIZE.unpack_from(self._data, start)
        token: Any = bson.decode(self._data[start : start + size], _CODEC)["_id"]
        return bson.decode(bytes(token.raw))

    def drop(self, kept: Sequence[int]) -> None:
        """Keep only the events with these indexes."""
        self._starts = [self._starts[index] for index in kept]
        self.documents = [self.documents[index] for index in kept]
        self.cluster_times = [self.cluster_times[index] for index in kept]
        self.wall_times = [self.wall_times[index] for index in kept]

    def _cut(self, data: bytes, start: int, size: int) -> bool:
        """Take up an event of the usual form; False if it has another."""
        if not data.startswith(_ID, start + 4):
            return False
        rest = start + _ID_SIZE_AT + _SIZE.unpack_from(data, start + _ID_SIZE_AT)[0]
        document = rest + _REST.size - _SIZE.size
        if document + _SIZE.size > start + size:
            return False
        cluster_time, increment, seconds, wall_time, wall, name, length = _REST.unpack_from(data, rest)
        if (cluster_time, wall_time, name) != (_CLUSTER_TIME, _WALL_TIME, _DOCUMENT):
            return False
        self.documents.append(data[document : document + length])
        self.cluster_times.append((seconds, increment))
        self.wall_times.append(wall)
        return True

    def _decode(self, raw: bytes) -> None:
        event: Any = bson.decode(raw, _CODEC)
        document = event.get("fullDocument")
        wall = event.get("wallTime")
        self.documents.append(None if document is None else bytes(document.raw))
        self.cluster_times.append((event["clusterTime"].time, event["clusterTime"].inc))
        self.wall_times.append(None if wall is None else int(wall))
