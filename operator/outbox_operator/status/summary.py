"""The whole status of a relay."""

from collections.abc import Iterable

from outbox_api import names
from outbox_api.quantities import format_duration
from outbox_api.report import Report
from outbox_api.status import LastError, OutboxRelayStatus, ShardStatus
from outbox_operator.status.conditions import conditions
from outbox_operator.status.deployments import image
from outbox_operator.status.situation import Shard, Situation
from outbox_operator.verdict import Verdict


def status(situation: Situation, verdict: Verdict | None) -> OutboxRelayStatus:
    """What the operator tells of a relay.

    Numbers are shown only while they are known: a lag of a pod that is gone is absent, not zero. A position is
    remembered, since its loss must be noticed.

    Args:
        situation: what was seen.
        verdict: its `trouble`.
    """
    relay, shards = situation.relay, situation.shards
    now = [shard.report for shard in shards if shard.report is not None]
    last = [shard.last_report for shard in shards if shard.last_report is not None]
    complete = len(now) == len(shards)
    lag = _largest(report.lag_milliseconds for report in now) if complete else None
    spec = relay.spec
    return OutboxRelayStatus(
        observed_generation=relay.generation,
        source=f"{spec.source.database}.{spec.source.collection}" if spec else relay.status.get("source"),
        conditions=conditions(situation, verdict),
        leader=shards[0].report.leader if shards and shards[0].report else None,
        shards=[_shard(situation, shard) for shard in shards] or None,
        lag=None if lag is None else format_duration(lag),
        lag_milliseconds=lag,
        pending=_total(report.pending for report in now) if complete else None,
        dead_lettered=_largest(report.dead_lettered for report in last),
        last_published_time=max((r.last_published_time for r in last if r.last_published_time), default=None),
        last_error=_last_error(last),
        image=image(shards[0].deployment) if shards else None,
        last_handled_position_request=relay.status.get("lastHandledPositionRequest"),
        last_handled_reconcile_at=relay.annotations.get(names.ANNOTATION_RECONCILE_AT),
    )


def _shard(situation: Situation, shard: Shard) -> ShardStatus:
    now, last = shard.report, shard.last_report
    return ShardStatus(
        index=shard.index,
        leader=now.leader if now else None,
        position=(last.position if last else None) or situation.relay.remembered_position(shard.index),
        lag_milliseconds=now.lag_milliseconds if now else None,
        pending=now.pending if now else None,
    )


def _last_error(reports: list[Report]) -> LastError | None:
    errors = [report.last_error for report in reports if report.last_error is not None]
    if not errors:
        return None
    latest = max(errors, key=lambda error: error.time)
    return LastError(reason=latest.reason, message=latest.message, time=latest.time)


def _largest(numbers: Iterable[int | None]) -> int | None:
    return max((number for number in numbers if number is not None), default=None)


def _total(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
