"""What users see: status and Events, on a real API server with its real controllers."""

import subprocess
from typing import Any

import pytest

from outbox_dev.kubernetes import tools

from .cluster import Cluster, eventually, waiting_status
from .conftest import Audit, OperatorProcess
from .kstatus import violations


def kubectl(cluster: Cluster, *arguments: str) -> str:
    argv = [str(tools.kubectl()), f"--kubeconfig={cluster.plane.kubeconfig()}", *arguments]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def status(cluster: Cluster, namespace: str, name: str = "orders") -> dict[str, Any]:
    found: dict[str, Any] = cluster.must_get("OutboxRelay", namespace, name).get("status") or {}
    if found:
        assert violations(found) == []
    return found


@pytest.fixture
def streaming(cluster: Cluster, operator: OperatorProcess, namespace: str) -> str:
    """The namespace of a relay that streams."""
    cluster.apply_relay(namespace)
    cluster.bring_up(namespace, position="1700000000.1", lagMilliseconds=1200, pending=7, deadLettered=0)
    cluster.wait_for(namespace, "Ready", "True", "Ready")
    return namespace


def test_a_new_relay_is_unknown_and_then_ready_and_kubectl_waits_for_it(
    cluster: Cluster, operator: OperatorProcess, namespace: str
) -> None:
    cluster.apply_relay(namespace)
    eventually(lambda: status(cluster, namespace))
    assert cluster.condition(namespace, "Ready")["status"] != "True"
    assert cluster.condition(namespace, "Reconciling")["status"] == "True"
    assert "lag" not in status(cluster, namespace)
    pod = cluster.bring_up(namespace, lagMilliseconds=1200, pending=7, deadLettered=0)
    kubectl(cluster, "-n", namespace, "wait", "--for=condition=Ready", "outboxrelay/orders", "--timeout=20s")
    found = status(cluster, namespace)
    assert (found["leader"], found["lag"], found["source"]) == (pod, "1.2s", "shop.outbox")
    header, row = (line.split() for line in kubectl(cluster, "-n", namespace, "get", "obr").splitlines())
    assert dict(zip(header[1:7], row[1:7], strict=True)) == {
        "READY": "True",
        "REASON": "Ready",
        "SOURCE": "shop.outbox",
        "LEADER": pod,
        "LAG": "1.2s",
        "PENDING": "7",
    }


@pytest.mark.parametrize(
    ("report", "ready"),
    [
        (
            {"state": "Retrying", "reason": "SecretMissing", "message": "Secret orders-mongo is missing"},
            "SecretMissing",
        ),
        ({"state": "Retrying", "reason": "SinkUnreachable", "message": "no broker"}, "SinkUnreachable"),
        ({"state": "Stalled", "reason": "HistoryLost", "message": "position is gone"}, "HistoryLost"),
    ],
)
def test_what_the_relay_reports_is_told(cluster: Cluster, streaming: str, report: dict[str, Any], ready: str) -> None:
    (pod,) = cluster.run_pods(streaming)
    cluster.report(streaming, leader=pod, **report)
    found = cluster.wait_for(streaming, "Ready", "False", ready)
    assert found["message"] == report["message"]
    assert cluster.condition(streaming, "Stalled")["status"] == str(report["state"] == "Stalled")
    status(cluster, streaming)


def test_a_pod_that_cannot_pull_its_image_is_told(cluster: Cluster, operator: OperatorProcess, namespace: str) -> None:
    cluster.apply_relay(namespace)
    cluster.run_pods(namespace, status=waiting_status("ImagePullBackOff", "relay:test: not found"))
    found = cluster.wait_for(namespace, "Ready", "False", "ImagePullFailed")
    assert "relay:test" in found["message"]


def test_a_killed_leader_is_told_and_so_is_the_next_one(cluster: Cluster, streaming: str) -> None:
    (pod,) = cluster.run_pods(streaming)
    cluster.request(
        "DELETE",
        f"/api/v1/namespaces/{streaming}/pods/{pod}",
        {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0},
    )
    eventually(lambda: cluster.condition(streaming, "Ready")["status"] == "False")
    assert "leader" not in status(cluster, streaming)
    successor = cluster.bring_up(streaming)
    cluster.wait_for(streaming, "Ready", "True", "Ready")
    assert status(cluster, streaming)["leader"] == successor


def test_a_quota_that_refuses_the_pods_is_told_with_the_servers_words(
    cluster: Cluster, operator: OperatorProcess, namespace: str
) -> None:
    cluster.create(
        namespace,
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "small"},
            "spec": {"hard": {"requests.memory": "16Mi"}},
        },
    )
    # The quota is enforced once the controller has counted.
    eventually(lambda: cluster.must_get("ResourceQuota", namespace, "small").get("status", {}).get("used"), seconds=60)
    cluster.apply_relay(namespace)
    found = cluster.wait_for(namespace, "Ready", "False", "QuotaExceeded", seconds=30)
    assert "exceeded quota: small" in found["message"]


def test_a_template_that_the_server_refuses_is_told(
    cluster: Cluster, operator: OperatorProcess, namespace: str
) -> None:
    cluster.apply_relay(
        namespace, relay={"template": {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "zone"}]}}
    )
    found = cluster.wait_for(namespace, "Stalled", "True", "InvalidTemplate")
    assert "maxSkew" in found["message"]


def test_an_unknown_field_in_the_users_affinity_is_told(
    cluster: Cluster, operator: OperatorProcess, namespace: str
) -> None:
    cluster.apply_relay(namespace, relay={"template": {"affinity": {"nodeAfinity": {}}}})
    found = eventually(
        lambda: (
            cluster.condition(namespace, "Stalled")
            if cluster.condition(namespace, "Stalled").get("status") == "True"
            else None
        )
    )
    assert "nodeAfinity" in found["message"]


def test_what_is_not_implemented_is_refused_and_what_ran_goes_on(cluster: Cluster, streaming: str) -> None:
    before = cluster.must_get("Deployment", streaming, "orders-outbox-0")["metadata"]["resourceVersion"]
    cluster.patch("OutboxRelay", streaming, "orders", {"spec": {"sink": {"tls": {}}}})
    found = cluster.wait_for(streaming, "Stalled", "True", "NotImplemented")
    assert "spec.sink.tls" in found["message"]
    assert cluster.must_get("Deployment", streaming, "orders-outbox-0")["metadata"]["resourceVersion"] == before
    # Suspending works all the same.
    cluster.patch("OutboxRelay", streaming, "orders", {"spec": {"suspend": True}})
    eventually(lambda: cluster.must_get("Deployment", streaming, "orders-outbox-0")["spec"]["replicas"] == 0)
    cluster.patch("OutboxRelay", streaming, "orders", {"spec": {"suspend": False, "sink": {"tls": None}}})
    eventually(lambda: cluster.condition(streaming, "Stalled")["status"] == "False")
    eventually(lambda: cluster.must_get("Deployment", streaming, "orders-outbox-0")["spec"]["replicas"] == 1)


def test_of_two_relays_that_mark_one_outbox_the_younger_is_stopped_until_the_older_is_gone(
    cluster: Cluster, streaming: str
) -> None:
    source = cluster.must_get("OutboxRelay", streaming, "orders")["spec"]["source"]
    cluster.apply_relay(streaming, "younger", source=source)
    found = cluster.wait_for(streaming, "Stalled", "True", "SourceConflict", "younger")
    assert "OutboxRelay orders" in found["message"]
    eventually(lambda: cluster.must_get("Deployment", streaming, "younger-outbox-0")["spec"]["replicas"] == 0)
    assert cluster.condition(streaming, "Ready")["status"] == "True"
    cluster.delete("OutboxRelay", streaming, "orders")
    eventually(lambda: cluster.must_get("Deployment", streaming, "younger-outbox-0")["spec"]["replicas"] == 1)


def test_paused_keeps_hands_off_and_says_what_is_pending(cluster: Cluster, streaming: str, audit: Audit) -> None:
    cluster.patch("OutboxRelay", streaming, "orders", {"metadata": {"annotations": {"outboxrelay.io/paused": "true"}}})
    cluster.wait_for(streaming, "Reconciling", "False", "Paused")
    cluster.patch("Deployment", streaming, "orders-outbox-0", {"spec": {"replicas": 3}})
    eventually(lambda: "Deployment orders-outbox-0" in cluster.condition(streaming, "Reconciling")["message"])
    assert cluster.must_get("Deployment", streaming, "orders-outbox-0")["spec"]["replicas"] == 3
    cluster.patch("OutboxRelay", streaming, "orders", {"metadata": {"annotations": {"outboxrelay.io/paused": None}}})
    eventually(lambda: cluster.must_get("Deployment", streaming, "orders-outbox-0")["spec"]["replicas"] == 1)


def test_a_reconcile_asked_for_is_acknowledged(cluster: Cluster, streaming: str) -> None:
    patch = {"metadata": {"annotations": {"outboxrelay.io/reconcile-at": "2026-01-01T00:00:00Z"}}}
    cluster.patch("OutboxRelay", streaming, "orders", patch)
    eventually(lambda: status(cluster, streaming).get("lastHandledReconcileAt") == "2026-01-01T00:00:00Z")


def test_events_tell_the_story_with_one_object_a_reason_and_a_growing_count(cluster: Cluster, streaming: str) -> None:
    def events() -> dict[str, dict[str, Any]]:
        found = [event for event in cluster.all("Event", streaming) if event["involvedObject"]["kind"] == "OutboxRelay"]
        assert len({event["reason"] for event in found}) == len(found)
        return {event["reason"]: event for event in found}

    eventually(lambda: {"ChildCreated", "LeaderElected", "Ready"} <= events().keys())
    assert events()["ChildCreated"]["type"] == "Normal"
    cluster.delete("Role", streaming, "orders-outbox-relay")
    restored = eventually(lambda: events().get("ChildRestored"))
    assert "Role orders-outbox-relay" in restored["message"]

    # Each further one within the interval is counted, and the count is told with the next write.
    def again() -> bool:
        before = cluster.must_get("Role", streaming, "orders-outbox-relay")["metadata"]["uid"]
        cluster.delete("Role", streaming, "orders-outbox-relay")

        def back() -> bool:
            now = cluster.get("Role", streaming, "orders-outbox-relay")
            return now is not None and now["metadata"]["uid"] != before

        eventually(back)
        return int(events()["ChildRestored"]["count"]) > 2

    eventually(again, seconds=30, what="a count")
    assert "ChildRestored" in kubectl(cluster, "-n", streaming, "describe", "outboxrelay", "orders")
