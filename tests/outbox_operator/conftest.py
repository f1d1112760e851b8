"""The operator under test: a process of its own, with exactly the rights that the chart gives it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from outbox_dev.kubernetes import tools
from outbox_dev.kubernetes.control_plane import ControlPlane
from outbox_dev.paths import repo_root
from outbox_dev.processes import Process, Processes

from .clock import Clock
from .cluster import Cluster, eventually, log_lines

CHART = repo_root() / "charts" / "outbox-relay-operator"
NAMESPACE = "outbox-system"
#: Short, so that what is not watched is seen soon, and that "nothing is written" covers many reconciliations.
RESYNC = 2.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"cluster", "helm"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.integration)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test, whose time limit must not cover it."""
    wanted = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if session.config.option.collectonly or not {"cluster", "helm"} & wanted:
        return
    tools.helm()
    if "cluster" in wanted:
        tools.build("kube")


def helm_run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Helm, whatever it answers."""
    return subprocess.run([str(tools.helm()), *arguments], check=False, capture_output=True, text=True, timeout=60)


def render(*arguments: str, namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """The chart's manifests.

    Raises:
        AssertionError: helm refused the values.
    """
    version = ["--kube-version", tools.kubernetes_version()]
    done = helm_run("template", "outbox", str(CHART), "--namespace", namespace, *version, *arguments)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


@pytest.fixture(scope="session")
def helm() -> None:
    """Marks a test that runs helm, which is found or built before the first test."""


@pytest.fixture(scope="session")
def _plane(processes: Processes, service_data: Path) -> Iterator[ControlPlane]:
    plane = ControlPlane.start(
        processes,
        service_data / "operator-control-plane",
        name="operator-control-plane",
        controller_manager=True,
        owner_references_permission_enforcement=True,
    )
    yield plane
    plane.stop()


@pytest.fixture(scope="session")
def cluster(_plane: ControlPlane) -> Cluster:
    """A cluster with the chart installed but for its Deployment, and with the real garbage collector."""
    cluster = Cluster(_plane)
    cluster.create_namespace(NAMESPACE)
    for manifest in render():
        if manifest["kind"] != "Deployment":
            cluster.install(manifest)

    def served() -> bool:
        return "outboxrelays" in str(cluster.request("GET", "/apis/outboxrelay.io/v1alpha1"))

    eventually(lambda: _quietly(served), what="the CRD is served")
    return cluster


def _quietly(probe: Any) -> Any:
    try:
        return probe()
    except OSError:
        return None


@dataclass
class OperatorProcess:
    """The operator; stopped and started at will, and running again at the next test."""

    processes: Processes
    kubeconfig: Path
    user: str
    log: Path
    arguments: list[str] = field(default_factory=list)
    name: str = "operator"
    process: Process | None = None

    def start(self) -> None:
        """Start it, and wait until it works."""
        self.spawn()
        eventually(lambda: self.said("Leading"), seconds=30, what=f"leading; log: {self.log.read_text()}")

    def spawn(self) -> None:
        """Start it, and do not wait."""
        argv = [sys.executable, "-m", "outbox_operator", "run", "--relay-image=relay:test", "--port=0"]
        argv += [f"--lease-namespace={NAMESPACE}", f"--resync={int(RESYNC * 1000)}ms", *self.arguments]
        env = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "POD_NAME": self.name}
        self.log.write_text("")
        self.process = self.processes.start(self.name, argv, env=env, log=self.log)

    def said(self, message: str) -> list[dict[str, Any]]:
        return [line for line in log_lines(self.log) if line.get("message") == message]

    def stop(self) -> None:
        self.processes.stop(self.name, 15)
        self.process = None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.stop()

    @property
    def port(self) -> int:
        addresses: list[str] = self.said("Serving health and metrics")[-1]["addresses"]
        return next(int(address.rpartition(":")[2]) for address in addresses if address.startswith("0.0.0.0:"))


@pytest.fixture(scope="session")
def _operator(processes: Processes, cluster: Cluster, service_data: Path) -> Iterator[OperatorProcess]:
    user = cluster.plane.service_account(NAMESPACE, "outbox-relay-operator")
    operator = OperatorProcess(processes, user.kubeconfig, user.name, service_data / "operator.log")
    operator.start()
    yield operator
    operator.stop()


@pytest.fixture
def operator(_operator: OperatorProcess) -> OperatorProcess:
    """The running operator, cluster-wide."""
    if _operator.process is None or not _operator.process.alive:
        _operator.stop()
        _operator.start()
    return _operator


@pytest.fixture
def namespace(cluster: Cluster, unique: str) -> Iterator[str]:
    """A namespace of the test's own; its relays go with the test, so that they cost the next one nothing."""
    name = f"test-{unique}"
    cluster.create_namespace(name)
    yield name
    cluster.request("DELETE", f"/apis/outboxrelay.io/v1alpha1/namespaces/{name}/outboxrelays")


@dataclass
class Audit:
    """What the operator asked of the API server since the fixture was made, or since `mark`."""

    cluster: Cluster
    user: str
    offset: int = 0

    def mark(self) -> None:
        self.offset = self.cluster.plane.audit_log.stat().st_size

    def requests(self) -> list[dict[str, Any]]:
        return list(self.cluster.plane.audit_events(user=self.user, offset=self.offset))

    def writes(self, namespace: str | None = None) -> list[str]:
        """Every request with a write verb, but those on the operator's own Lease."""
        return [
            f"{event['verb']} {event['requestURI']} {event['responseStatus']['code']}"
            for event in self.requests()
            if event["verb"] not in {"get", "list", "watch"}
            and not event["requestURI"].startswith(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/")
            and (namespace is None or f"/namespaces/{namespace}/" in event["requestURI"])
        ]


@pytest.fixture
def audit(cluster: Cluster, operator: OperatorProcess) -> Audit:
    """The operator's requests from here on."""
    found = Audit(cluster, operator.user)
    found.mark()
    return found


@pytest.fixture
def clock() -> Clock:
    return Clock()
