"""`outbox-dev cluster …`: bring a cluster up, use it, end it."""

import typer

from outbox_dev.kubernetes import cluster as clusters
from outbox_dev.kubernetes import own_engine
from outbox_dev.kubernetes.cluster import Cluster
from outbox_dev.parts import Part
from outbox_dev.paths import state_dir
from outbox_dev.processes import Processes
from outbox_dev.progress import SetupError

app = typer.Typer(help="A Kubernetes cluster: kind, with or without a Docker engine.", no_args_is_help=True)


def _processes() -> Processes:
    return Processes(state_dir())


def _status() -> list[str]:
    cluster = Cluster.current()
    if cluster is None:
        # An engine may run for images alone.
        return ["container engine only"] if own_engine.running(_processes()) else []
    where = f"network namespace {cluster.netns}" if cluster.netns else "this machine's network"
    return [
        f"{cluster.name} ({cluster.engine or 'of KUBECONFIG'}, in {where})",
        f"kubeconfig: {cluster.kubeconfig}",
        f"pods reach this machine at: {cluster.host_address or 'unknown'}",
        "use it: outbox-dev cluster exec -- kubectl get pods -A",
    ]


def _down() -> None:
    clusters.down(_processes())


@app.command()
def up() -> None:
    """Bring the cluster up, unless it is.

    kind on a Docker or podman that answers; without one, as root on Debian, on an engine of its own in a network
    namespace. OUTBOX_DEV_CLUSTER=kubeconfig uses the cluster of KUBECONFIG instead; its pods then get the project's
    images from OUTBOX_DEV_IMAGE_PREFIX, and reach this machine at OUTBOX_DEV_HOST_ADDRESS.
    """
    clusters.up(_processes())
    for line in _status():
        print(line)


@app.command()
def down() -> None:
    """End the cluster and all that was started for it; also what a crash left."""
    _down()


@app.command()
def status() -> None:
    """Show where the cluster is and how to use it."""
    for line in _status() or ["not running"]:
        print(line)


@app.command(
    name="exec",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False},
)
def exec_(context: typer.Context) -> None:
    """Run a command with KUBECONFIG set, where the cluster can be reached: `cluster exec -- kubectl get nodes`."""
    cluster = Cluster.current()
    if cluster is None:
        raise SetupError("No cluster is up", "Run `outbox-dev cluster up` first.")
    if not context.args:
        raise SetupError("No command given", "For example: outbox-dev cluster exec -- kubectl get nodes")
    raise typer.Exit(clusters.exec_in(cluster, context.args))


part = Part(name="cluster", app=app, status=_status, down=_down)
