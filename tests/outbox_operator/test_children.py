"""Children on a real API server: made, healed, left alone, and gone with their owner."""

from typing import Any

import pytest

from .cluster import Cluster, children, eventually
from .conftest import RESYNC, Audit, OperatorProcess


def test_a_relay_gets_all_its_children_and_no_others(
    cluster: Cluster, operator: OperatorProcess, namespace: str
) -> None:
    created = cluster.apply_relay(namespace, labels={"team": "shop"}, annotations={"note": "mine"})
    eventually(lambda: cluster.get("Deployment", namespace, "orders-outbox-0"))
    found: set[tuple[str, str]] = set()
    for kind in {kind for kind, _ in children()}:
        for obj in cluster.all(kind, namespace):
            if not obj["metadata"]["name"].startswith("orders"):
                continue  # the namespace's own
            found.add((kind, obj["metadata"]["name"]))
            assert [
                (reference["uid"], reference["controller"], reference["blockOwnerDeletion"])
                for reference in obj["metadata"]["ownerReferences"]
            ] == [(created["metadata"]["uid"], True, True)]
            assert "team" not in obj["metadata"]["labels"]
            assert "note" not in obj["metadata"]["annotations"]
    assert found == children()


def _settle(cluster: Cluster, namespace: str, audit: Audit) -> None:
    """Wait until the operator has nothing left to write for a relay that streams."""
    cluster.wait_for(namespace, "Ready", "True", "Ready")
    # A write is followed by an event, a look and, at most, another write; then there is only the resync.
    eventually(lambda: _is_quiet(audit, namespace), what="no more writes")


def _is_quiet(audit: Audit, namespace: str) -> bool:
    audit.mark()
    seen = {"reads": 0}

    def looked_again() -> bool:
        seen["reads"] = sum(f"/namespaces/{namespace}/outboxrelays/" in e["requestURI"] for e in audit.requests())
        return seen["reads"] >= 2

    eventually(looked_again, seconds=4 * RESYNC, what="two reconciliations")
    return audit.writes(namespace) == []


@pytest.fixture
def streaming(cluster: Cluster, operator: OperatorProcess, namespace: str) -> str:
    """The namespace of a relay that streams."""
    cluster.apply_relay(namespace)
    cluster.bring_up(namespace, position="1700000000.1", lagMilliseconds=12, pending=0)
    cluster.wait_for(namespace, "Ready", "True", "Ready")
    return namespace


@pytest.fixture
def settled(cluster: Cluster, streaming: str, audit: Audit) -> str:
    """The namespace of a relay about which there is nothing left to write."""
    _settle(cluster, streaming, audit)
    return streaming


def test_nothing_is_written_while_nothing_changes(cluster: Cluster, settled: str, audit: Audit) -> None:
    before = {child: _version(cluster, settled, child) for child in children()}
    audit.mark()

    def looks() -> int:
        return sum(f"/namespaces/{settled}/outboxrelays/" in event["requestURI"] for event in audit.requests())

    eventually(lambda: looks() >= 5, seconds=8 * RESYNC, what="five reconciliations")
    assert audit.writes() == []
    assert {child: _version(cluster, settled, child) for child in children()} == before


def test_a_restarted_operator_writes_nothing_when_nothing_changed(
    cluster: Cluster, operator: OperatorProcess, settled: str, audit: Audit
) -> None:
    operator.kill()
    audit.mark()
    operator.start()
    eventually(
        lambda: sum(f"/namespaces/{settled}/outboxrelays/" in e["requestURI"] for e in audit.requests()) >= 2,
        what="two reconciliations",
    )
    assert audit.writes() == []


def test_what_changed_while_the_operator_was_down_is_made_good_when_it_starts(
    cluster: Cluster, operator: OperatorProcess, streaming: str
) -> None:
    operator.kill()
    cluster.delete("Role", streaming, "orders-outbox-relay")
    cluster.patch("Deployment", streaming, "orders-outbox-0", {"spec": {"replicas": 3}})
    cluster.patch("OutboxRelay", streaming, "orders", {"spec": {"route": {"key": "{aggregateType}"}}})
    operator.start()
    eventually(lambda: cluster.get("Role", streaming, "orders-outbox-relay"))
    eventually(lambda: _spec(cluster, streaming)["replicas"] == 1)
    eventually(
        lambda: (
            "{aggregateType}" in cluster.must_get("ConfigMap", streaming, "orders-outbox-config")["data"]["relay.yaml"]
        )
    )


@pytest.mark.parametrize(("kind", "name"), sorted(children()))
def test_a_deleted_child_is_back_within_five_seconds(cluster: Cluster, streaming: str, kind: str, name: str) -> None:
    before = cluster.must_get(kind, streaming, name)
    cluster.delete(kind, streaming, name)

    def back() -> bool:
        now = cluster.get(kind, streaming, name)
        return now is not None and now["metadata"]["uid"] != before["metadata"]["uid"]

    eventually(back, seconds=5)


EDITS: list[tuple[str, str, dict[str, Any]]] = [
    ("ConfigMap", "orders-outbox-config", {"data": {"relay.yaml": "spec: {}"}}),
    ("Role", "orders-outbox-relay", {"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}]}),
    ("RoleBinding", "orders-outbox-relay", {"subjects": []}),
    ("ServiceAccount", "orders-outbox-relay", {"automountServiceAccountToken": True}),
    ("Deployment", "orders-outbox-0", {"spec": {"replicas": 5}}),
    ("Deployment", "orders-outbox-0", {"spec": {"template": {"spec": {"securityContext": {"runAsNonRoot": False}}}}}),
    ("Deployment", "orders-outbox-0", {"metadata": {"labels": {"outboxrelay.io/shard": "7"}}}),
    ("ConfigMap", "orders-outbox-0-checkpoint", {"metadata": {"labels": None}}),
    ("Lease", "orders-outbox-0-lease", {"metadata": {"annotations": None}}),
]


@pytest.mark.parametrize(("kind", "name", "edit"), EDITS)
def test_an_edited_child_is_restored_within_five_seconds(
    cluster: Cluster, streaming: str, kind: str, name: str, edit: dict[str, Any]
) -> None:
    before = cluster.must_get(kind, streaming, name)
    edited = cluster.patch(kind, streaming, name, edit)
    assert _content(edited) != _content(before)
    eventually(lambda: _content(cluster.must_get(kind, streaming, name)) == _content(before), seconds=5)


def test_the_fields_that_the_relay_writes_are_never_taken_back(cluster: Cluster, streaming: str) -> None:
    cluster.patch("ConfigMap", streaming, "orders-outbox-0-checkpoint", {"data": {"checkpoint.json": '{"epoch":3}'}})
    cluster.patch("Lease", streaming, "orders-outbox-0-lease", {"spec": {"holderIdentity": "someone"}})
    # Something to heal on both, so that the operator applies them.
    for kind, name in (("ConfigMap", "orders-outbox-0-checkpoint"), ("Lease", "orders-outbox-0-lease")):
        cluster.patch(kind, streaming, name, {"metadata": {"labels": {"outboxrelay.io/relay": "other"}}})
        eventually(
            lambda kind=kind, name=name: (
                cluster.must_get(kind, streaming, name)["metadata"]["labels"]["outboxrelay.io/relay"] == "orders"
            )
        )
    assert cluster.must_get("ConfigMap", streaming, "orders-outbox-0-checkpoint")["data"] == {
        "checkpoint.json": '{"epoch":3}'
    }
    assert cluster.must_get("Lease", streaming, "orders-outbox-0-lease")["spec"]["holderIdentity"] == "someone"


def test_a_checkpoint_that_is_gone_comes_back_with_the_position_that_is_lost(cluster: Cluster, streaming: str) -> None:
    eventually(
        lambda: (
            cluster.must_get("OutboxRelay", streaming, "orders")["status"]["shards"][0].get("position")
            == "1700000000.1"
        )
    )
    cluster.delete("ConfigMap", streaming, "orders-outbox-0-checkpoint")
    found = eventually(lambda: cluster.get("ConfigMap", streaming, "orders-outbox-0-checkpoint"))
    assert found["metadata"]["annotations"]["outboxrelay.io/position-lost"] == "1700000000.1"


def test_an_object_of_somebody_else_is_left_untouched_and_named(
    cluster: Cluster, operator: OperatorProcess, namespace: str
) -> None:
    theirs = cluster.create(
        namespace,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "orders-outbox-config"},
            "data": {"theirs": "yes"},
        },
    )
    cluster.apply_relay(namespace)
    stalled = cluster.wait_for(namespace, "Stalled", "True", "NameConflict")
    assert "ConfigMap orders-outbox-config" in stalled["message"]
    assert cluster.condition(namespace, "Ready")["reason"] == "NameConflict"
    assert cluster.must_get("ConfigMap", namespace, "orders-outbox-config") == theirs
    assert cluster.get("Deployment", namespace, "orders-outbox-0") is None

    cluster.delete("ConfigMap", namespace, "orders-outbox-config")
    eventually(lambda: cluster.get("Deployment", namespace, "orders-outbox-0"), seconds=30)
    eventually(lambda: cluster.condition(namespace, "Stalled")["status"] == "False")


def test_a_change_of_the_spec_rolls_out(cluster: Cluster, streaming: str) -> None:
    before = _spec(cluster, streaming)["template"]["metadata"]["annotations"]
    cluster.patch("OutboxRelay", streaming, "orders", {"spec": {"route": {"topic": "{eventType}"}}})
    eventually(lambda: _spec(cluster, streaming)["template"]["metadata"]["annotations"] != before)
    cluster.wait_for(streaming, "Reconciling", "True", "RollingOut")
    assert cluster.condition(streaming, "Ready")["status"] == "False"
    cluster.bring_up(streaming)
    ready = cluster.wait_for(streaming, "Ready", "True", "Ready")
    assert ready["observedGeneration"] == cluster.must_get("OutboxRelay", streaming, "orders")["metadata"]["generation"]


def test_a_field_that_is_taken_out_of_the_spec_is_taken_out_of_the_pods(cluster: Cluster, streaming: str) -> None:
    before = _content(cluster.must_get("Deployment", streaming, "orders-outbox-0"))
    template = {"nodeSelector": {"disk": "ssd"}, "env": [{"name": "A", "value": "1"}], "labels": {"team": "shop"}}
    cluster.patch("OutboxRelay", streaming, "orders", {"spec": {"relay": {"template": template}}})
    eventually(lambda: _spec(cluster, streaming)["template"]["spec"].get("nodeSelector") == {"disk": "ssd"})
    cluster.patch("OutboxRelay", streaming, "orders", {"spec": {"relay": {"template": None}}})
    eventually(lambda: "nodeSelector" not in _spec(cluster, streaming)["template"]["spec"])
    assert _content(cluster.must_get("Deployment", streaming, "orders-outbox-0")) == before


def test_suspending_ends_the_pods_and_keeps_the_position(cluster: Cluster, streaming: str) -> None:
    cluster.patch("OutboxRelay", streaming, "orders", {"spec": {"suspend": True}})
    eventually(lambda: _spec(cluster, streaming)["replicas"] == 0)
    cluster.wait_for(streaming, "Suspended", "True", "Suspended")
    cluster.wait_for(streaming, "Ready", "True", "Suspended")
    assert cluster.all("Pod", streaming) == []
    status = cluster.must_get("OutboxRelay", streaming, "orders")["status"]
    assert status["shards"][0]["position"] == "1700000000.1"
    assert "lag" not in status
    assert "leader" not in status

    cluster.patch("OutboxRelay", streaming, "orders", {"spec": {"suspend": False}})
    eventually(lambda: _spec(cluster, streaming)["replicas"] == 1)


def test_a_deleted_relay_takes_its_children_along_and_nothing_comes_back(
    cluster: Cluster, operator: OperatorProcess, settled: str, audit: Audit
) -> None:
    audit.mark()
    cluster.delete("OutboxRelay", settled, "orders")

    def left() -> list[str]:
        return [
            obj["metadata"]["name"]
            for kind in {"Pod", *(kind for kind, _ in children())}
            for obj in cluster.all(kind, settled)
            if obj["metadata"]["name"].startswith("orders")
        ]

    eventually(lambda: not left(), seconds=30, what="no children")
    # A look that began before the deletion may still want to tell something, to nobody.
    assert [write for write in audit.writes(settled) if not write.endswith(" 404")] == []


def test_nothing_is_applied_once_deletion_has_begun(
    cluster: Cluster, operator: OperatorProcess, settled: str, audit: Audit
) -> None:
    cluster.patch("OutboxRelay", settled, "orders", {"metadata": {"finalizers": ["example.com/hold"]}})
    _settle(cluster, settled, audit)
    cluster.delete("OutboxRelay", settled, "orders")
    audit.mark()
    cluster.delete("ConfigMap", settled, "orders-outbox-config")
    eventually(
        lambda: sum("/outboxrelays/orders" in event["requestURI"] for event in audit.requests()) >= 1,
        what="a look at the relay",
    )
    cluster.patch("OutboxRelay", settled, "orders", {"metadata": {"finalizers": None}})
    eventually(lambda: cluster.get("OutboxRelay", settled, "orders") is None)
    assert audit.writes(settled) == []


def test_a_relay_of_the_same_name_waits_for_what_its_predecessor_left(
    cluster: Cluster, streaming: str, audit: Audit
) -> None:
    cluster.patch("ConfigMap", streaming, "orders-outbox-config", {"metadata": {"finalizers": ["example.com/hold"]}})
    cluster.delete("OutboxRelay", streaming, "orders")
    cluster.apply_relay(streaming)
    waiting = cluster.wait_for(streaming, "Reconciling", "True", "WaitingForDeletion")
    assert "orders-outbox-config" in waiting["message"]
    cluster.patch("ConfigMap", streaming, "orders-outbox-config", {"metadata": {"finalizers": None}})
    cluster.bring_up(streaming)
    cluster.wait_for(streaming, "Ready", "True", "Ready")


def test_a_namespace_goes_away_while_the_operator_is_down(
    cluster: Cluster, operator: OperatorProcess, streaming: str
) -> None:
    operator.stop()
    cluster.request("DELETE", f"/api/v1/namespaces/{streaming}")

    def gone() -> bool:
        namespaces = cluster.request("GET", "/api/v1/namespaces")["items"]
        return streaming not in {namespace["metadata"]["name"] for namespace in namespaces}

    # Its pods have no kubelet that would end them.
    for pod in cluster.all("Pod", streaming):
        cluster.request(
            "DELETE",
            f"/api/v1/namespaces/{streaming}/pods/{pod['metadata']['name']}",
            {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0},
        )
    eventually(gone, seconds=60)


def _spec(cluster: Cluster, namespace: str) -> Any:
    return cluster.must_get("Deployment", namespace, "orders-outbox-0")["spec"]


def _version(cluster: Cluster, namespace: str, child: tuple[str, str]) -> str:
    return str(cluster.must_get(child[0], namespace, child[1])["metadata"]["resourceVersion"])


def _content(obj: dict[str, Any]) -> dict[str, Any]:
    """What an object says, without what the server counts."""
    metadata = {key: obj["metadata"].get(key) for key in ("name", "labels", "annotations", "ownerReferences")}
    if obj["kind"] == "Deployment":
        metadata["annotations"] = {
            key: value for key, value in metadata["annotations"].items() if not key.startswith("deployment.kubernetes")
        }
    return {"metadata": metadata, **{k: v for k, v in obj.items() if k not in {"metadata", "status"}}}
