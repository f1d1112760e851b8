"""All children of a relay, in the order in which they are created."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from outbox_api import names
from outbox_api.spec import OutboxRelaySpec
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.kube.resources import (
    CONFIG_MAP,
    DEPLOYMENT,
    LEASE,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Object,
    Resource,
)
from outbox_operator.render import access, state
from outbox_operator.render.config import config_map, configuration
from outbox_operator.render.deployment import deployment
from outbox_operator.render.metadata import stamped
from outbox_operator.settings import RelayDefaults


class Child(NamedTuple):
    """Names one child within its resource's namespace.

    Attributes:
        resource: its kind.
        name: its name.
    """

    resource: Resource
    name: str

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.name}"


#: Each child as it is; None when it is not there.
Observed = Mapping[Child, Object | None]


def expected(name: str, shards: int) -> list[Child]:
    """The children a relay has.

    What pods need comes before the Deployment.

    Args:
        name: the resource's name.
        shards: how many shards it has.
    """
    found = [
        Child(SERVICE_ACCOUNT, names.relay(name)),
        Child(ROLE, names.relay(name)),
        Child(ROLE_BINDING, names.relay(name)),
        Child(CONFIG_MAP, names.config(name)),
    ]
    for shard in range(shards):
        found += [
            Child(LEASE, names.lease(name, shard)),
            Child(CONFIG_MAP, names.checkpoint(name, shard)),
            Child(CONFIG_MAP, names.report(name, shard)),
            Child(DEPLOYMENT, names.deployment(name, shard)),
        ]
    return found


def render(
    relay: OutboxRelay, spec: OutboxRelaySpec, observed: Observed, defaults: RelayDefaults, *, stopped: bool
) -> dict[Child, dict[str, Any]]:
    """The manifests of all children.

    Args:
        relay: the resource.
        spec: what it asks for.
        observed: the children as they are; a checkpoint's rendering depends on whether it is there.
        defaults: what the operator's settings say of relays.
        stopped: whether no pod is to run.
    """
    file = configuration(relay, spec)
    manifests = [
        access.service_account(relay, spec),
        access.role(relay, spec),
        access.role_binding(relay),
        config_map(relay, file),
    ]
    for shard in range(spec.relay.shards):
        checkpoint = Child(CONFIG_MAP, names.checkpoint(relay.key.name, shard))
        manifests += [
            state.lease(relay, shard),
            state.checkpoint(relay, shard, observed.get(checkpoint)),
            state.report(relay, shard),
            deployment(relay, spec, file, defaults, shard=shard, stopped=stopped),
        ]
    children = expected(relay.key.name, spec.relay.shards)
    return {child: stamped(manifest) for child, manifest in zip(children, manifests, strict=True)}
