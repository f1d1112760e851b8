"""The status of an OutboxRelay: what the operator tells."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from outbox_api.base import DateTime, Model

ConditionType = Literal[
    "Ready", "Reconciling", "Stalled", "Suspended", "Streaming", "CredentialsResolved", "MonitoringConfigured"
]
CONDITION_TYPES: tuple[ConditionType, ...] = (
    "Ready",
    "Reconciling",
    "Stalled",
    "Suspended",
    "Streaming",
    "CredentialsResolved",
    "MonitoringConfigured",
)


class Condition(Model):
    """One condition, in the form of the Kubernetes API conventions."""

    type: ConditionType = Field(description="Type of the condition.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: Annotated[str, StringConstraints(max_length=1024)] = Field(description="CamelCase reason for the status.")
    message: Annotated[str, StringConstraints(max_length=32768)] = Field(
        description="What happened, and the next step where one is due."
    )
    last_transition_time: DateTime = Field(description="When the status last changed.")
    observed_generation: int = Field(description="Generation of the spec that the condition is about.")


class ShardStatus(Model):
    """One shard."""

    index: int = Field(description="Number of the shard, from 0.")
    leader: str | None = Field(default=None, description="Pod that leads.")
    position: str | None = Field(default=None, description="Cluster time of the last settled event.")
    lag_milliseconds: int | None = Field(default=None, description="Age of the oldest event that is not settled.")
    pending: int | None = Field(default=None, description="Unpublished events, counted with a limit.")


class LastError(Model):
    """The last error of the relay."""

    reason: str = Field(description="CamelCase reason.")
    message: str = Field(description="What happened, where, and the next step.")
    time: DateTime = Field(description="When it happened.")


class OutboxRelayStatus(Model):
    """What the operator tells of an OutboxRelay."""

    observed_generation: int | None = Field(default=None, description="Generation that this status is about.")
    source: str | None = Field(default=None, description="database.collection.")
    conditions: list[Condition] | None = Field(
        default=None,
        max_length=16,
        description="Conditions by type; Ready, Reconciling and Stalled follow kstatus.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    leader: str | None = Field(default=None, description="Pod that leads; with several shards, that of the first.")
    shards: list[ShardStatus] | None = Field(
        default=None,
        max_length=64,
        description="Each shard.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["index"]},
    )
    lag: str | None = Field(default=None, description="Largest lag of the shards, as a duration.")
    lag_milliseconds: int | None = Field(default=None, description="The same in milliseconds.")
    pending: int | None = Field(default=None, description="Unpublished events, counted with a limit.")
    dead_lettered: int | None = Field(default=None, description="Events in the dead-letter collection.")
    last_published_time: DateTime | None = Field(default=None, description="When an event was last acknowledged.")
    last_error: LastError | None = Field(default=None, description="Last error of the relay.")
    image: str | None = Field(default=None, description="Image that the relay runs.")
    last_handled_position_request: str | None = Field(
        default=None, description="Nonce of the position request that was last carried out."
    )
    last_handled_reconcile_at: str | None = Field(
        default=None, description="Value of the reconcile-at annotation that was last acted on."
    )
