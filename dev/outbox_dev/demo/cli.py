"""`outbox-dev demo-local` and `outbox-dev demo`."""

import sys
import time
from pathlib import Path

import typer

from outbox_dev.demo import in_cluster, local
from outbox_dev.kubernetes.cluster import Cluster, exec_in
from outbox_dev.parts import Part
from outbox_dev.processes import Process
from outbox_dev.progress import fail, say
from outbox_dev.services import Service

app = typer.Typer()
_local = Service("demo-local")
_preparation = Service("demo-preparation")

_FOLLOW_SECONDS = 0.2


@app.command("demo-local")
def demo_local() -> None:
    """Events through a relay as a process, without Kubernetes: about a minute. Ends all it started."""
    if not _run_local():
        raise typer.Exit(1)


@app.command("demo")
def demo() -> None:
    """The same, and then the real thing: a cluster, the operator, a relay in a pod that is killed in mid-flow."""
    if _preparation.processes.running():
        fail("A demo runs already", "wait for its end, or end it by: outbox-dev down")
    say("==> First without Kubernetes; meanwhile the cluster and the images are prepared")
    process, marker = _start_preparation()
    if not _run_local():
        raise typer.Exit(1)
    say("\n==> Now in Kubernetes. What was prepared meanwhile:")
    _follow(process)
    if not marker.exists():
        fail("The cluster could not be prepared", "see the messages above")
    _preparation.down()
    cluster = Cluster.current()
    if cluster is None:
        fail("The cluster is gone", "outbox-dev cluster up")
    raise typer.Exit(exec_in(cluster, [sys.executable, "-m", in_cluster.__name__]))


def _run_local() -> bool:
    if _local.processes.running():
        fail("demo-local runs already", "wait for its end, or end it by: outbox-dev down")
    _local.down()
    processes = _local.processes
    processes.end_with_caller()
    try:
        return local.run(processes, _local.data)
    finally:
        _local.down()


def _start_preparation() -> tuple[Process, Path]:
    """Start making the cluster in the background; return the process and the file that it makes at its good end."""
    _preparation.down()
    processes = _preparation.processes
    processes.end_with_caller()
    marker = _preparation.folder / "prepared"
    return processes.start("prepare", [sys.executable, "-m", "outbox_dev.demo.prepare", str(marker)]), marker


def _follow(process: Process) -> None:
    """Print what a process has printed, and prints until it ends."""
    with Path(process.log).open(encoding="utf-8") as log:
        alive = True
        while alive:
            alive = process.alive  # asked first, so that its last words are read
            print(log.read(), end="", file=sys.stderr, flush=True)
            if alive:
                time.sleep(_FOLLOW_SECONDS)


def _status() -> list[str]:
    services = (_local, _preparation, in_cluster.service)
    return [f"{process.name}: pid {process.pid}" for service in services for process in service.processes.running()]


def _down() -> None:
    for service in (_preparation, _local, in_cluster.service):
        service.down()


part = Part(name="demo", app=app, status=_status, down=_down, top_level=True)
