"""Where the position is kept, where a relay starts, and what it does when history is lost."""

from typing import Literal

from pydantic import Field

from outbox_api.base import DateTime, Duration, Model, closed_model, rules, section


class StartFrom(Model):
    """Where a relay without a position starts."""

    model_config = closed_model(
        **rules(
            (
                "has(self.time) == (self.position == 'Time')",
                "spec.checkpoint.startFrom.time is needed with position Time, and only there",
            ),
        )
    )

    position: Literal["Backlog", "Now", "Time"] = Field(
        default="Backlog",
        description="Backlog: every unpublished event; Now: events from now on; Time: from a time on.",
    )
    time: DateTime | None = Field(default=None, description="The time to start from, with position Time.")
    republish: bool = Field(default=False, description="Send also events that are marked as published.")


class Checkpointing(Model):
    """The relay's position: up to where every event is settled."""

    storage: Literal["ConfigMap", "Secret"] = Field(
        default="ConfigMap",
        description=(
            "Kind of object that keeps the position; a resume token can hold a document's key. "
            "May be changed only while suspended; the position is not carried over."
        ),
    )
    interval: Duration = Field(default="5s", description="Longest time between two writes of the position under load.")
    idle_interval: Duration = Field(default="10m", description="Time between two writes of the position when idle.")
    deletion_policy: Literal["Delete", "Retain"] = Field(
        default="Delete", description="What becomes of the position when the OutboxRelay is deleted."
    )
    start_from: StartFrom = section(StartFrom, "Where a relay without a position starts.")
    on_history_lost: Literal["Resync", "Block", "SkipToNow"] = Field(
        default="Resync", description="What happens when the position is no longer in the oplog."
    )
