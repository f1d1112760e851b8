"""One key's turn: reconcile it, and decide when it comes back."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import structlog

from outbox_operator.apply import ChangedError, NamespaceGoneError
from outbox_operator.inbox import Inbox
from outbox_operator.keys import Key
from outbox_operator.kube.errors import ApiError, KubeError
from outbox_operator.leading import NotLeaderError
from outbox_operator.metrics import Metrics
from outbox_operator.queue import KeyedQueue
from outbox_operator.reconcile import Reconciler, Result

#: Seconds that one reconciliation may take; each request has its own, shorter limit.
TIMEOUT: Final = 120.0
#: A resource is looked at again after the resync time, give or take this share of it, so that not all come at once.
SPREAD: Final = 0.2

_log = structlog.get_logger()


class Worker:
    """Works on keys, and keeps one's failure from the others."""

    def __init__(
        self,
        reconciler: Reconciler,
        queue: KeyedQueue[Key],
        inbox: Inbox,
        metrics: Metrics,
        *,
        resync: float,
        jitter: Callable[[], float],
    ) -> None:
        """A worker.

        Args:
            reconciler: does the work.
            queue: where keys come back to.
            inbox: is told when a key's work begins and ends.
            metrics: counts what came of it.
            resync: seconds until a settled key is looked at again.
            jitter: a number of [0, 1) at each call.
        """
        self._reconciler = reconciler
        self._queue = queue
        self._inbox = inbox
        self._metrics = metrics
        self._resync = resync
        self._jitter = jitter
        self._started: dict[Key, float] = {}

    @property
    def longest(self) -> float:
        """Seconds since the oldest reconciliation in work began; 0 when none is."""
        return time.monotonic() - min(self._started.values()) if self._started else 0.0

    async def work(self, key: Key, waited: float) -> None:
        """Reconcile a key that the queue handed out."""
        self._metrics.waited.observe(waited)
        start = self._started[key] = time.monotonic()
        try:
            outcome = await self._reconcile(key)
        except asyncio.CancelledError:
            self._queue.done(key)
            raise
        finally:
            del self._started[key]
        self._metrics.reconciles.labels(outcome).inc()
        self._metrics.seconds.observe(time.monotonic() - start)

    async def _reconcile(self, key: Key) -> str:
        try:
            self._inbox.begin(key)
            try:
                async with asyncio.timeout(TIMEOUT):
                    result = await self._reconciler.reconcile(key)
            finally:
                self._inbox.end(key)
        except NamespaceGoneError:
            self._queue.done(key)
            return "gone"
        except NotLeaderError:
            # The process is about to end.
            self._queue.done(key)
            return "error"
        except (ChangedError, KubeError, TimeoutError) as error:
            return self._failed(key, error)
        except Exception as error:  # noqa: BLE001 - a defect that one resource meets must not stop the others
            _log.exception("Reconciling failed unexpectedly", relay=str(key))
            return self._failed(key, error)
        return self._finished(key, result)

    def _finished(self, key: Key, result: Result) -> str:
        for other in result.others:
            self._queue.add(other)
        if not result.exists:
            self._queue.done(key)
            self._queue.forget(key)
            return "gone"
        if not result.settled:
            self._queue.retry(key)
            return "retry"
        self._queue.done(key)
        self._queue.add_after(key, self._resync * (1 - SPREAD + 2 * SPREAD * self._jitter()))
        return "settled"

    def _failed(self, key: Key, error: BaseException) -> str:
        wish = error.retry_after if isinstance(error, ApiError) else None
        delay = self._queue.retry(key, at_least=wish or 0.0)
        _log.warning("Reconciling failed and is tried again", relay=str(key), error=str(error), seconds=round(delay, 1))
        return "error"
