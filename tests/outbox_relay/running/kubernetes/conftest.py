"""A namespace as the operator leaves it for a relay, and the relay's own identity with its own narrow role."""

import contextlib
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from outbox_api import names
from outbox_api.relay_config import OwnerReference, Runtime
from outbox_dev.kubernetes.control_plane import ControlPlane, User
from outbox_relay.kube.access import from_kubeconfig
from outbox_relay.kube.client import KubeClient

NAME = "orders"
_CORE = "/api/v1/namespaces"
_RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces"


@dataclass
class Shard:
    """What the operator makes for shard 0 of a relay."""

    plane: ControlPlane
    namespace: str
    user: User

    @property
    def runtime(self) -> Runtime:
        return Runtime(
            name=NAME,
            namespace=self.namespace,
            election="Kubernetes",
            labels={"app.kubernetes.io/name": "outbox-relay"},
            owner_reference=OwnerReference(api_version="v1", kind="Namespace", name=self.namespace, uid="0-1"),
        )

    @property
    def lease_path(self) -> str:
        return f"{_LEASES}/{self.namespace}/leases/{names.lease(NAME, 0)}"

    @property
    def checkpoint_path(self) -> str:
        return f"{_CORE}/{self.namespace}/configmaps/{names.checkpoint(NAME, 0)}"

    @property
    def report_path(self) -> str:
        return f"{_CORE}/{self.namespace}/configmaps/{names.report(NAME, 0)}"

    def lease(self) -> dict[str, Any]:
        return dict(self.plane.request("GET", self.lease_path))

    def holder(self) -> str | None:
        return (self.lease().get("spec") or {}).get("holderIdentity")

    def checkpoint(self) -> dict[str, Any]:
        data = self.plane.request("GET", self.checkpoint_path).get("data") or {}
        return dict(json.loads(data.get(names.CHECKPOINT_KEY, "{}")))

    def report(self) -> dict[str, Any]:
        data = self.plane.request("GET", self.report_path).get("data") or {}
        return dict(json.loads(data.get(names.REPORT_KEY, "{}")))

    def edit(self, path: str, change: Callable[[dict[str, Any]], None]) -> None:
        found = self.plane.request("GET", path)
        change(found)
        self.plane.request("PUT", path, found)


@pytest.fixture
def shard(control_plane: ControlPlane, unique: str) -> Shard:
    """A namespace with Lease, checkpoint and report, and a ServiceAccount that may do what a relay may."""
    namespace = f"relay-{unique}"
    post = control_plane.request
    post("POST", _CORE, {"metadata": {"name": namespace}})
    for kind, path in (
        (names.lease(NAME, 0), f"{_LEASES}/{namespace}/leases"),
        (names.checkpoint(NAME, 0), f"{_CORE}/{namespace}/configmaps"),
        (names.report(NAME, 0), f"{_CORE}/{namespace}/configmaps"),
    ):
        post("POST", path, {"metadata": {"name": kind, "labels": {"made-by": "operator"}}})
    post("POST", f"{_CORE}/{namespace}/serviceaccounts", {"metadata": {"name": "relay"}})
    verbs = ["get", "create", "update", "patch"]
    rules = [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [names.lease(NAME, 0)],
            "verbs": verbs,
        },
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": [names.checkpoint(NAME, 0), names.report(NAME, 0)],
            "verbs": verbs,
        },
    ]
    post("POST", f"{_RBAC}/{namespace}/roles", {"metadata": {"name": "relay"}, "rules": rules})
    binding = {
        "metadata": {"name": "relay"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "relay"},
        "subjects": [{"kind": "ServiceAccount", "name": "relay", "namespace": namespace}],
    }
    post("POST", f"{_RBAC}/{namespace}/rolebindings", binding)
    return Shard(control_plane, namespace, control_plane.service_account(namespace, "relay"))


@pytest.fixture
async def client(shard: Shard) -> AsyncIterator[KubeClient]:
    """A client with the relay's own rights."""
    client = KubeClient(from_kubeconfig(shard.user.kubeconfig))
    yield client
    await client.close()


class Link:
    """The network between one client and the API server: once it is cut, nothing comes through and nobody is told."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._sockets: list[socket.socket] = []
        self._cut = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        """Drop everything from now on, silently."""
        self._cut = True

    def close(self) -> None:
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for each in (self._listener, *self._sockets):
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                ours, _ = self._listener.accept()
            except OSError:
                return
            theirs = socket.create_connection(self._target)
            self._sockets += [ours, theirs]
            for source, target in ((ours, theirs), (theirs, ours)):
                thread = threading.Thread(target=self._pass_on, args=(source, target), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if not self._cut:
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def link(shard: Shard, tmp_path: Path) -> Iterator[tuple[Link, Path]]:
    """A link that can be cut, and a kubeconfig of the relay that goes through it."""
    host, port = shard.plane.url.removeprefix("https://").split(":")
    link = Link(host, int(port))
    config = json.loads(shard.user.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{link.port}"
    path = tmp_path / "linked.kubeconfig"
    path.write_text(json.dumps(config))
    yield link, path
    link.close()
