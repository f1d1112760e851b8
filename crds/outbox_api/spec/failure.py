"""What happens to events that cannot be delivered."""

from typing import Literal

from pydantic import Field

from outbox_api.base import Duration, Model, Size, closed_model, rules, section
from outbox_api.spec.sink import TopicName
from outbox_api.spec.source import CollectionName


class Backoff(Model):
    """Pause between attempts; it doubles, with jitter, up to the maximum."""

    model_config = closed_model(
        **rules(("self.initial <= self.max", "spec.failure.backoff.initial must not exceed spec.failure.backoff.max"))
    )

    initial: Duration = Field(default="200ms", description="First pause.")
    max: Duration = Field(default="30s", description="Longest pause.")


class Hold(Model):
    """How much of a topic that cannot be written is kept waiting while other topics go on."""

    events: int = Field(default=10_000, ge=0, le=1_000_000, description="Events held at most.")
    size: Size = Field(
        default="32Mi",
        description="Bytes held at most, up to 1Gi.",
        json_schema_extra=rules(
            ("quantity(self).compareTo(quantity('1Gi')) <= 0", "spec.failure.hold.size must be at most 1Gi")
        ),
    )


class DeadLetter(Model):
    """Where poison events go."""

    collection: CollectionName = Field(
        default="outbox_dlq", description="Collection for dead letters, in the outbox's database; always written."
    )
    topic: TopicName | None = Field(default=None, description="Topic that receives a copy of each dead letter.")


class Failure(Model):
    """What happens to events and topics that fail."""

    max_attempts: int = Field(
        default=10, ge=1, le=1_000, description="Refusals of one event after which it counts as poison."
    )
    backoff: Backoff = section(Backoff, "Pause between attempts.")
    hold: Hold = section(Hold, "Bounds of what waits for a topic.")
    on_topic_unavailable: Literal["Wait", "DeadLetter"] = Field(
        default="Wait", description="What happens beyond `hold`: stop reading, or dead-letter that topic's events."
    )
    on_poison: Literal["DeadLetter", "Block"] = Field(
        default="DeadLetter", description="What happens to a poison event: set aside, or stop the shard at it."
    )
    dead_letter: DeadLetter = section(DeadLetter, "Where poison events go.")
