"""The pods that relay: how many, how they elect, and what of their template a user may set."""

from typing import Annotated

from pydantic import Field, StringConstraints

from outbox_api.base import (
    Duration,
    LabelValue,
    LongText,
    Model,
    ObjectName,
    OpaqueObject,
    Quantity,
    ShortText,
    closed_model,
    rules,
    section,
)

EnvName = Annotated[str, StringConstraints(pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$", max_length=253)]


class Lease(Model):
    """The Lease by which the pods of a shard agree on one leader."""

    model_config = closed_model(
        **rules(
            (
                "self.renew + self.renew <= self.duration",
                "spec.relay.lease.renew must be at most half of spec.relay.lease.duration",
            ),
            (
                "self.duration >= duration('2s') && self.duration <= duration('1h') && self.renew >= duration('500ms')",
                "spec.relay.lease.duration must be from 2s to 1h, and spec.relay.lease.renew at least 500ms",
            ),
        )
    )

    duration: Duration = Field(default="15s", description="Time after its last renewal at which a Lease may be taken.")
    renew: Duration = Field(default="5s", description="Time between two renewals.")


class Resources(Model):
    """Resources of the relay's container. Unset: requests 100m CPU and 128Mi memory, limit 384Mi memory."""

    requests: dict[str, Quantity] | None = Field(default=None, max_length=16, description="Requested resources.")
    limits: dict[str, Quantity] | None = Field(default=None, max_length=16, description="Limits.")


class NetworkPolicy(Model):
    """A NetworkPolicy for the relay's pods."""

    enabled: bool = Field(default=False, description="Create a NetworkPolicy that lets in metrics scrapes only.")
    egress: list[OpaqueObject] | None = Field(
        default=None,
        max_length=64,
        description="Egress rules, taken over word for word. Unset: egress is not restricted.",
    )


class EnvVar(Model):
    """One environment variable of the relay's container."""

    name: EnvName = Field(description="Name of the variable.")
    value: Annotated[str, StringConstraints(max_length=4096)] = Field(description="Value; not for secrets.")


class LocalObjectReference(Model):
    """An object in the same namespace."""

    name: ObjectName = Field(description="Name of the object.")


class Toleration(Model):
    """A toleration of the pod, as in the Kubernetes API."""

    key: ShortText | None = Field(default=None, description="Taint key.")
    operator: ShortText | None = Field(default=None, description="Exists or Equal.")
    value: LabelValue | None = Field(default=None, description="Taint value.")
    effect: ShortText | None = Field(default=None, description="NoSchedule, PreferNoSchedule or NoExecute.")
    toleration_seconds: int | None = Field(default=None, description="Seconds to stay, with effect NoExecute.")


class ServiceAccountTemplate(Model):
    """What may be set on the relay's ServiceAccount."""

    annotations: dict[str, LongText] | None = Field(
        default=None, max_length=64, description="Annotations, for example of a cloud's workload identity."
    )


class PodTemplate(Model):
    """What of the relay's pods a user may set. Security settings are not among it."""

    model_config = closed_model(
        **rules(
            (
                "!has(self.labels) || self.labels.all(key, !key.startsWith('outboxrelay.io/') && "
                "!key.startsWith('app.kubernetes.io/'))",
                "spec.relay.template.labels must not use the prefixes outboxrelay.io/ and app.kubernetes.io/",
            ),
            (
                "!has(self.annotations) || self.annotations.all(key, !key.startsWith('outboxrelay.io/'))",
                "spec.relay.template.annotations must not use the prefix outboxrelay.io/",
            ),
        )
    )

    labels: dict[str, LabelValue] | None = Field(default=None, max_length=64, description="Labels of the pods.")
    annotations: dict[str, LongText] | None = Field(default=None, max_length=64, description="Annotations of the pods.")
    node_selector: dict[str, LabelValue] | None = Field(
        default=None, max_length=64, description="Node labels that a pod asks for."
    )
    tolerations: list[Toleration] | None = Field(default=None, max_length=64, description="Tolerations of the pods.")
    affinity: OpaqueObject | None = Field(default=None, description="Affinity of the pods, as in the Kubernetes API.")
    topology_spread_constraints: list[OpaqueObject] | None = Field(
        default=None, max_length=16, description="Topology spread constraints, as in the Kubernetes API."
    )
    priority_class_name: ObjectName | None = Field(default=None, description="Priority class of the pods.")
    runtime_class_name: ObjectName | None = Field(default=None, description="Runtime class of the pods.")
    image_pull_secrets: list[LocalObjectReference] | None = Field(
        default=None, max_length=16, description="Secrets to pull the image with."
    )
    termination_grace_period_seconds: int | None = Field(
        default=None, ge=1, le=3600, description="Seconds that a pod may take to drain. Unset: 30."
    )
    env: list[EnvVar] | None = Field(default=None, max_length=64, description="Additional environment variables.")
    service_account: ServiceAccountTemplate | None = Field(default=None, description="The relay's ServiceAccount.")


class Relay(Model):
    """The relay's pods."""

    shards: int = Field(
        default=1,
        ge=1,
        le=64,
        description=(
            "Leaders that share the keys among them. May be changed only while suspended; "
            "the new shards continue from the positions of the old."
        ),
    )
    standbys: int = Field(default=0, ge=0, le=8, description="Pods a shard that wait to take over.")
    lease: Lease = section(Lease, "How the pods of a shard agree on one leader.")
    image: LongText | None = Field(default=None, description="Image of the relay. Unset: the operator's setting.")
    resources: Resources | None = Field(default=None, description="Resources of the relay's container.")
    network_policy: NetworkPolicy | None = Field(default=None, description="A NetworkPolicy for the relay's pods.")
    template: PodTemplate | None = Field(default=None, description="What of the pods a user may set.")
