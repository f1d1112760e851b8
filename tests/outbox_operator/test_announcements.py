"""Which changes are worth an Event."""

from typing import Any

import pytest

from outbox_operator.apply import Applied
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.kube.resources import DEPLOYMENT, ROLE
from outbox_operator.render.children import Child
from outbox_operator.status.announcements import announcements
from outbox_operator.verdict import Verdict

from .cluster import relay
from .test_status import World, report

A_ROLE, A_DEPLOYMENT = Child(ROLE, "orders-outbox-relay"), Child(DEPLOYMENT, "orders-outbox-0")


def told(
    before: World | None, after: World, applied: Applied | None = None, verdict: Verdict | None = None, **stored: Any
) -> list[tuple[str, str]]:
    """Type and reason of the Events for the step between two situations."""
    obj = relay()
    obj["metadata"] |= {"namespace": "shop", "uid": "u", "generation": 4, "creationTimestamp": "2026-01-01T00:00:00Z"}
    status = {**(before.status().wire() if before else {}), **stored}
    found = announcements(OutboxRelay.of({**obj, "status": status}), applied, after.status(), verdict)
    return [(announcement.type, announcement.reason) for announcement in found]


def test_nothing_is_told_while_nothing_changes() -> None:
    assert told(World(), World(), Applied({})) == []


def test_a_new_relay_tells_of_its_children_and_not_that_it_is_on_its_way() -> None:
    waiting = Verdict.progressing("WaitingForRelay", "")
    applied = Applied({}, created=[A_ROLE, A_DEPLOYMENT])
    assert told(None, World(report=None), applied, waiting) == [("Normal", "ChildCreated")]


def test_becoming_ready_is_told_with_who_leads() -> None:
    assert told(World(report=None), World()) == [("Normal", "LeaderElected"), ("Normal", "Ready")]


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [
        (Verdict.failing("SinkUnreachable", "x"), "Warning"),
        (Verdict.stalled("PoisonEvent", "x"), "Warning"),
        (Verdict.progressing("SinkUnreachable", "x"), "Normal"),
    ],
)
def test_trouble_is_a_warning_when_it_does_not_pass_by_itself(verdict: Verdict, kind: str) -> None:
    after = World(report=report(state="Retrying", reason="SinkUnreachable", message="x"))
    assert told(World(), after, verdict=verdict) == [(kind, "SinkUnreachable")]


def test_what_was_written_for_a_new_spec_and_what_was_healed_are_told_apart() -> None:
    applied = Applied({}, created=[A_ROLE], changed={A_DEPLOYMENT: ["spec.replicas"]})
    assert told(World(), World(), applied) == [("Warning", "ChildRestored"), ("Normal", "ChildCorrected")]
    assert told(World(), World(), applied, observedGeneration=3) == [
        ("Normal", "ChildCreated"),
        ("Normal", "ChildUpdated"),
    ]
