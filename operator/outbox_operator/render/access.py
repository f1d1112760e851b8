"""Who the relay's pods are in the cluster and what they may do: ServiceAccount, Role, RoleBinding.

The relay may write its own Lease, checkpoint and report, and nothing else; it lists and watches nothing. `create` under
`resourceNames` works by server-side apply only, which is how the relay re-creates them.
"""

from typing import Any

from outbox_api import names
from outbox_api.spec import OutboxRelaySpec
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.render.metadata import labels, metadata

_VERBS = ["create", "get", "patch", "update"]


def service_account(relay: OutboxRelay, spec: OutboxRelaySpec) -> dict[str, Any]:
    """The account of the relay's pods; its token is mounted by the pods that need it only."""
    template = spec.relay.template
    user = template.service_account if template else None
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(
            relay, names.relay(relay.key.name), labels(relay, "access"), user.annotations if user else None
        ),
        "automountServiceAccountToken": False,
    }


def role(relay: OutboxRelay, spec: OutboxRelaySpec) -> dict[str, Any]:
    """What the pods may do."""
    name, shards = relay.key.name, range(spec.relay.shards)
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata(relay, names.relay(name), labels(relay, "access")),
        "rules": [
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": [names.lease(name, shard) for shard in shards],
                "verbs": _VERBS,
            },
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": [
                    *(names.checkpoint(name, shard) for shard in shards),
                    *(names.report(name, shard) for shard in shards),
                ],
                "verbs": _VERBS,
            },
        ],
    }


def role_binding(relay: OutboxRelay) -> dict[str, Any]:
    """Gives the pods' account the role."""
    name = names.relay(relay.key.name)
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata(relay, name, labels(relay, "access")),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": relay.key.namespace}],
    }
