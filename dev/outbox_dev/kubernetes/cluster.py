"""A Kubernetes cluster for demo and end-to-end tests: the user's own, or `kind` on whatever engine there is.

Three ways, one interface:

- the cluster of `KUBECONFIG`, only when asked for with `OUTBOX_DEV_CLUSTER=kubeconfig`;
- `kind` on a Docker or podman that answers, with kind's published node image;
- `kind` on an engine of our own (`own_engine`), with a node image made here (`node_image`).

kind's kubeconfig is a file of this checkout; the user's own is never read or written unless asked for.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from outbox_dev.kubernetes import node_image, own_engine, tools
from outbox_dev.kubernetes.engine import Engine, alone_in, checkout_id, find_engine, run
from outbox_dev.paths import state_dir
from outbox_dev.processes import Processes
from outbox_dev.progress import SetupError, step

READY_TIMEOUT = 180.0


@dataclass(frozen=True)
class Cluster:
    """A cluster that is up.

    Attributes:
        name: kind's name for it, or the kubeconfig's context.
        kubeconfig: the file with which clients reach it, from inside `netns` if there is one.
        netns: the network namespace it lives in; None when the machine's own network reaches it.
        host_address: the address at which its pods reach processes that this machine runs (in `netns` if there is
            one) and that listen on it; None when the cluster is the user's and nothing is known of its network.
        engine: `docker` or `podman` for a kind cluster, else None.
        engine_env: what the engine's clients need in the environment.
    """

    name: str
    kubeconfig: Path
    netns: str | None
    host_address: str | None
    engine: str | None
    engine_env: dict[str, str]

    @classmethod
    def current(cls) -> "Cluster | None":
        """The cluster that this checkout has up, or None."""
        try:
            record = json.loads(_record().read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return cls(**{**record, "kubeconfig": Path(record["kubeconfig"])})

    def environment(self) -> dict[str, str]:
        """The caller's environment with the cluster's KUBECONFIG, and a fitting kubectl and helm first on PATH."""
        return {
            **os.environ,
            **self.engine_env,
            "KUBECONFIG": str(self.kubeconfig),
            "PATH": f"{tools.bin_dir()}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }

    def command(self, argv: Sequence[str | Path]) -> list[str]:
        """The command that runs `argv` where the cluster can be reached."""
        return Engine("", netns=self.netns).inside(argv)

    def run(self, *argv: str | Path, timeout: float = 120.0) -> str:
        """Run a program where the cluster can be reached, with `environment`, and return its standard output.

        Raises:
            SetupError: it failed; the message holds what it printed.
        """
        return run(self.command(argv), env=self.environment(), timeout=timeout)

    def kubectl(self, *args: str | Path, timeout: float = 120.0) -> str:
        """`kubectl …` on this cluster; standard output."""
        return self.run(tools.kubectl(), *args, timeout=timeout)

    def nodes(self) -> list[str]:
        """The nodes' names, which are also their containers'; control plane first."""
        items = json.loads(self.kubectl("get", "nodes", "--output=json"))["items"]
        control_plane = "node-role.kubernetes.io/control-plane"
        found = [(control_plane not in item["metadata"]["labels"], item["metadata"]["name"]) for item in items]
        return [name for _, name in sorted(found)]

    def node_exec(self, argv: Sequence[str | Path], *, node: str | None = None, timeout: float = 60.0) -> str:
        """Run a command as root in a node (the first unless named) and return its standard output.

        In a node, processes of pods are visible: `node_exec(["pkill", "-KILL", "-f", "outbox_relay"])`.

        Raises:
            SetupError: it failed, or the cluster is not kind's.
        """
        return self._engine().call("exec", node or f"{self.name}-control-plane", *argv, timeout=timeout)

    def load_images(self, *tags: str) -> None:
        """Put images of the engine into every node, so that pods find them without a registry.

        Raises:
            SetupError: the cluster is the user's: images get there by a registry.
        """
        engine = self._engine()
        if self.netns is not None:
            own_engine.load_images(engine, self.nodes(), tags)
            return
        kind: list[str | Path] = [tools.kind(), "load", "docker-image", *tags, "--name", self.name]
        run(engine.inside(kind), env=engine.environment(), timeout=300)

    def _engine(self) -> Engine:
        if self.engine is None:
            raise SetupError(
                f"{self.name} is not a kind cluster of this program",
                "Its nodes cannot be entered, and images get there by a registry: build and push them yourself.",
            )
        return Engine(self.engine, self.engine_env, self.netns)


def up(processes: Processes) -> Cluster:
    """The cluster, brought up unless it is; a second call waits for the first.

    Raises:
        SetupError: something is missing, or a step failed.
    """
    with alone_in(state_dir()):
        cluster = Cluster.current()
        if cluster is not None and _answers(cluster):
            return cluster
        if os.environ.get("OUTBOX_DEV_CLUSTER") == "kubeconfig":
            return _write(_users_cluster())
        # What a crash left, or a cluster that no longer answers. An engine that runs stays: it may have built images.
        _forget(processes)
        try:
            engine = _engine(processes)
            image = node_image.ensure(engine) if engine.netns is not None else None
            return _write(_create(engine, image))
        except BaseException:
            _forget(processes)
            raise


def engine_for_images(processes: Processes) -> Engine:
    """The engine whose images `load_images` puts into nodes; one of our own is started when no other answers."""
    with alone_in(state_dir()):
        return _engine(processes)


def down(processes: Processes) -> None:
    """End the cluster and all that was started for it; the user's own cluster is only forgotten."""
    with alone_in(state_dir()):
        if own_engine.running(processes) is None:
            _forget(processes)
        # Takes the cluster that lives in it along.
        own_engine.stop(processes)
        _forget_record()


def _engine(processes: Processes) -> Engine:
    return own_engine.running(processes) or find_engine() or own_engine.start(processes)


def _forget(processes: Processes) -> None:
    """End the kind cluster, if there is one, and leave its engine as it is."""
    # Without asking the record: a crash may have come between kind and it. kind touches the nodes of that name alone.
    engine = own_engine.running(processes) or find_engine()
    if engine is not None and _name() in _kind(engine, "get", "clusters").split():
        with step("Deleting the kind cluster"):
            _kind(engine, "delete", "cluster", "--name", _name(), "--kubeconfig", _kubeconfig())
    _forget_record()


def _forget_record() -> None:
    _kubeconfig().unlink(missing_ok=True)
    _record().unlink(missing_ok=True)


def _name() -> str:
    return f"outbox-{checkout_id()}"


def _record() -> Path:
    return state_dir() / "cluster.json"


def _kubeconfig() -> Path:
    return state_dir() / "cluster.kubeconfig"


def _write(cluster: Cluster) -> Cluster:
    record = {**asdict(cluster), "kubeconfig": str(cluster.kubeconfig)}
    _record().write_text(json.dumps(record, indent=1), encoding="utf-8")
    return cluster


def _answers(cluster: Cluster) -> bool:
    try:
        cluster.kubectl("get", "--raw=/readyz", "--request-timeout=5s", timeout=20)
    except SetupError:
        return False
    return True


def _users_cluster() -> Cluster:
    path = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    if os.pathsep in path or not Path(path).is_file():
        raise SetupError(
            f"OUTBOX_DEV_CLUSTER=kubeconfig, but KUBECONFIG ({path}) is not one file", "Set KUBECONFIG to one file."
        )
    context = run([tools.kubectl(), "config", "current-context", f"--kubeconfig={path}"]).strip()
    cluster = Cluster(context, Path(path), None, os.environ.get("OUTBOX_DEV_HOST_ADDRESS"), None, {})
    if not _answers(cluster):
        raise SetupError(f"The cluster of {path} (context {context}) does not answer", "Try `kubectl get nodes`.")
    return cluster


def _create(engine: Engine, image: str | None) -> Cluster:
    """Create a kind cluster.

    Args:
        engine: where its nodes run.
        image: the node image made here; None for kind's published one.
    """
    config = state_dir() / "kind.yaml"
    config.write_text(yaml.safe_dump(_kind_config(image), sort_keys=False), encoding="utf-8")
    with step("Creating the kind cluster", expect="about a minute"):
        _kind(engine, "create", "cluster", "--name", _name(), "--config", config, "--kubeconfig", _kubeconfig())
        network = json.loads(engine.call("network", "inspect", "kind"))[0]
        cluster = Cluster(_name(), _kubeconfig(), engine.netns, _gateway(network), engine.program, dict(engine.env))
    with step("Waiting for the nodes, DNS and Services", expect="ten seconds"):
        try:
            _wait_until_usable(cluster, own_network=image is not None)
        except SetupError as error:
            raise SetupError("The cluster did not get ready", f"{error}\n{_diagnosis(cluster)}") from error
    return cluster


def _wait_until_usable(cluster: Cluster, *, own_network: bool) -> None:
    wait = f"--timeout={READY_TIMEOUT:.0f}s"
    limit = READY_TIMEOUT + 20
    cluster.kubectl("--namespace=kube-system", "rollout", "status", "daemonset/kube-proxy", wait, timeout=limit)
    if own_network:
        _set_up_pod_network(cluster)
    cluster.kubectl("wait", "node", "--all", "--for=condition=Ready", wait, timeout=limit)
    cluster.kubectl("--namespace=kube-system", "rollout", "status", "deployment/coredns", wait, timeout=limit)


def _diagnosis(cluster: Cluster) -> str:
    """What the cluster says about itself, for an error message."""
    said = []
    for words in (
        ["get", "pods", "--all-namespaces", "--output=wide"],
        ["get", "events", "--all-namespaces", "--field-selector=type=Warning"],
    ):
        try:
            said.append(cluster.kubectl(*words, "--request-timeout=10s", timeout=30))
        except SetupError as error:
            said.append(str(error))
    return "\n".join(said)


def _kind(engine: Engine, *args: str | Path) -> str:
    return run(engine.inside([tools.kind(), *args]), env=engine.environment(), timeout=600)


def _kind_config(image: str | None) -> dict[str, Any]:
    patches: list[str] = []
    config: dict[str, Any] = {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4"}
    node: dict[str, Any] = {"role": "control-plane"}
    if image is not None:
        node["image"] = image
        config["networking"] = {"disableDefaultCNI": True}
    config["nodes"] = [node]
    if image is not None and not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        # cgroup v1, which kubelet refuses since 1.35 unless told.
        patches.append(
            yaml.safe_dump(
                {"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1", "failCgroupV1": False}
            )
        )
    if image is not None and not own_engine.has_sys_resource():
        config["containerdConfigPatches"] = ['[plugins."io.containerd.grpc.v1.cri"]\n  restrict_oom_score_adj = true\n']
    if patches:
        config["kubeadmConfigPatches"] = patches
    return config


def _set_up_pod_network(cluster: Cluster) -> None:
    """Give each node a bridge for its pods.

    After kube-proxy, as kind's own network daemon would: a CoreDNS that dials the API server's Service before its
    rules exist waits 30 seconds for that dial.
    """
    nodes = json.loads(cluster.kubectl("get", "nodes", "--output=json"))["items"]
    for item in nodes:
        bridge = {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipMasq": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": item["spec"]["podCIDR"]}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
        plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
        text = json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": plugins})
        script = f"printf %s '{text}' > /etc/cni/net.d/10-bridge.conflist"
        cluster.node_exec(["sh", "-c", script], node=item["metadata"]["name"])


def _gateway(network: dict[str, Any]) -> str:
    """The IPv4 gateway of an engine's network: the machine's own address on its bridge.

    Args:
        network: as `docker network inspect` (`IPAM.Config[].Gateway`) or podman (`subnets[].gateway`) print it.
    """
    docker = [entry.get("Gateway") for entry in network.get("IPAM", {}).get("Config") or []]
    podman = [entry.get("gateway") for entry in network.get("subnets", [])]
    for address in (*docker, *podman):
        if address and ":" not in address:
            return str(address)
    raise SetupError(f"The network {network.get('Name', 'kind')} has no IPv4 gateway", json.dumps(network))


def exec_in(cluster: Cluster, argv: Sequence[str]) -> int:
    """Run a command where the cluster can be reached, on this terminal; returns its exit code."""
    return subprocess.run(cluster.command(argv), env=cluster.environment(), check=False).returncode
