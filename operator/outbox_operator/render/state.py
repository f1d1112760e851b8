"""What a shard's leader writes: its Lease, checkpoint and report.

The operator creates them and afterwards applies only their metadata: every other field is the relay's.
"""

from typing import Any

from outbox_api import names
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.kube.resources import Object
from outbox_operator.render.metadata import labels, metadata


def lease(relay: OutboxRelay, shard: int) -> dict[str, Any]:
    """The Lease by which a shard's pods agree on a leader."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata(
            relay, names.lease(relay.key.name, shard), labels(relay, "state", shard=shard, watched=False)
        ),
    }


def checkpoint(relay: OutboxRelay, shard: int, live: Object | None) -> dict[str, Any]:
    """The ConfigMap that holds a shard's position.

    A checkpoint that is gone although a position is remembered is created with that position in an annotation: a relay
    that found it simply empty would take it for a first start and send everything again, or nothing.

    Args:
        relay: the owner.
        shard: the shard.
        live: the checkpoint as it is; None when it is not there.
    """
    lost = _lost_position(relay, shard, live)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(
            relay,
            names.checkpoint(relay.key.name, shard),
            labels(relay, "state", shard=shard, watched=False),
            {names.ANNOTATION_POSITION_LOST: lost} if lost else None,
        ),
    }


def report(relay: OutboxRelay, shard: int) -> dict[str, Any]:
    """The ConfigMap in which a shard's leader tells its state."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(relay, names.report(relay.key.name, shard), labels(relay, "report", shard=shard)),
    }


def _lost_position(relay: OutboxRelay, shard: int, live: Object | None) -> str | None:
    if live is None:
        return relay.remembered_position(shard)
    if (live.get("data") or {}).get(names.CHECKPOINT_KEY):
        return None
    stated = (live["metadata"].get("annotations") or {}).get(names.ANNOTATION_POSITION_LOST)
    return str(stated) if stated else None
