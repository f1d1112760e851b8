"""Which Kubernetes Events a change is worth. The reasons are documented in docs/reference/conditions-and-events.md."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from outbox_api.status import OutboxRelayStatus
from outbox_operator.apply import Applied
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.verdict import Outlook, Verdict


class EventReason(StrEnum):
    """Reasons of Events that are not also reasons of the condition Ready."""

    CHILD_CREATED = "ChildCreated"
    CHILD_UPDATED = "ChildUpdated"
    CHILD_RESTORED = "ChildRestored"
    CHILD_CORRECTED = "ChildCorrected"
    LEADER_ELECTED = "LeaderElected"


@dataclass(frozen=True)
class Announcement:
    """One Event to record.

    Attributes:
        type: how it is shown.
        reason: CamelCase; one Event object is kept for each.
        message: what happened.
    """

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def announcements(
    relay: OutboxRelay, applied: Applied | None, wanted: OutboxRelayStatus, verdict: Verdict | None
) -> list[Announcement]:
    """The Events for the step from the stored status to the wanted one, and for what was written on the way.

    Args:
        relay: the resource, with its stored status.
        applied: what was done to the children; None when hands were off.
        wanted: the new status.
        verdict: what the new status is about.
    """
    found: list[Announcement] = []
    if applied is not None:
        found += _writes(relay, applied)
    found += _leadership(relay.status, wanted)
    reason, message = _ready(wanted)
    before = _stored_ready_reason(relay.status)
    on_its_way = verdict is not None and verdict.outlook is Outlook.PROGRESSING
    # That a new relay is on its way goes without saying.
    if reason != before and not (before is None and on_its_way):
        found.append(Announcement("Normal" if verdict is None or on_its_way else "Warning", reason, message))
    return found


def _writes(relay: OutboxRelay, applied: Applied) -> list[Announcement]:
    found: list[Announcement] = []
    same_spec = relay.status.get("observedGeneration") == relay.generation
    created = ", ".join(str(child) for child in applied.created)
    changed = "; ".join(f"{child}: {', '.join(paths[:3])}" for child, paths in applied.changed.items())
    if created and same_spec:
        found.append(
            Announcement("Warning", EventReason.CHILD_RESTORED, f"Created again after they were gone: {created}.")
        )
    elif created:
        found.append(Announcement("Normal", EventReason.CHILD_CREATED, f"Created {created}."))
    if changed and same_spec:
        found.append(
            Announcement("Normal", EventReason.CHILD_CORRECTED, f"Brought back to what the spec asks: {changed}.")
        )
    elif changed:
        found.append(Announcement("Normal", EventReason.CHILD_UPDATED, f"Updated for the new spec: {changed}."))
    return found


def _leadership(stored: Mapping[str, Any], wanted: OutboxRelayStatus) -> list[Announcement]:
    before = {entry.get("index"): entry.get("leader") for entry in stored.get("shards") or ()}
    return [
        Announcement("Normal", EventReason.LEADER_ELECTED, f"Pod {shard.leader} leads shard {shard.index}.")
        for shard in wanted.shards or ()
        if shard.leader is not None and shard.leader != before.get(shard.index)
    ]


def _ready(wanted: OutboxRelayStatus) -> tuple[str, str]:
    return next(
        (condition.reason, condition.message) for condition in wanted.conditions or () if condition.type == "Ready"
    )


def _stored_ready_reason(stored: Mapping[str, Any]) -> str | None:
    return next((c.get("reason") for c in stored.get("conditions") or () if c.get("type") == "Ready"), None)
