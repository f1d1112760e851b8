"""Whose an object with a child's name is. Nothing that is not the resource's own is ever written or deleted."""

from enum import Enum, auto

from outbox_api import names
from outbox_api.reasons import ConditionReason
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.kube.resources import Object
from outbox_operator.render.children import Child, Observed
from outbox_operator.verdict import Verdict


class Belonging(Enum):
    """Whose an object is."""

    #: The resource's own.
    OWN = auto()
    #: Left by an earlier resource of the same name, or on its way out: it goes by itself.
    LEAVING = auto()
    #: Somebody else's.
    FOREIGN = auto()


def belonging(relay: OutboxRelay, live: Object) -> Belonging:
    """Whose a live object is, by the UID in its controller's owner reference."""
    for reference in live["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference["kind"] == names.KIND:
            if not reference["apiVersion"].startswith(f"{names.GROUP}/") or reference["name"] != relay.key.name:
                return Belonging.FOREIGN
            if reference["uid"] != relay.uid:
                return Belonging.LEAVING
            return Belonging.LEAVING if "deletionTimestamp" in live["metadata"] else Belonging.OWN
    return Belonging.FOREIGN


def obstacle(relay: OutboxRelay, observed: Observed) -> Verdict | None:
    """What stands in the way of having the children; None when nothing does."""
    found = {child: belonging(relay, live) for child, live in observed.items() if live is not None}
    foreign = [child for child, whose in found.items() if whose is Belonging.FOREIGN]
    if foreign:
        return name_conflict(foreign)
    leaving = [child for child, whose in found.items() if whose is Belonging.LEAVING]
    if leaving:
        return Verdict.progressing(ConditionReason.WAITING_FOR_DELETION, _leaving_message(leaving, observed))
    return None


def name_conflict(foreign: list[Child]) -> Verdict:
    """Objects of other owners have the names of children."""
    return Verdict.stalled(
        ConditionReason.NAME_CONFLICT,
        f"{_list(foreign)} exists and does not belong to this OutboxRelay; it was left untouched. "
        "Delete or rename it, or give this OutboxRelay another name.",
    )


def _leaving_message(leaving: list[Child], observed: Observed) -> str:
    held = sorted(
        {finalizer for child in leaving for finalizer in (observed[child] or {})["metadata"].get("finalizers") or ()}
    )
    message = f"Waiting until {_list(leaving)} of an earlier OutboxRelay of this name, or deleted since, is gone."
    return f"{message} Finalizers hold it: {', '.join(held)}." if held else message


def _list(children: list[Child]) -> str:
    shown = ", ".join(str(child) for child in children[:3])
    return shown if len(children) <= 3 else f"{shown} and {len(children) - 3} more"
