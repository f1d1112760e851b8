"""Events that need nothing more: they carry the mark already."""

from collections.abc import Sequence

import bson

from outbox_relay.events import Record, Refusal
from outbox_relay.events.decode import CODEC
from outbox_relay.events.fields import getter
from outbox_relay.pipeline.batch import SourceBatch
from outbox_relay.source.connection import SourceConnection
from outbox_relay.source.replay import id_bytes, marked
from outbox_relay.source.retry import SourceRetry
from outbox_relay.source.settle import AfterPublish

_NULL = 0x0A
"""BSON's type byte of null, which stands before the field's name."""


class DoneBefore:
    """Finds events that a former leader sent and marked, and documents that were inserted with the mark on them."""

    def __init__(
        self, connection: SourceConnection, after_publish: AfterPublish, published_field: str, retry: SourceRetry
    ) -> None:
        self._connection = connection
        self._marks = after_publish == "Mark"
        self._published_field = published_field
        self._published = getter(published_field)
        self._name = published_field.rpartition(".")[2].encode() + b"\0"
        self._retry = retry

    async def indexes(self, batch: SourceBatch, outcomes: Sequence[Record | Refusal]) -> set[int]:
        """Return the indexes of the batch's events that are done."""
        if not self._marks:
            return set()
        done = {index for index, document in enumerate(batch.documents) if self._is_marked(document)}
        if batch.replayed:
            ids = [outcome.document_id for outcome in outcomes]
            found = await self._retry.run(lambda: marked(self._connection, ids, self._published_field))
            done |= {index for index, document_id in enumerate(ids) if id_bytes(document_id) in found}
        return done

    def _is_marked(self, raw: bytes) -> bool:
        # Decoding each document once more would cost too much. A field of that name which is null, wherever in the
        # document, settles it: at worst a marked event is sent again.
        name = self._name
        at = raw.find(name) if isinstance(raw, bytes) else bytes(raw).find(name)
        if at < 1 or raw[at - 1] == _NULL:
            return False
        try:
            return self._published(bson.decode(raw, CODEC)) is not None
        except (KeyError, bson.errors.BSONError):
            return False
