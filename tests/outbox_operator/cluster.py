"""Hands for the tests: what an administrator, a kubelet, a leader and a user would do in the cluster."""

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from outbox_dev.kubernetes.control_plane import ControlPlane

T = TypeVar("T")
Object = dict[str, Any]

_PATHS = {
    "OutboxRelay": "/apis/outboxrelay.io/v1alpha1/namespaces/{}/outboxrelays",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Event": "/api/v1/namespaces/{}/events",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
}


def eventually(probe: Callable[[], T], *, seconds: float = 15.0, what: str = "") -> T:
    """The probe's first true value; fails with its last one when there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what or probe}; last seen: {found!r}")
        time.sleep(0.05)


class Cluster:
    """One cluster, with all rights."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._context = ssl.create_default_context(cafile=str(plane.ca_path))

    def request(
        self, method: str, path: str, body: Object | None = None, *, content_type: str = "application/json"
    ) -> Any:
        request = urllib.request.Request(
            self.plane.url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Authorization": f"Bearer {self.plane.admin_token}", "Content-Type": content_type},
        )
        with urllib.request.urlopen(request, timeout=30, context=self._context) as answer:
            return json.loads(answer.read())

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        try:
            found: Object = self.request("GET", f"{_PATHS[kind].format(namespace)}/{name}")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise
        return found

    def must_get(self, kind: str, namespace: str, name: str) -> Object:
        found = self.get(kind, namespace, name)
        assert found is not None, f"{kind} {namespace}/{name} is not there"
        return found

    def all(self, kind: str, namespace: str) -> list[Object]:
        items: list[Object] = self.request("GET", _PATHS[kind].format(namespace))["items"]
        return items

    def create(self, namespace: str, obj: Object) -> Object:
        created: Object = self.request("POST", _PATHS[obj["kind"]].format(namespace), obj)
        return created

    def patch(self, kind: str, namespace: str, name: str, patch: Object, *, status: bool = False) -> Object:
        path = f"{_PATHS[kind].format(namespace)}/{name}{'/status' if status else ''}"
        patched: Object = self.request("PATCH", path, patch, content_type="application/merge-patch+json")
        return patched

    def delete(self, kind: str, namespace: str, name: str) -> None:
        self.request("DELETE", f"{_PATHS[kind].format(namespace)}/{name}")

    def create_namespace(self, name: str) -> None:
        self.request(
            "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        )

    def install(self, manifest: Object) -> None:
        """Create any object that a chart holds, in a cluster that has none of it."""
        api, kind = manifest["apiVersion"], manifest["kind"]
        plural = {"Ingress": "ingresses"}.get(kind, f"{kind.lower()}s")
        base = f"/api/{api}" if "/" not in api else f"/apis/{api}"
        namespace = manifest["metadata"].get("namespace")
        self.request("POST", f"{base}/{f'namespaces/{namespace}/' if namespace else ''}{plural}", manifest)

    # What the user does

    def apply_relay(self, namespace: str, name: str = "orders", **spec: Any) -> Object:
        return self.create(namespace, relay(name, **spec))

    def condition(self, namespace: str, kind: str, name: str = "orders") -> Object:
        """A condition of a relay; empty when it is not there yet."""
        status = (self.get("OutboxRelay", namespace, name) or {}).get("status") or {}
        return next((c for c in status.get("conditions") or () if c["type"] == kind), {})

    def wait_for(
        self, namespace: str, kind: str, status: str, reason: str, name: str = "orders", *, seconds: float = 15.0
    ) -> Object:
        def probe() -> Object | None:
            found = self.condition(namespace, kind, name)
            return found if (found.get("status"), found.get("reason")) == (status, reason) else None

        try:
            return eventually(probe, seconds=seconds)
        except AssertionError as error:
            raise AssertionError(
                f"{kind} is not {status}/{reason} but {self.condition(namespace, kind, name)}"
            ) from error

    # What a kubelet does

    def run_pods(self, namespace: str, name: str = "orders", *, status: Object | None = None) -> list[str]:
        """Let the pods of a relay that the controllers made run and be ready, or be in another state."""

        def pods() -> list[Object]:
            deployment = self.get("Deployment", namespace, f"{name}-outbox-0")
            if deployment is None:
                return []
            wanted = deployment["spec"]["template"]["metadata"]["annotations"]["outboxrelay.io/config-hash"]
            return [
                pod
                for pod in self.all("Pod", namespace)
                if pod["metadata"]["labels"].get("outboxrelay.io/relay") == name
                and pod["metadata"]["annotations"].get("outboxrelay.io/config-hash") == wanted
                and "deletionTimestamp" not in pod["metadata"]
            ]

        found = eventually(pods, what="pods of the wanted configuration")
        for pod in found:
            self.patch("Pod", namespace, pod["metadata"]["name"], {"status": status or ready_status()}, status=True)
        return [pod["metadata"]["name"] for pod in found]

    # What a leader does

    def report(self, namespace: str, name: str = "orders", **fields: Any) -> None:
        report = {
            "state": "Streaming",
            "reason": "Streaming",
            "message": "Events flow.",
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            **fields,
        }
        self.patch("ConfigMap", namespace, f"{name}-outbox-0-report", {"data": {"report.json": json.dumps(report)}})

    def bring_up(self, namespace: str, name: str = "orders", **report: Any) -> str:
        """Let a relay's pod run, lead and stream; its name."""
        (pod,) = self.run_pods(namespace, name)
        self.report(namespace, name, leader=pod, **report)
        return pod


def ready_status(**container: Any) -> Object:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ],
        "containerStatuses": [_container(ready=True, started=True, state={"running": {"startedAt": now}}) | container],
    }


def waiting_status(reason: str, message: str, **container: Any) -> Object:
    """A pod whose container does not run."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "phase": "Pending",
        "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [_container(ready=False, started=False, state=state) | container],
    }


def _container(**fields: Any) -> Object:
    return {"name": "relay", "image": "relay:test", "imageID": "", "restartCount": 0, "lastState": {}, **fields}


def relay(
    name: str = "orders", *, annotations: Object | None = None, labels: Object | None = None, **spec: Any
) -> Object:
    """A small OutboxRelay; the keywords are top-level fields of its spec."""
    return {
        "apiVersion": "outboxrelay.io/v1alpha1",
        "kind": "OutboxRelay",
        "metadata": {"name": name, "annotations": annotations or {}, "labels": labels or {}},
        "spec": {
            "source": {
                "uriSecretRef": {"name": f"{name}-mongo", "key": "uri"},
                "database": "shop",
                "collection": "outbox",
            },
            "sink": {"bootstrapServers": ["kafka:9092"]},
            **spec,
        },
    }


def children(name: str = "orders") -> set[tuple[str, str]]:
    return {
        ("ServiceAccount", f"{name}-outbox-relay"),
        ("Role", f"{name}-outbox-relay"),
        ("RoleBinding", f"{name}-outbox-relay"),
        ("ConfigMap", f"{name}-outbox-config"),
        ("Lease", f"{name}-outbox-0-lease"),
        ("ConfigMap", f"{name}-outbox-0-checkpoint"),
        ("ConfigMap", f"{name}-outbox-0-report"),
        ("Deployment", f"{name}-outbox-0"),
    }


def log_lines(path: Path) -> list[Object]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
