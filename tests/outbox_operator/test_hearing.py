"""A watch that goes deaf is found by what it does not tell of."""

from typing import Any

import pytest

from outbox_operator import hearing as module
from outbox_operator.hearing import PATIENCE, Hearing

from .clock import Clock


@pytest.fixture
def hearing(clock: Clock) -> Hearing:
    return Hearing(clock=clock)


def obj(version: str, *, watched: bool = True) -> dict[str, Any]:
    labels = {"outboxrelay.io/watched": "true"} if watched else {}
    return {"kind": "ConfigMap", "metadata": {"uid": "u", "resourceVersion": version, "labels": labels}}


def test_a_version_that_the_watch_never_tells_of_is_overdue(hearing: Hearing, clock: Clock) -> None:
    hearing.heard("u", "1")
    hearing.live(obj("1"))
    clock.now = 1000
    assert hearing.overdue == 0
    hearing.live(obj("2"))
    clock.now += 60
    hearing.live(obj("3"))
    clock.now += 70
    assert hearing.overdue == 130 > PATIENCE


def test_what_the_watch_tells_late_is_no_longer_overdue(hearing: Hearing, clock: Clock) -> None:
    hearing.live(obj("2"))
    clock.now = 100
    hearing.heard("u", "2")
    assert hearing.overdue == 0


def test_an_object_that_is_gone_is_owed_by_nobody(hearing: Hearing, clock: Clock) -> None:
    hearing.live(obj("2"))
    clock.now = 100
    hearing.heard("u", "")
    assert hearing.overdue == 0


def test_what_is_not_watched_is_not_waited_for(hearing: Hearing, clock: Clock) -> None:
    hearing.live(obj("2", watched=False))
    clock.now = 100
    assert hearing.overdue == 0
    hearing.live({**obj("2", watched=False), "kind": "OutboxRelay"})
    clock.now += 1
    assert hearing.overdue == 1


def test_what_was_read_before_the_watch_told_of_the_next_is_not_waited_for(hearing: Hearing, clock: Clock) -> None:
    hearing.heard("u", "10")
    hearing.live(obj("9"))
    clock.now = 100
    assert hearing.overdue == 0
    hearing.heard("u", "")
    hearing.live(obj("10"))
    clock.now = 200
    assert hearing.overdue == 0


def test_what_is_remembered_of_deleted_objects_is_bounded(hearing: Hearing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GONE", 2)
    for uid in ("u", "v", "w"):
        hearing.heard(uid, "")
    assert list(hearing._gone) == ["v", "w"]
