"""The one place where a relay is put together: from its configuration to a process that ends with an exit code."""

import asyncio
import os
import signal
import socket
import uuid
from pathlib import Path

import structlog

from outbox_api.relay_config import RelayConfig, Runtime
from outbox_api.unimplemented import not_implemented
from outbox_relay.checkpoint.configmap import ConfigMapStore
from outbox_relay.checkpoint.file import FileStore
from outbox_relay.checkpoint.keeper import CheckpointKeeper
from outbox_relay.checkpoint.store import CheckpointStore
from outbox_relay.config import ConfigurationError, Problem, load_relay_config
from outbox_relay.kube.access import AccessError, find_access
from outbox_relay.kube.client import KubeClient
from outbox_relay.leadership.elector import Elector, NoElection
from outbox_relay.leadership.io_guard import GuardedSelector
from outbox_relay.leadership.lease import LeaseElector
from outbox_relay.line import Surroundings
from outbox_relay.observe.endpoints import Endpoints
from outbox_relay.observe.lag import Lag
from outbox_relay.observe.logs import configure_logs
from outbox_relay.observe.metrics import Metrics
from outbox_relay.readiness import Readiness
from outbox_relay.relay import Relay
from outbox_relay.render import Renderer
from outbox_relay.report.board import Board
from outbox_relay.report.numbers import Numbers
from outbox_relay.report.writer import ConfigMapSink, LogSink, Reporter
from outbox_relay.source.connection import SourceConnection
from outbox_relay.source.pending import PendingCount
from outbox_relay.source.server_time import ServerClock
from outbox_relay.tasks import run_with

log = structlog.get_logger(__name__)

_GRACE_SECONDS = 30
_RESERVE_SECONDS = 8
"""Of the pod's grace period, what is left for the last writes and for ends that have to be cut off."""


def run(config_path: Path, shard: int) -> int:
    """Run a relay until SIGTERM or SIGINT; returns the exit code of the process.

    Raises:
        ConfigurationError: the configuration cannot be used, or asks for what is not built yet.
    """
    config = load_relay_config(config_path)
    _refuse_not_implemented(config)
    configure_logs()
    selector = GuardedSelector()
    with asyncio.Runner(loop_factory=selector.new_loop) as runner:
        return runner.run(_run(config, shard, selector))


async def _run(config: RelayConfig, shard: int, selector: GuardedSelector) -> int:
    spec, runtime = config.spec, config.runtime
    stop = asyncio.Event()
    _stop_on_signals(stop)
    identity = os.environ.get("POD_NAME") or f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
    structlog.contextvars.bind_contextvars(relay=runtime.name, shard=shard)

    metrics, clock = Metrics(), ServerClock()
    around = Surroundings(
        spec=spec,
        connection=SourceConnection(spec.source),
        renderer=Renderer.from_spec(spec),
        board=Board(),
        metrics=metrics,
        clock=clock,
        lag=Lag(clock),
        io_guard=selector,
    )
    client = _kube_client(runtime)
    store = _store(client, runtime, shard)
    pending = PendingCount(around.connection, spec.after_publish, around.published_field)
    sink = LogSink() if client is None else ConfigMapSink(client, runtime, shard)
    relay = Relay(
        around,
        _elector(client, config, shard, identity),
        new_keeper=lambda: CheckpointKeeper(store, spec.checkpoint, around.board, around.backoff()),
        new_reporter=lambda: Reporter(around.board, sink, numbers.report),
        pending=pending,
        elected=client is not None,
        stop=stop,
        drain_seconds=max(1, _grace_seconds(config) - _RESERVE_SECONDS),
    )
    numbers = Numbers(identity, lambda: relay.term, around.lag, pending, store.was_missing)
    numbers.offer(metrics)
    readiness = Readiness(around.connection, spec.sink)
    endpoints = Endpoints(metrics.registry, readiness.missing)
    try:
        port = await _listen(endpoints, runtime)
        log.info("started", identity=identity, source=around.connection.namespace, port=port)
        code = await run_with(relay.run(), readiness.run())
    finally:
        await endpoints.stop()
        await around.connection.close()
        if client is not None:
            await client.close()
    log.info("ended", code=code)
    return code


async def _listen(endpoints: Endpoints, runtime: Runtime) -> int:
    host, port = runtime.listen.host, runtime.listen.port
    try:
        return await endpoints.start(host, port)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        where = f"{host or 'every address'} port {port}"
        problem = Problem("runtime.listen", f"cannot listen on {where} ({why}): choose another port, or 0 for any")
        raise ConfigurationError([problem]) from None


def _stop_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)


def _refuse_not_implemented(config: RelayConfig) -> None:
    fields = not_implemented(config.spec, config.spec.source, config.spec.sink)
    if config.runtime.election == "MongoDB":
        fields.append("runtime.election: MongoDB")
    if fields:
        raise ConfigurationError([Problem(field, "is not implemented yet: remove it") for field in fields])


def _kube_client(runtime: Runtime) -> KubeClient | None:
    if runtime.election != "Kubernetes":
        return None
    try:
        return KubeClient(find_access())
    except AccessError as error:
        raise ConfigurationError([Problem("runtime.election", str(error))]) from error


def _store(client: KubeClient | None, runtime: Runtime, shard: int) -> CheckpointStore:
    if client is not None:
        return ConfigMapStore(client, runtime, shard)
    if runtime.checkpoint is None:
        raise ConfigurationError([Problem("runtime.checkpoint.file", "is missing: name the file")])
    return FileStore(Path(runtime.checkpoint.file))


def _elector(client: KubeClient | None, config: RelayConfig, shard: int, identity: str) -> Elector:
    if client is None:
        return NoElection()
    return LeaseElector(client, config.runtime, shard, config.spec.relay.lease, identity=identity)


def _grace_seconds(config: RelayConfig) -> int:
    template = config.spec.relay.template
    return (template and template.termination_grace_period_seconds) or _GRACE_SECONDS
