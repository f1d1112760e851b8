"""The connection to MongoDB: made from the URI file, made anew when that may help."""

import asyncio
from pathlib import Path
from typing import Any

from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument
from pymongo import AsyncMongoClient
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.write_concern import WriteConcern

from outbox_api.reasons import RelayReason
from outbox_api.relay_config import RelaySource
from outbox_relay.problems import Problem, UnavailableError
from outbox_relay.source.errors import describe

RAW: CodecOptions[RawBSONDocument] = CodecOptions(
    document_class=RawBSONDocument,
    # The driver's default refuses dates outside the years 1 to 9999, and with one document its whole batch.
    datetime_conversion=DatetimeConversion.DATETIME_MS,
)
RawCollection = AsyncCollection[RawBSONDocument]
_CONNECT_SECONDS = 10.0
_CLOSE_SECONDS = 2.0
_CLIENT_OPTIONS: dict[str, Any] = {
    "appname": "outbox-relay",
    # How long a failed connection takes to be noticed. The loops around it wait longer than any election.
    "serverSelectionTimeoutMS": 5_000,
    "connectTimeoutMS": 5_000,
}


class SourceConnection:
    """One client at a time for a source, shared by stream, marks and look-ups of a relay."""

    def __init__(self, source: RelaySource) -> None:
        self._source = source
        self._client: AsyncMongoClient[RawBSONDocument] | None = None
        self._uri: str | None = None
        self._connecting = asyncio.Lock()

    @property
    def namespace(self) -> str:
        """`database.collection`."""
        return f"{self._source.database}.{self._source.collection}"

    async def client(self) -> AsyncMongoClient[RawBSONDocument]:
        """Return the connected client, made from the URI file as it is now if there is none.

        Raises:
            UnavailableError: the file is missing, the URI is malformed, or the server refuses or does not answer.
        """
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect()
            return self._client

    async def stream_collection(self) -> RawCollection:
        """Return the collection for the change stream, which alone honours the URI's read preference."""
        client = await self.client()
        return client[self._source.database].get_collection(
            self._source.collection, codec_options=RAW, read_concern=ReadConcern("majority")
        )

    async def collection(self) -> RawCollection:
        """Return the collection for reads that decide and for writes: primary, majority, whatever the URI says."""
        client = await self.client()
        return client[self._source.database].get_collection(
            self._source.collection,
            codec_options=RAW,
            read_preference=ReadPreference.PRIMARY,
            read_concern=ReadConcern("majority"),
            write_concern=WriteConcern("majority"),
        )

    async def reconnect(self) -> None:
        """Drop the client, so that the next use reads the URI file again: its password may have been rotated."""
        async with self._connecting:
            await self._drop()

    async def follow_file(self) -> None:
        """Drop the client if the URI file says something else by now; called after failures."""
        try:
            changed = self._client is not None and self._read_uri() != self._uri
        except UnavailableError:
            return  # while it is missing, a client that works is better than none
        if changed:
            await self.reconnect()

    async def close(self) -> None:
        """Drop the client for good."""
        await self._drop()

    def _read_uri(self) -> str:
        return read_secret(self._source.uri_file, "the MongoDB connection string")

    async def _connect(self) -> AsyncMongoClient[RawBSONDocument]:
        self._uri = uri = self._read_uri()
        try:
            client: AsyncMongoClient[RawBSONDocument] = AsyncMongoClient(
                uri, document_class=RawBSONDocument, **_CLIENT_OPTIONS
            )
        except (PyMongoError, ValueError, TypeError) as error:
            # The driver's own text may quote a part of the URI, and with it a password.
            raise UnavailableError(
                Problem(
                    RelayReason.SOURCE_URI_INVALID,
                    f"the connection string in {self._source.uri_file} is malformed ({type(error).__name__}); "
                    "write it as mongodb://user:password@host:port/?options, with reserved characters percent-encoded",
                )
            ) from None
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await client.admin.command("ping")  # authenticates, unlike connecting alone
        except (PyMongoError, TimeoutError) as error:
            await _close(client)
            raise UnavailableError(describe(error, self.namespace)) from None
        except BaseException:
            await _close(client)
            raise
        return client

    async def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await _close(client)


def read_secret(path: str, what: str) -> str:
    """Return the text of a mounted secret, without the line end that editors leave.

    Raises:
        UnavailableError: the file is missing, unreadable or empty.
    """
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UnavailableError(
            Problem(RelayReason.SECRET_MISSING, f"{what} cannot be read from {path} ({why}); {_secret_advice(path)}")
        ) from None
    if not text:
        raise UnavailableError(Problem(RelayReason.SECRET_MISSING, f"{path} is empty; {_secret_advice(path)}"))
    return text


def _secret_advice(path: str) -> str:
    name, key = Path(path).parent.name, Path(path).name
    for kind in ("secret", "configmap"):
        if name.startswith(f"{kind}-"):
            return f"create {kind} {name.removeprefix(f'{kind}-')} with the key {key}: the relay goes on by itself"
    return "create it: the relay goes on by itself"


async def _close(client: AsyncMongoClient[RawBSONDocument]) -> None:
    # Closing sends endSessions and waits for monitors; a server that is gone must not hold a stop up.
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await client.close()
    except (PyMongoError, TimeoutError):
        return
