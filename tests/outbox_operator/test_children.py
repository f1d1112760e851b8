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
