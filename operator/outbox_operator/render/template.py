"""What of a relay's pods the user decides: the allow-list `spec.relay.template`, resources and image."""

from collections.abc import Mapping
from typing import Any

from outbox_api.spec import OutboxRelaySpec
from outbox_operator.settings import RelayDefaults

#: Seconds a pod gets to drain: in-flight batches, the position, the Lease.
GRACE_PERIOD = 30
_REQUESTS = {"cpu": "100m", "memory": "128Mi"}
_LIMITS = {"memory": "384Mi"}


def pod_metadata(spec: OutboxRelaySpec, labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
    """Labels and annotations of the pods: the user's, under ours."""
    template = spec.relay.template
    return {
        "labels": {**((template and template.labels) or {}), **labels},
        "annotations": {**((template and template.annotations) or {}), **annotations},
    }


def pod_fields(spec: OutboxRelaySpec, defaults: RelayDefaults) -> dict[str, Any]:
    """The user's fields of the pod's spec."""
    fields: dict[str, Any] = {"terminationGracePeriodSeconds": GRACE_PERIOD}
    template = spec.relay.template
    if template is not None:
        wire = template.wire()
        for name in (
            "nodeSelector",
            "tolerations",
            "affinity",
            "topologySpreadConstraints",
            "priorityClassName",
            "runtimeClassName",
            "terminationGracePeriodSeconds",
        ):
            if name in wire:
                fields[name] = wire[name]
    own = [reference.name for reference in (template and template.image_pull_secrets) or ()]
    secrets = list(dict.fromkeys([*own, *defaults.pull_secrets]))
    if secrets:
        fields["imagePullSecrets"] = [{"name": name} for name in secrets]
    return fields


def container_fields(spec: OutboxRelaySpec, defaults: RelayDefaults) -> dict[str, Any]:
    """The user's fields of the container."""
    fields: dict[str, Any] = {"image": spec.relay.image or defaults.image}
    if defaults.pull_policy is not None:
        fields["imagePullPolicy"] = defaults.pull_policy
    template, resources = spec.relay.template, spec.relay.resources
    # The pod's name last: it is who the leader is, and no variable of the user's may replace it.
    fields["env"] = [
        *(
            {"name": env.name, "value": env.value}
            for env in (template and template.env) or ()
            if env.name != "POD_NAME"
        ),
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
    ]
    fields["resources"] = {
        "requests": dict((resources and resources.requests) or _REQUESTS),
        "limits": dict((resources and resources.limits) or _LIMITS),
    }
    return fields
