"""What a shard's own report means."""

from outbox_api.reasons import ConditionReason, RelayReason
from outbox_operator.status.deployments import refused_pods, rollout
from outbox_operator.status.pods import pod_trouble
from outbox_operator.status.situation import Shard, streams
from outbox_operator.verdict import Verdict

#: Reasons that speak of credentials which are missing or refused.
CREDENTIAL_REASONS = frozenset(
    {
        RelayReason.SECRET_MISSING,
        RelayReason.SOURCE_AUTHENTICATION_FAILED,
        RelayReason.SOURCE_NOT_AUTHORIZED,
        RelayReason.SOURCE_URI_INVALID,
        RelayReason.SINK_AUTHENTICATION_FAILED,
        RelayReason.SINK_NOT_AUTHORIZED,
    }
)


def shard_trouble(shard: Shard) -> Verdict | None:
    """Why a shard does not stream, the most telling cause first; None when it does.

    A pod that cannot run explains a rollout that does not end, and so does a relay that says it cannot reach its
    source; a rollout explains that there is no leader yet.
    """
    return (
        refused_pods(shard.deployment)
        or pod_trouble(shard.pods)
        or _reported(shard)
        or rollout(shard.deployment)
        or _no_leader(shard)
    )


def _reported(shard: Shard) -> Verdict | None:
    report = shard.report
    if report is None or streams(report) or report.state not in {"Retrying", "Stalled"}:
        return None
    if report.state == "Stalled":
        return Verdict.stalled(report.reason, report.message)
    return Verdict.failing(report.reason, report.message)


def _no_leader(shard: Shard) -> Verdict | None:
    if shard.report is not None and streams(shard.report):
        return None
    if shard.last_report is None:
        return Verdict.progressing(
            ConditionReason.WAITING_FOR_RELAY, "The relay has not reported yet; it does so when it starts."
        )
    if shard.report is not None and shard.report.state == "Starting":
        return Verdict.progressing(shard.report.reason, shard.report.message or "The relay is starting.")
    return Verdict.progressing(
        ConditionReason.NO_LEADER,
        "No pod leads at the moment; another takes over within the Lease's duration, or when the pod has restarted.",
    )
