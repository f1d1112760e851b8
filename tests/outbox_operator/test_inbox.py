"""Which events make a relay's turn come."""

from typing import Any

import pytest

from outbox_operator import inbox as module
from outbox_operator.hearing import Hearing
from outbox_operator.inbox import Inbox
from outbox_operator.keys import Key
from outbox_operator.queue import KeyedQueue

A = Key("shop", "a")


def obj(uid: str, version: str) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "resourceVersion": version}}


@pytest.fixture
def queue() -> KeyedQueue[Key]:
    return KeyedQueue(clock=lambda: 0.0, jitter=lambda: 0.0)


@pytest.fixture
def inbox(queue: KeyedQueue[Key]) -> Inbox:
    return Inbox(queue, Hearing(clock=lambda: 0.0))


def test_the_first_event_of_an_object_is_news(queue: KeyedQueue[Key], inbox: Inbox) -> None:
    inbox.event(A, "u", "1")
    assert len(queue) == 1


def test_the_echo_of_what_a_reconciliation_read_or_wrote_is_none(queue: KeyedQueue[Key], inbox: Inbox) -> None:
    inbox.seen(obj("u", "5"))
    inbox.event(A, "u", "5")
    assert len(queue) == 0
    inbox.event(A, "u", "6")
    assert len(queue) == 1


def test_a_deletion_is_always_news(queue: KeyedQueue[Key], inbox: Inbox) -> None:
    inbox.seen(obj("u", "5"))
    inbox.event(A, "u", "")
    assert len(queue) == 1


def test_an_echo_that_arrives_before_the_answer_is_none_either(queue: KeyedQueue[Key], inbox: Inbox) -> None:
    inbox.begin(A)
    inbox.event(A, "u", "5")
    inbox.seen(obj("u", "5"))
    inbox.end(A)
    assert len(queue) == 0


def test_news_that_arrive_during_the_work_are_not_lost(queue: KeyedQueue[Key], inbox: Inbox) -> None:
    inbox.begin(A)
    inbox.seen(obj("u", "5"))
    inbox.event(A, "u", "6")
    assert len(queue) == 0
    inbox.end(A)
    assert len(queue) == 1


def test_what_is_remembered_is_bounded_and_what_is_forgotten_is_news(
    queue: KeyedQueue[Key], inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 2)
    for uid in ("u", "v", "w"):
        inbox.seen(obj(uid, "1"))
    inbox.event(A, "w", "1")
    assert len(queue) == 0
    inbox.event(A, "u", "1")
    assert len(queue) == 1
