"""Until when a leader may send: by its own clock, and never again once it has passed."""

import pytest

from outbox_relay.leadership.deadline import Deadline
from outbox_relay.problems import LeadershipLostError


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_it_lets_pass_until_it_comes(clock: Clock) -> None:
    deadline = Deadline(110, clock)
    clock.now = 109.9
    deadline.check()
    assert deadline.remaining == pytest.approx(0.1)
    clock.now = 110
    with pytest.raises(LeadershipLostError):
        deadline.check()
    assert deadline.remaining == 0


def test_a_renewal_pushes_it_on_and_never_back(clock: Clock) -> None:
    deadline = Deadline(110, clock)
    deadline.extend(120)
    deadline.extend(115)
    clock.now = 119
    assert not deadline.passed


def test_a_renewal_that_comes_too_late_does_not_revive_it(clock: Clock) -> None:
    deadline = Deadline(110, clock)
    clock.now = 111
    deadline.extend(200)
    assert deadline.passed
    clock.now = 105  # and a clock that went back, which a monotonic one does not, would not either
    assert deadline.passed


def test_revoking_ends_it(clock: Clock) -> None:
    deadline = Deadline(110, clock)
    deadline.revoke()
    assert deadline.passed


def test_without_election_it_does_not_come() -> None:
    deadline = Deadline.never()
    assert not deadline.passed
    assert deadline.remaining == float("inf")
    deadline.revoke()
    assert deadline.passed
