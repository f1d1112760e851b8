"""Pauses double up to the cap, and start anew after a success."""

import pytest

from outbox_api.spec.failure import Backoff as BackoffSpec
from outbox_relay.backoff import Backoff


def test_pauses_double_up_to_the_cap() -> None:
    backoff = Backoff(0.2, 1.0, draw=lambda: 1.0)
    assert [backoff.next() for _ in range(5)] == pytest.approx([0.2, 0.4, 0.8, 1.0, 1.0])


def test_jitter_takes_up_to_half_of_a_pause() -> None:
    assert Backoff(0.2, 1.0, draw=lambda: 0.0).next() == pytest.approx(0.1)


def test_a_success_starts_anew() -> None:
    backoff = Backoff(0.2, 1.0, draw=lambda: 1.0)
    backoff.next()
    backoff.next()
    backoff.reset()
    assert backoff.next() == pytest.approx(0.2)


def test_a_failure_that_lasts_for_days_stays_at_the_cap() -> None:
    backoff = Backoff(0.2, 30.0, draw=lambda: 1.0)
    for _ in range(100_000):
        pause = backoff.next()
    assert pause == 30.0


def test_it_is_configured_by_the_spec() -> None:
    backoff = Backoff.from_spec(BackoffSpec(initial="100ms", max="3s"))
    assert 0.05 <= backoff.next() <= 0.1
