"""Objects that a relay has to create again, with the labels and the owner that its configuration carries."""

from outbox_api.relay_config import Runtime
from outbox_relay.kube.client import Object

FIELD_MANAGER = "outbox-relay"


def bare_object(api_version: str, kind: str, name: str, runtime: Runtime) -> Object:
    """Return an object of only metadata: what the operator would create."""
    metadata: Object = {"name": name, "namespace": runtime.namespace, "labels": dict(runtime.labels)}
    if runtime.owner_reference is not None:
        metadata["ownerReferences"] = [runtime.owner_reference.wire()]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
