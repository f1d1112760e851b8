"""Which events of the replayed window are done already: a former leader sent and marked them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import bson

from outbox_relay.source.connection import SourceConnection

_LOOKUP_EVENTS = 1_000
_ANSWER_SECONDS = 30.0


async def marked(connection: SourceConnection, ids: Sequence[Any], published_field: str) -> set[bytes]:
    """Return the ids, as `id_bytes`, whose documents carry the mark now (primary, majority).

    A document that is found nowhere is not among them: an insert and a delete in one transaction give an insert
    event without a document, so "missing" has to be sent.

    Raises:
        UnavailableError: there is no connection.
        PyMongoError: the server did not answer.
    """
    collection = await connection.collection()
    found: set[bytes] = set()
    for start in range(0, len(ids), _LOOKUP_EVENTS):
        query = {"_id": {"$in": list(ids[start : start + _LOOKUP_EVENTS])}, published_field: {"$ne": None}}
        async with asyncio.timeout(_ANSWER_SECONDS):
            async for document in collection.find(query, {"_id": 1}):
                found.add(id_bytes(document["_id"]))
    return found


def id_bytes(document_id: Any) -> bytes:
    """Return an id as bytes that are equal exactly if the ids are; ids may be documents, which have no hash."""
    return bson.encode({"": document_id})
