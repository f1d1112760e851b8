"""The report: what a relay's leader tells the operator, one JSON text under `report.json` of the report ConfigMap."""

from typing import Literal

from pydantic import Field

from outbox_api.base import DateTime, Model
from outbox_api.checkpoint import ClusterTimeText
from outbox_api.reasons import RelayReason

State = Literal["Starting", "Streaming", "Retrying", "Stalled", "Stopped"]
"""Starting: not leading yet. Streaming: source and sink answer. Retrying: one of them does not; heals by itself.
Stalled: will not go on without the user. Stopped: drained."""


class Problem(Model):
    """An error, as a user should see it."""

    reason: RelayReason = Field(description="CamelCase reason.")
    message: str = Field(description="What happened, where, and what to do next; never a secret.")
    time: DateTime = Field(description="When it happened.")


class Report(Model):
    """The state of one shard, as its leader sees it."""

    state: State
    reason: RelayReason
    message: str
    time: DateTime = Field(description="When the report was written.")
    leader: str | None = Field(default=None, description="Name of the pod that leads.")
    epoch: int | None = Field(default=None, description="Epoch of the leader.")
    position: ClusterTimeText | None = Field(default=None, description="Cluster time of the last settled event.")
    last_published_time: DateTime | None = Field(default=None, description="When an event was last acknowledged.")
    lag_milliseconds: int | None = Field(default=None, ge=0, description="Absent until known.")
    pending: int | None = Field(default=None, ge=0, description="Unpublished events, counted with a limit.")
    dead_lettered: int | None = Field(default=None, ge=0, description="Events in the dead-letter collection.")
    checkpoint_missing: bool = Field(default=False, description="The checkpoint was gone; the operator restores it.")
    last_error: Problem | None = None
