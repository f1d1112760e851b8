"""/livez, /readyz and /metrics: a server of three pages, which needs no framework."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

log = structlog.get_logger(__name__)

_REQUEST_SECONDS = 5.0
_LONGEST_HEAD = 16_384
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Page:
    """An answer: HTTP status, content type, body."""

    status: int
    content_type: str
    body: bytes


class Endpoints:
    """Serves health and metrics. An answer to /livez shows that the event loop moves: nothing else is asked."""

    def __init__(self, registry: CollectorRegistry, readiness: Callable[[], str | None]) -> None:
        """Prepare it.

        Args:
            registry: the metrics.
            readiness: returns None when this process could lead, else what is missing.
        """
        self._registry = registry
        self._readiness = readiness
        self._server: asyncio.Server | None = None

    async def start(self, host: str | None, port: int) -> int:
        """Listen, and return the port.

        Raises:
            OSError: the address cannot be bound.
        """
        self._server = await asyncio.start_server(self._serve, host, port, limit=_LONGEST_HEAD)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    def page(self, path: str) -> Page:
        """Return the answer to a GET of `path`."""
        if path == "/livez":
            return Page(200, _TEXT, b"ok\n")
        if path == "/readyz":
            missing = self._readiness()
            return Page(200, _TEXT, b"ok\n") if missing is None else Page(503, _TEXT, f"{missing}\n".encode())
        if path == "/metrics":
            return Page(200, CONTENT_TYPE_LATEST, generate_latest(self._registry))
        return Page(404, _TEXT, b"there are /livez, /readyz and /metrics\n")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
                page = self.page(target.partition("?")[0]) if method in {"GET", "HEAD"} else Page(405, _TEXT, b"")
                lines = (
                    f"HTTP/1.1 {page.status} {'OK' if page.status == 200 else 'Error'}",
                    f"Content-Type: {page.content_type}",
                    f"Content-Length: {len(page.body)}",
                    "Connection: close",
                )
                writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (page.body if method == "GET" else b""))
                await writer.drain()
        except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            log.debug("request failed", error=type(error).__name__)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
