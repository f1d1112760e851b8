"""The rules that every status must keep, whatever happened (kstatus and the operator's own)."""

from collections.abc import Mapping
from typing import Any

from outbox_api.status import CONDITION_TYPES


def violations(status: Mapping[str, Any]) -> list[str]:
    """What a status, in its wire form, does wrong; empty when nothing."""
    found: list[str] = []
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    if tuple(conditions) != CONDITION_TYPES:
        return [f"conditions are {list(conditions)}"]
    ready, reconciling, stalled = conditions["Ready"], conditions["Reconciling"], conditions["Stalled"]
    for condition in conditions.values():
        if condition["observedGeneration"] != status["observedGeneration"]:
            found.append(f"{condition['type']} is about another generation than the status")
        if not condition["reason"] or not condition["message"]:
            found.append(f"{condition['type']} has no reason or no message")
    if stalled["status"] == "True" and (ready["status"], ready["reason"]) != ("False", stalled["reason"]):
        found.append("Stalled without Ready=False of the same reason")
    if stalled["status"] == reconciling["status"] == "True":
        found.append("both Stalled and Reconciling")
    if reconciling["status"] == "True" and ready["status"] == "True":
        found.append("Ready while Reconciling")
    if ready["status"] == "True" and ready["reason"] != "Suspended" and conditions["Streaming"]["status"] != "True":
        found.append("Ready without Streaming")
    if ("lag" in status) != ("lagMilliseconds" in status):
        found.append("lag in one form only")
    return found
