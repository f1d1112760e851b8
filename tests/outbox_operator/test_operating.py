"""The operator as a process: its rights, its Lease, what it does when something is wrong around it."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outbox_dev.processes import Processes

from .cluster import Cluster, eventually
from .conftest import NAMESPACE, Audit, OperatorProcess, render

SPEC = ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties")


def _crd(cluster: Cluster) -> Any:
    return cluster.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/outboxrelays.outboxrelay.io")


def _put_crd(cluster: Cluster, crd: Any) -> None:
    crd["metadata"].pop("resourceVersion", None)
    current = _crd(cluster)
    crd["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
    cluster.request("PUT", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/outboxrelays.outboxrelay.io", crd)


@pytest.fixture
def crd(cluster: Cluster) -> Iterator[Any]:
    """The CRD, to be changed; restored after the test."""
    original = _crd(cluster)
    yield _crd(cluster)
    _put_crd(cluster, original)


def _at(obj: Any, *path: Any) -> Any:
    for part in path:
        obj = obj[part]
    return obj


def _published(cluster: Cluster) -> str:
    return str(cluster.request("GET", "/openapi/v3/apis/outboxrelay.io/v1alpha1"))


def run_once(operator: OperatorProcess) -> subprocess.CompletedProcess[str]:
    """An operator that is expected to end by itself."""
    argv = [sys.executable, "-m", "outbox_operator", "run", "--relay-image=relay:test", "--port=0"]
    env = {**os.environ, "KUBECONFIG": str(operator.kubeconfig)}
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_kopf_writes_nothing_and_no_request_is_ever_refused(
    cluster: Cluster, operator: OperatorProcess, namespace: str
) -> None:
    cluster.apply_relay(namespace)
    cluster.bring_up(namespace)
    cluster.wait_for(namespace, "Ready", "True", "Ready")
    # Since the cluster began: by this test and all before it.
    events = list(cluster.plane.audit_events(user=operator.user))
    by_kopf = [event for event in events if "kopf" in event["userAgent"]]
    assert by_kopf, "kopf's requests are recognised by their user agent"
    assert {event["verb"] for event in by_kopf} <= {"get", "list", "watch"}
    refused = {event["requestURI"] for event in events if event.get("responseStatus", {}).get("code") == 403}
    # A namespace that is being deleted refuses new objects.
    assert {uri for uri in refused if f"/namespaces/{namespace}/" in uri or "/namespaces/" not in uri} == set()
    relay = cluster.must_get("OutboxRelay", namespace, "orders")
    assert "finalizers" not in relay["metadata"]
    assert not [key for key in relay["metadata"].get("annotations", {}) if "kopf" in key]


def test_it_reads_no_secrets_and_lists_only_labelled_objects(
    cluster: Cluster, operator: OperatorProcess, namespace: str
) -> None:
    events = list(cluster.plane.audit_events(user=operator.user))
    assert not [event for event in events if "/secrets" in event["requestURI"]]
    lists = [event["requestURI"] for event in events if event["verb"] in {"list", "watch"}]
    unselective = [uri for uri in lists if "labelSelector" not in uri and "/outboxrelays" not in uri]
    assert unselective == []


def test_one_resource_that_cannot_be_understood_stalls_alone(
    cluster: Cluster, operator: OperatorProcess, namespace: str, crd: Any
) -> None:
    # A CRD that lets through what the operator's model refuses, as another version's might.
    attempts = _at(crd, *SPEC, "failure", "properties", "maxAttempts")
    attempts["maximum"] = 100_000
    _put_crd(cluster, crd)
    eventually(lambda: _create_odd(cluster, namespace), what="the loosened CRD is in force")
    cluster.apply_relay(namespace, "good")
    found = cluster.wait_for(namespace, "Stalled", "True", "InvalidSpec", "odd")
    assert "spec.failure.maxAttempts" in found["message"]
    assert "99999" not in found["message"]
    cluster.bring_up(namespace, "good")
    cluster.wait_for(namespace, "Ready", "True", "Ready", "good")
    assert cluster.get("Deployment", namespace, "odd-outbox-0") is None


def _create_odd(cluster: Cluster, namespace: str) -> bool:
    try:
        cluster.apply_relay(namespace, "odd", failure={"maxAttempts": 99_999})
    except urllib.error.HTTPError as error:
        if error.code != 422:
            raise
        return False
    return True


def test_it_refuses_to_work_with_an_older_crd_and_says_which_field_is_missing(
    cluster: Cluster, operator: OperatorProcess, crd: Any
) -> None:
    del _at(crd, *SPEC)["retention"]
    versions = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    versions["x-kubernetes-validations"] = [
        rule for rule in versions["x-kubernetes-validations"] if "retention" not in rule["rule"]
    ]
    _put_crd(cluster, crd)
    eventually(lambda: "'retention'" not in _published(cluster), what="the older schema is published", seconds=30)
    ended = run_once(operator)
    assert ended.returncode == 3
    assert "spec.retention" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_it_refuses_to_work_without_the_crd_and_says_how_to_get_it(tmp_path: Path, processes: Processes) -> None:
    from outbox_dev.kubernetes.control_plane import control_plane

    with control_plane(processes, tmp_path / "plane", name="without-crd") as plane:
        env = {**os.environ, "KUBECONFIG": str(plane.kubeconfig())}
        argv = [sys.executable, "-m", "outbox_operator", "run", "--relay-image=relay:test", "--port=0"]
        ended = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 3
    assert "crds/outboxrelays.yaml" in ended.stderr


def test_health_and_metrics_are_served(operator: OperatorProcess) -> None:
    def read(path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{operator.port}{path}", timeout=5) as answer:
            assert answer.status == 200
            return str(answer.read().decode())

    assert read("/livez") == read("/readyz") == "ok\n"
    metrics = read("/metrics")
    assert "outbox_operator_watch_overdue_seconds" in metrics
    assert "outbox_operator_leader 1.0" in metrics
    assert 'outbox_operator_reconciles_total{result="settled"}' in metrics
    assert 'outbox_operator_kube_requests_total{resource="outboxrelays",status="200",verb="get"}' in metrics


def test_a_second_operator_waits_and_takes_over_at_once_when_the_first_stops(
    cluster: Cluster, operator: OperatorProcess, namespace: str, processes: Processes, tmp_path: Path
) -> None:
    second = OperatorProcess(processes, operator.kubeconfig, operator.user, tmp_path / "second.log", name="second")
    try:
        second.spawn()
        eventually(lambda: second.said("Serving health and metrics"), seconds=30)
        assert not second.said("Leading")
        operator.stop()
        eventually(lambda: second.said("Leading"), seconds=5)
        lease = cluster.must_get("Lease", NAMESPACE, "outbox-relay-operator")
        assert lease["spec"]["holderIdentity"] == "second"
        cluster.apply_relay(namespace)
        eventually(lambda: cluster.get("Deployment", namespace, "orders-outbox-0"))
    finally:
        second.stop()


def test_an_operator_that_is_frozen_past_its_deadline_ends_without_a_write(
    cluster: Cluster, operator: OperatorProcess, namespace: str, processes: Processes, tmp_path: Path, audit: Audit
) -> None:
    second = OperatorProcess(processes, operator.kubeconfig, operator.user, tmp_path / "second.log", name="second")
    frozen = operator.process
    assert frozen is not None
    try:
        second.spawn()
        eventually(lambda: second.said("Serving health and metrics"), seconds=30)
        frozen.freeze()
        eventually(lambda: second.said("Leading"), seconds=30)
        audit.mark()
        cluster.apply_relay(namespace)
        eventually(lambda: cluster.get("Deployment", namespace, "orders-outbox-0"))
        frozen.thaw()
        assert frozen.wait(10)
        holders = cluster.must_get("Lease", NAMESPACE, "outbox-relay-operator")["spec"]["holderIdentity"]
        assert holders == "second"
        conflicts = [write for write in audit.writes(namespace) if write.endswith((" 409", " 422"))]
        assert conflicts == []
    finally:
        second.stop()
        operator.stop()


def test_in_chosen_namespaces_a_role_in_each_is_enough(
    cluster: Cluster, operator: OperatorProcess, namespace: str, processes: Processes, tmp_path: Path, unique: str
) -> None:
    system = f"system-{unique}"
    cluster.create_namespace(system)
    manifests = render("--set", f"namespaces={{{namespace}}}", "--set", "crds.enabled=false", namespace=system)
    assert {manifest["kind"] for manifest in manifests} == {"ServiceAccount", "Role", "RoleBinding", "Deployment"}
    for manifest in manifests:
        if manifest["kind"] != "Deployment":
            cluster.install(manifest)
    user = cluster.plane.service_account(system, "outbox-relay-operator")
    operator.stop()
    arguments = [f"--namespace={namespace}", f"--lease-namespace={system}"]
    narrow = OperatorProcess(processes, user.kubeconfig, user.name, tmp_path / "narrow.log", arguments, name="narrow")
    try:
        narrow.start()
        cluster.apply_relay(namespace)
        cluster.bring_up(namespace)
        cluster.wait_for(namespace, "Ready", "True", "Ready")
        cluster.delete("Role", namespace, "orders-outbox-relay")
        eventually(lambda: cluster.get("Role", namespace, "orders-outbox-relay"), seconds=5)
    finally:
        narrow.stop()
    codes = {event["responseStatus"]["code"] for event in cluster.plane.audit_events(user=user.name)}
    assert 403 not in codes
