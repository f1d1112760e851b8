"""Without Kubernetes: MongoDB, Kafka, the order service, and one relay as a process that is killed in mid-flow."""

import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import yaml

from outbox_dev.demo.shop import Shop
from outbox_dev.paths import repo_root
from outbox_dev.ports import free_port
from outbox_dev.processes import Processes
from outbox_dev.progress import SetupError, say, step

_RELAY = "relay"
_READY_SECONDS = 30.0
_KILL_AFTER = 120
_POLL_SECONDS = 0.05


def run(processes: Processes, folder: Path) -> bool:
    """Run the demo and return whether everything committed arrived in order.

    Args:
        processes: where everything is recorded; ended by the caller.
        folder: for data and configuration.

    Raises:
        SetupError: something is missing on this machine, or did not come up.
    """
    shop = Shop.open(processes, folder)
    configuration, port = _configure(shop, folder)
    with step("Starting the relay"):
        _start_relay(processes, configuration, port)
    with shop.watch() as watcher:
        shop.start_order_service()
        if not watcher.wait_for(_KILL_AFTER, timeout=60):
            relay = processes.get(_RELAY)
            raise SetupError("No events arrive", relay.log_tail() if relay else "The relay has ended.")
        _kill_and_restart(processes, configuration, port)
        return shop.judge(watcher)


def _kill_and_restart(processes: Processes, configuration: Path, port: int) -> None:
    relay = processes.get(_RELAY)
    if relay is None:
        raise SetupError("The relay has ended by itself", f"See {processes.state / 'logs' / 'relay.log'}")
    relay.kill()
    say(f"==> kill -9 of the relay (pid {relay.pid}), in mid-flow; the order service goes on. Starting it again:")
    _start_relay(processes, configuration, port)


def _configure(shop: Shop, folder: Path) -> tuple[Path, int]:
    """Write `examples/local/relay.yaml` with the addresses of this run; return the file and the relay's port."""
    example = repo_root() / "examples" / "local" / "relay.yaml"
    configuration = yaml.safe_load(example.read_text(encoding="utf-8"))
    uri = folder / "mongodb-uri"
    uri.write_text(shop.mongodb.uri, encoding="utf-8")
    configuration["spec"]["source"]["uriFile"] = str(uri)
    configuration["spec"]["sink"]["bootstrapServers"] = [shop.kafka.bootstrap_servers]
    configuration["runtime"]["checkpoint"]["file"] = str(folder / "checkpoint.json")
    port = free_port()
    configuration["runtime"]["listen"]["port"] = port
    path = folder / "relay.yaml"
    path.write_text(yaml.safe_dump(configuration), encoding="utf-8")
    return path, port


def _start_relay(processes: Processes, configuration: Path, port: int) -> None:
    argv = [sys.executable, "-m", "outbox_relay", "run", "--config", str(configuration)]
    process = processes.start(_RELAY, argv, cwd=repo_root())
    deadline = time.monotonic() + _READY_SECONDS
    while not _ready(port):
        if not process.alive or time.monotonic() > deadline:
            raise SetupError("The relay does not become ready", process.log_tail())
        time.sleep(_POLL_SECONDS)


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
