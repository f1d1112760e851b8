"""Fields of the contract that ask for what is not built yet. They are refused, never ignored."""

from collections.abc import Callable

from outbox_api.spec.root import CommonSpec
from outbox_api.spec.sink import CommonSink
from outbox_api.spec.source import CommonSource

Check = Callable[[CommonSpec, CommonSource, CommonSink], bool]

_NOT_BUILT: dict[str, Check] = {
    "spec.source.mode: Polling": lambda _spec, source, _sink: source.mode == "Polling",
    "spec.source.tls": lambda _spec, source, _sink: getattr(source, "tls", None) is not None,
    "spec.sink.tls": lambda _spec, _source, sink: getattr(sink, "tls", None) is not None,
    "spec.sink.sasl": lambda _spec, _source, sink: getattr(sink, "sasl", None) is not None,
    "spec.sink.delivery: ExactlyOnce": lambda _spec, _source, sink: sink.delivery == "ExactlyOnce",
    "spec.sink.topics.create": lambda _spec, _source, sink: sink.topics.create,
    "spec.route.value.format": lambda spec, _source, _sink: spec.route.value.format != "Json",
    "spec.route.value.from": lambda spec, _source, _sink: spec.route.value.from_ != "Payload",
    "spec.route.value.expandPayload": lambda spec, _source, _sink: bool(spec.route.value.expand_payload),
    "spec.route.value.envelope": lambda spec, _source, _sink: bool(spec.route.value.envelope),
    "spec.route.value.tombstoneOnEmptyPayload": lambda spec, _source, _sink: bool(
        spec.route.value.tombstone_on_empty_payload
    ),
    "spec.route.value.schemaVersionField": lambda spec, _source, _sink: (
        spec.route.value.schema_version_field is not None
    ),
    "spec.retention": lambda spec, _source, _sink: spec.retention is not None,
    "spec.failure.maxAttempts": lambda spec, _source, _sink: spec.failure.max_attempts != 10,
    "spec.failure.hold": lambda spec, _source, _sink: (
        (spec.failure.hold.events, spec.failure.hold.size) != (10_000, "32Mi")
    ),
    "spec.failure.onTopicUnavailable: DeadLetter": lambda spec, _source, _sink: (
        spec.failure.on_topic_unavailable == "DeadLetter"
    ),
    "spec.failure.deadLetter": lambda spec, _source, _sink: (
        (spec.failure.dead_letter.collection, spec.failure.dead_letter.topic) != ("outbox_dlq", None)
    ),
    "spec.checkpoint.storage: Secret": lambda spec, _source, _sink: spec.checkpoint.storage == "Secret",
    "spec.checkpoint.deletionPolicy: Retain": lambda spec, _source, _sink: spec.checkpoint.deletion_policy == "Retain",
    "spec.checkpoint.startFrom.position": lambda spec, _source, _sink: spec.checkpoint.start_from.position != "Backlog",
    "spec.checkpoint.startFrom.republish": lambda spec, _source, _sink: spec.checkpoint.start_from.republish,
    "spec.checkpoint.onHistoryLost: SkipToNow": lambda spec, _source, _sink: (
        spec.checkpoint.on_history_lost == "SkipToNow"
    ),
    "spec.relay.shards": lambda spec, _source, _sink: spec.relay.shards != 1,
    "spec.relay.standbys": lambda spec, _source, _sink: spec.relay.standbys != 0,
    "spec.relay.networkPolicy": lambda spec, _source, _sink: (
        spec.relay.network_policy is not None and spec.relay.network_policy.enabled
    ),
    "spec.monitoring.podMonitor.labels": lambda spec, _source, _sink: bool(spec.monitoring.pod_monitor.labels),
    "spec.monitoring.alerts": lambda spec, _source, _sink: (
        bool(spec.monitoring.alerts.labels)
        or (spec.monitoring.alerts.lag, spec.monitoring.alerts.pending, spec.monitoring.alerts.dead_letters)
        != ("60s", 10_000, 0)
    ),
}
"""Field (or field and value) → whether a spec asks for it. `onHistoryLost: Block` and `onPoison: Block` are what the
relay does today, so they are not listed."""


def not_implemented(spec: CommonSpec, source: CommonSource, sink: CommonSink) -> list[str]:
    """Return the fields of a spec that ask for what is not built yet, as users write them; empty when all is built."""
    return [field for field, asked in _NOT_BUILT.items() if asked(spec, source, sink)]
