"""The metadata of every child: its name, labels, owner, and the hash of what was rendered."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from outbox_api import names
from outbox_operator.custom_resource import OutboxRelay

#: The hash of the whole rendering, on every child. A field that an earlier operator rendered and this one does not is
#: no visible difference in a live object; another hash is, and makes the operator apply, which removes the field.
ANNOTATION_RENDERED: Final = f"{names.GROUP}/rendered"


def labels(relay: OutboxRelay, component: str, *, shard: int | None = None, watched: bool = True) -> dict[str, str]:
    """The labels of a child: ours only, none of the resource's, which a GitOps tool would take for its own.

    Args:
        relay: the owner.
        component: what the child is for.
        shard: of which shard; None for what the shards share.
        watched: whether the operator watches it. Leases and checkpoints change too often for that.
    """
    found = {
        names.LABEL_NAME: names.APP_NAME,
        names.LABEL_INSTANCE: relay.key.name,
        names.LABEL_COMPONENT: component,
        names.LABEL_MANAGED_BY: names.MANAGER,
        names.LABEL_RELAY: relay.key.name,
    }
    if shard is not None:
        found[names.LABEL_SHARD] = str(shard)
    if watched:
        found[names.LABEL_WATCHED] = "true"
    return found


def selector(relay: OutboxRelay, shard: int) -> dict[str, str]:
    """What selects a shard's pods. It is immutable in a Deployment, so it holds what never changes."""
    return {names.LABEL_RELAY: relay.key.name, names.LABEL_SHARD: str(shard)}


def owner(relay: OutboxRelay) -> dict[str, Any]:
    """The owner reference by which the garbage collector deletes a child with its resource."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": relay.key.name,
        "uid": relay.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def metadata(
    relay: OutboxRelay, name: str, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The metadata of a child that the resource owns."""
    found: dict[str, Any] = {
        "name": name,
        "namespace": relay.key.namespace,
        "labels": dict(labels),
        "ownerReferences": [owner(relay)],
    }
    if annotations:
        found["annotations"] = dict(annotations)
    return found


def digest(value: Any) -> str:
    """A short hash of a JSON value that does not depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def stamped(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object with the hash of its rendering in its annotations."""
    meta = obj["metadata"]
    annotations = {**meta.get("annotations", {}), ANNOTATION_RENDERED: digest(obj)}
    return {**obj, "metadata": {**meta, "annotations": annotations}}
