"""How many events are unpublished: counted now and then, and never further than a limit."""

import asyncio

from pymongo.errors import PyMongoError

from outbox_relay.problems import UnavailableError
from outbox_relay.source.connection import SourceConnection
from outbox_relay.source.settle import AfterPublish

LIMIT = 100_000
_EVERY_SECONDS = 30.0
_SERVER_MILLISECONDS = 2_000


class PendingCount:
    """Keeps the count of the unpublished; None while unknown, and always with Keep, where nothing tells them apart."""

    def __init__(self, connection: SourceConnection, after_publish: AfterPublish, published_field: str) -> None:
        self._connection = connection
        self._countable = after_publish != "Keep"
        self._filter = {published_field: None}
        self.value: int | None = None

    async def run(self) -> None:
        """Count every 30 seconds until cancelled."""
        while self._countable:
            try:
                collection = await self._connection.collection()
                async with asyncio.timeout(2 * _SERVER_MILLISECONDS / 1000):
                    self.value = await collection.count_documents(
                        self._filter, limit=LIMIT, maxTimeMS=_SERVER_MILLISECONDS
                    )
            except (PyMongoError, TimeoutError, UnavailableError):
                self.value = None  # without an index it may take too long: then it is unknown, and nothing fails
            await asyncio.sleep(_EVERY_SECONDS)
