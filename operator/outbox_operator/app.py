"""The operator as a whole: the one place that builds its parts and ties them together."""

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import structlog
from aiohttp import web
from kubernetes.aio.client import ApiClient

from outbox_operator import health, watching
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.dispatch import Dispatcher
from outbox_operator.fleet import Fleet, claim_of
from outbox_operator.hearing import PATIENCE, Hearing
from outbox_operator.inbox import Inbox
from outbox_operator.keys import Key
from outbox_operator.kube import connect
from outbox_operator.kube.client import Kube
from outbox_operator.kube.resources import OUTBOX_RELAY
from outbox_operator.leading import Elector
from outbox_operator.metrics import Metrics
from outbox_operator.queue import KeyedQueue
from outbox_operator.reconcile import Reconciler
from outbox_operator.recorder import Recorder
from outbox_operator.schema_check import check_schema
from outbox_operator.settings import Settings
from outbox_operator.watchdog import Watchdog
from outbox_operator.work import TIMEOUT, Worker

#: Seconds for a request about the Lease.
LEASE_TIMEOUT: Final = 5.0
#: Seconds for kopf to end its watches.
WATCH_STOP: Final = 5.0

_log = structlog.get_logger()


class WatchEndedError(Exception):
    """The watch ended, so nothing would be noticed any more."""


def _now() -> datetime:
    return datetime.now(UTC)


async def run(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT.

    Raises:
        SchemaError: the CRD is absent or older than this operator.
        NotLeaderError: another operator took the Lease.
        WatchEndedError: the watch ended by itself.
        KubeError: the API server could not be reached at start.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with connect.api_client(await connect.configuration()) as api:
        operator = Operator(settings, api)
        await check_schema(operator.kube)
        work = asyncio.create_task(operator.run(), name="operator")
        stopping = asyncio.create_task(stop.wait(), name="signals")
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        work.cancel()
        try:
            await work
        except asyncio.CancelledError:
            _log.info("Stopped")


class Operator:
    """One operator's parts."""

    def __init__(self, settings: Settings, api: ApiClient) -> None:
        """Build all parts; nothing runs yet.

        Args:
            settings: flags and environment.
            api: the connection, which the caller closes.
        """
        self._settings = settings
        self._metrics = Metrics()
        self._elector: Elector | None = None
        if settings.lease is not None:
            lease_kube = Kube(api, observe=self._metrics.observe_request, timeout=LEASE_TIMEOUT)
            self._elector = Elector(lease_kube, settings.lease, clock=time.monotonic, now=_now)
        self.kube = Kube(api, fence=self._fence, observe=self._metrics.observe_request)
        self._fleet = Fleet()
        jitter = random.SystemRandom().random
        self._queue: KeyedQueue[Key] = KeyedQueue(clock=time.monotonic, jitter=jitter)
        self._metrics.observe_queue(self._queue)
        self._hearing = Hearing(clock=time.monotonic)
        self._metrics.observe_hearing(self._hearing)
        self._inbox = Inbox(self._queue, self._hearing)
        recorder = Recorder(self.kube, now=_now)
        reconciler = Reconciler(self.kube, self._fleet, recorder, settings.relay, now=_now, seen=self._inbox.seen)
        self._worker = Worker(
            reconciler, self._queue, self._inbox, self._metrics, resync=settings.resync, jitter=jitter
        )
        self._dispatcher = Dispatcher(self._queue, self._worker.work, concurrency=settings.concurrency)

    async def run(self) -> None:
        """Watch, lead, work; until cancelled."""
        async with AsyncExitStack() as stack:
            watch = await stack.enter_async_context(self._watching())
            await stack.enter_async_context(self._serving(watch))
            await stack.enter_async_context(self._leading())
            await self._know_the_fleet()
            async with asyncio.TaskGroup() as tasks:
                if self._elector is not None:
                    tasks.create_task(self._elector.hold(), name="lease")
                tasks.create_task(self._until_watch_ends(watch), name="watch")
                tasks.create_task(self._dispatcher.run(), name="dispatcher")

    def _fence(self) -> None:
        if self._elector is not None:
            self._elector.fence()

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[watching.Watch]:
        loop = asyncio.get_running_loop()

        def on_event(key: Key, uid: str, version: str) -> None:
            loop.call_soon_threadsafe(self._inbox.event, key, uid, version)

        registry = watching.registry(on_event, connect.for_kopf)
        watch = watching.Watch(registry, self._settings.namespaces)
        watch.start()
        try:
            yield watch
        finally:
            await asyncio.to_thread(watch.stop, WATCH_STOP)

    @asynccontextmanager
    async def _serving(self, watch: watching.Watch) -> AsyncIterator[None]:
        def stuck() -> str | None:
            longest = self._worker.longest
            return f"a reconciliation runs for {longest:.0f} s" if longest > 2 * TIMEOUT else None

        def deaf() -> str | None:
            overdue = self._hearing.overdue
            return f"the watch has not told of a change for {overdue:.0f} s" if overdue > PATIENCE else None

        runner = web.AppRunner(
            health.application(
                live={"watch": lambda: watch.problem, "hearing": deaf, "work": stuck},
                ready={"watch": lambda: None if watch.ready else "the watch has not begun"},
                registry=self._metrics.registry,
            ),
            access_log=None,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, port=self._settings.port).start()
            _log.info(
                "Serving health and metrics", addresses=[f"{address[0]}:{address[1]}" for address in runner.addresses]
            )
            yield
        finally:
            await runner.cleanup()

    @asynccontextmanager
    async def _leading(self) -> AsyncIterator[None]:
        if self._elector is None:
            yield
            return
        elector = self._elector
        await elector.acquire()
        self._metrics.leader.set(1)
        watchdog = Watchdog(lambda: elector.deadline, time.monotonic)
        watchdog.start()
        try:
            yield
        finally:
            # No work is going on any more, so another may begin at once.
            watchdog.stop()
            self._metrics.leader.set(0)
            await elector.release()

    async def _know_the_fleet(self) -> None:
        """Learn all claims before the first decision: of two rivals the younger might come first."""
        for namespace in self._settings.namespaces or (None,):
            for obj in await self.kube.select(OUTBOX_RELAY, namespace, selector=""):
                relay = OutboxRelay.of(obj)
                self._fleet.update(relay.key, claim_of(relay))

    async def _until_watch_ends(self, watch: watching.Watch) -> None:
        while watch.problem is None:  # noqa: ASYNC110 - what is waited for is a thread
            await asyncio.sleep(1)
        raise WatchEndedError(watch.problem)
