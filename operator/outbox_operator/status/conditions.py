"""The conditions of a relay, by the rules of kstatus: Ready, Reconciling, Stalled, and four that say more."""

from dataclasses import dataclass
from typing import Literal

from outbox_api import names
from outbox_api.reasons import ConditionReason, RelayReason
from outbox_api.status import CONDITION_TYPES, Condition, ConditionType
from outbox_operator.status.relays import CREDENTIAL_REASONS, shard_trouble
from outbox_operator.status.situation import Situation, streams
from outbox_operator.verdict import Outlook, Verdict


@dataclass(frozen=True)
class State:
    """A condition's status with its reason and message."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str


def trouble(situation: Situation) -> Verdict | None:
    """The one thing that most explains why the relay is not as it should be; None when it is."""
    if situation.obstacle is not None:
        return situation.obstacle
    if situation.stopped:
        running = sum(len(shard.pods) for shard in situation.shards)
        if running:
            return Verdict.progressing(ConditionReason.PROGRESSING, f"Waiting until {running} pod(s) have stopped.")
        return None
    found = [(shard, verdict) for shard in situation.shards if (verdict := shard_trouble(shard)) is not None]
    if not found:
        return None
    shard, verdict = max(found, key=lambda pair: (pair[1].outlook.value, -pair[0].index))
    if len(situation.shards) == 1:
        return verdict
    return Verdict(verdict.outlook, verdict.reason, f"Shard {shard.index}: {verdict.message}")


def conditions(situation: Situation, verdict: Verdict | None) -> list[Condition]:
    """All conditions, in the order of `CONDITION_TYPES`.

    Args:
        situation: what was seen.
        verdict: its `trouble`.
    """
    states: dict[ConditionType, State] = {
        "Ready": _ready(situation, verdict),
        "Reconciling": _reconciling(situation, verdict),
        "Stalled": _stalled(verdict),
        "Suspended": _suspended(situation),
        "Streaming": _streaming(situation, verdict),
        "CredentialsResolved": _credentials(situation),
        "MonitoringConfigured": _monitoring(situation),
    }
    now = situation.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    before = {condition.get("type"): condition for condition in situation.relay.status.get("conditions") or ()}
    return [
        Condition(
            type=kind,
            status=states[kind].status,
            reason=states[kind].reason,
            message=states[kind].message,
            last_transition_time=(
                before[kind]["lastTransitionTime"]
                if kind in before and before[kind].get("status") == states[kind].status
                else now
            ),
            observed_generation=situation.relay.generation,
        )
        for kind in CONDITION_TYPES
    ]


def _ready(situation: Situation, verdict: Verdict | None) -> State:
    if verdict is not None:
        # Nothing is known yet, which is neither good nor bad.
        unknown = verdict.reason == ConditionReason.WAITING_FOR_RELAY
        return State("Unknown" if unknown else "False", verdict.reason, verdict.message)
    if _is_suspended(situation):
        return State("True", ConditionReason.SUSPENDED, "Suspended as asked; the position is kept.")
    held = [
        shard.report for shard in situation.shards if shard.report and shard.report.reason == RelayReason.TOPIC_HELD
    ]
    if held:
        return State("True", RelayReason.TOPIC_HELD, held[0].message)
    return State("True", ConditionReason.READY, f"Events of {_source(situation)} are relayed to Kafka.")


def _reconciling(situation: Situation, verdict: Verdict | None) -> State:
    if situation.relay.paused:
        waiting = ", ".join(str(child) for child in situation.pending)
        return State(
            "False",
            ConditionReason.PAUSED,
            f"The annotation {names.ANNOTATION_PAUSED} keeps the operator's hands off"
            + (f"; waiting to be written: {waiting}." if waiting else "; nothing waits to be written."),
        )
    if verdict is not None and verdict.outlook is Outlook.PROGRESSING:
        return State("True", verdict.reason, verdict.message)
    if verdict is not None and verdict.outlook is Outlook.STALLED:
        return State("False", verdict.reason, "Waiting for a change by the user, see condition Stalled.")
    return State("False", ConditionReason.UP_TO_DATE, "Everything is as the spec asks.")


def _stalled(verdict: Verdict | None) -> State:
    if verdict is not None and verdict.outlook is Outlook.STALLED:
        return State("True", verdict.reason, verdict.message)
    return State("False", ConditionReason.NOT_STALLED, "Nothing waits for the user.")


def _suspended(situation: Situation) -> State:
    if _is_suspended(situation):
        return State("True", ConditionReason.SUSPENDED, "Set spec.suspend to false to go on from the kept position.")
    return State("False", ConditionReason.NOT_SUSPENDED, "spec.suspend is false.")


def _streaming(situation: Situation, verdict: Verdict | None) -> State:
    if situation.stopped or not situation.shards:
        reason = verdict.reason if verdict is not None else ConditionReason.SUSPENDED
        return State("False", reason, "No pod is to run.")
    for shard in situation.shards:
        if shard.report is None:
            reason = verdict.reason if verdict is not None else ConditionReason.WAITING_FOR_RELAY
            return State("Unknown", reason, "No pod that is there has reported yet.")
        if not streams(shard.report):
            return State("False", shard.report.reason, shard.report.message)
    first = situation.shards[0].report
    return State("True", first.reason if first else RelayReason.STREAMING, "Source and sink answer.")


def _credentials(situation: Situation) -> State:
    reports = [shard.report for shard in situation.shards]
    for report in reports:
        if report is not None and report.reason in CREDENTIAL_REASONS and not streams(report):
            return State("False", report.reason, report.message)
    if reports and all(report is not None and streams(report) for report in reports):
        return State("True", ConditionReason.CREDENTIALS_RESOLVED, "Source and sink accept the credentials.")
    if _is_suspended(situation):
        return State("Unknown", ConditionReason.SUSPENDED, "Credentials are used by running pods only.")
    return State("Unknown", ConditionReason.WAITING_FOR_RELAY, "The relay tells when it has used the credentials.")


def _monitoring(situation: Situation) -> State:
    spec = situation.relay.spec
    if spec is not None and not spec.monitoring.pod_monitor.enabled and not spec.monitoring.alerts.enabled:
        return State("False", ConditionReason.MONITORING_DISABLED, "spec.monitoring turns scraping and alerts off.")
    return State(
        "False",
        ConditionReason.NOT_IMPLEMENTED,
        "This version creates no PodMonitor and no alert rules; the relay's pods serve metrics on port "
        f"{names.HTTP_PORT} at /metrics.",
    )


def _is_suspended(situation: Situation) -> bool:
    return situation.relay.spec is not None and situation.relay.spec.suspend


def _source(situation: Situation) -> str:
    spec = situation.relay.spec
    return f"{spec.source.database}.{spec.source.collection}" if spec else "the source"
