"""The spec as a whole, and the rules that span its parts."""

from typing import Literal

from pydantic import Field

from outbox_api.base import Duration, Model, closed_model, rules, section
from outbox_api.spec.checkpointing import Checkpointing
from outbox_api.spec.failure import Failure
from outbox_api.spec.monitoring import Monitoring
from outbox_api.spec.relay import Relay
from outbox_api.spec.route import Route
from outbox_api.spec.sink import Sink
from outbox_api.spec.source import Source


class Retention(Model):
    """How long published events stay in the outbox."""

    published: Duration = Field(description="Time after which a published event is removed by a TTL index.")


class CommonSpec(Model):
    """What the resource and the relay's configuration say in the same words."""

    suspend: bool = Field(default=False, description="Scale the relay to zero and keep its position.")
    route: Route = section(Route, "What record an event becomes.")
    after_publish: Literal["Mark", "Delete", "Keep"] = Field(
        default="Mark",
        description="What happens to a published event: its published_at is set, it is removed, or nothing.",
    )
    retention: Retention | None = Field(
        default=None, description="Removal of published events after a time; only with afterPublish Mark."
    )
    failure: Failure = section(Failure, "What happens to events and topics that fail.")
    checkpoint: Checkpointing = section(Checkpointing, "The relay's position.")
    relay: Relay = section(Relay, "The relay's pods.")
    monitoring: Monitoring = section(Monitoring, "Scraping and alerts.")


def _only_while_suspended(field: str) -> tuple[str, str]:
    return (
        f"oldSelf.suspend || self.{field} == oldSelf.{field}",
        f"spec.{field} may be changed only while suspended: set spec.suspend to true first, in a change of its own",
    )


class OutboxRelaySpec(CommonSpec):
    """What a user asks for: a relay from one outbox collection to Kafka."""

    model_config = closed_model(
        **rules(
            (
                "self.source.mode != 'Polling' || self.afterPublish != 'Keep'",
                "spec.afterPublish Keep does not work with spec.source.mode Polling: use Mark or Delete",
            ),
            (
                "self.source.mode != 'Polling' || self.sink.delivery != 'ExactlyOnce'",
                "spec.sink.delivery ExactlyOnce does not work with spec.source.mode Polling: use ChangeStream",
            ),
            (
                "self.source.mode != 'Polling' || self.checkpoint.startFrom.position == 'Backlog'",
                "spec.checkpoint.startFrom.position must be Backlog with spec.source.mode Polling",
            ),
            (
                "!has(self.retention) || self.afterPublish == 'Mark'",
                "spec.retention works only with spec.afterPublish Mark",
            ),
            _only_while_suspended("source.mode"),
            _only_while_suspended("sink.delivery"),
            _only_while_suspended("checkpoint.storage"),
            _only_while_suspended("relay.shards"),
        )
    )

    source: Source = Field(description="Where events come from.")
    sink: Sink = Field(description="Where events go.")
