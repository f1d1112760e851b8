"""`outbox-dev control-plane …`: etcd and kube-apiserver alone, for trying an operator by hand."""

from typing import Annotated

import typer

from outbox_dev.kubernetes.control_plane import ControlPlane, process_names
from outbox_dev.parts import Part
from outbox_dev.paths import state_dir
from outbox_dev.processes import Processes

NAME = "control-plane"

app = typer.Typer(help="A Kubernetes API server without nodes (five seconds).", no_args_is_help=True)


def _status() -> list[str]:
    processes = Processes(state_dir())
    running = [process for name in process_names(NAME) if (process := processes.get(name))]
    if not running:
        return []
    kubeconfig = state_dir() / NAME / "admin.kubeconfig"
    return [f"kubeconfig: {kubeconfig}", *(f"{process.name}: pid {process.pid}" for process in running)]


def _down() -> None:
    processes = Processes(state_dir())
    for name in reversed(process_names(NAME)):
        processes.stop(name)


@app.command()
def up(
    *,
    controller_manager: Annotated[
        bool, typer.Option(help="Also run kube-controller-manager: garbage collection, Deployments.")
    ] = False,
) -> None:
    """Start it, and write a kubeconfig of its administrator."""
    if not _status():
        plane = ControlPlane.start(
            Processes(state_dir()), state_dir() / NAME, name=NAME, controller_manager=controller_manager
        )
        plane.kubeconfig()
    for line in _status():
        print(line)


@app.command()
def down() -> None:
    """End it."""
    _down()


part = Part(name=NAME, app=app, status=_status, down=_down)
