"""The lag: by one clock, never negative, and absent until it is known."""

from collections.abc import Sequence

import pytest

from outbox_api.checkpoint import Position
from outbox_relay.events import Record
from outbox_relay.observe.lag import Lag
from outbox_relay.pipeline.batch import Marker, SourceBatch
from outbox_relay.pipeline.budget import Budget
from outbox_relay.pipeline.tracker import Item, PositionTracker
from outbox_relay.source.server_time import ServerClock


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


class Batch(SourceBatch):
    replayed = False
    size = 0

    def __init__(self, commits: Sequence[float]) -> None:
        self._commits = commits
        self.documents = [b""] * len(commits)
        self.end = Position(cluster_time=f"{int(commits[-1])}.1")

    def position(self, index: int) -> Position:
        return Position(cluster_time=f"{int(self._commits[index])}.1")

    def committed(self, index: int) -> float:
        return self._commits[index]


@pytest.fixture
def monotonic() -> Clock:
    return Clock()


@pytest.fixture
def server(monotonic: Clock) -> ServerClock:
    """A server whose clock shows 1,000 s when ours shows 50."""
    clock = ServerClock(monotonic)
    clock.set(1_000.0, 50.0)
    return clock


@pytest.fixture
def tracker() -> PositionTracker:
    return PositionTracker(Budget(1_000, 1_000), Position(cluster_time="900.1"))


def test_it_is_absent_until_the_stream_was_heard(
    monotonic: Clock, server: ServerClock, tracker: PositionTracker
) -> None:
    lag = Lag(server, monotonic)
    assert lag.seconds() is None
    lag.follow(tracker)
    assert lag.seconds() is None, "a relay that has read nothing does not know"
    lag.heard()
    assert lag.seconds() == 0.0
    assert Lag(ServerClock(monotonic), monotonic).seconds() is None, "nor one that never heard the server's clock"


def test_it_is_the_age_of_the_oldest_unsettled_event(
    monotonic: Clock, server: ServerClock, tracker: PositionTracker
) -> None:
    lag = Lag(server, monotonic)
    lag.follow(tracker)
    lag.heard()
    chunk = tracker.add(Batch([999.25, 999.5]))
    monotonic.now += 1
    assert lag.seconds() == pytest.approx(1.75), "below a second it is told too"
    assert lag.oldest_unsent() == pytest.approx(1.75)
    record = Record("t", 0, None, None, None, [], 1)
    tracker.settle([Item(chunk, 0, record)])
    assert lag.seconds() == pytest.approx(1.5)
    tracker.settle([Item(chunk, 1, record)])
    assert lag.seconds() == 0.0
    assert lag.oldest_unsent() is None


def test_it_is_never_negative(monotonic: Clock, server: ServerClock, tracker: PositionTracker) -> None:
    lag = Lag(server, monotonic)
    lag.follow(tracker)
    lag.heard()
    tracker.add(Batch([1_007.0]))
    assert lag.seconds() == 0.0


def test_a_stream_that_has_fallen_silent_is_behind_since_its_position(
    monotonic: Clock, server: ServerClock, tracker: PositionTracker
) -> None:
    lag = Lag(server, monotonic)
    lag.follow(tracker)
    lag.heard()
    tracker.add(Marker(Position(cluster_time="1000.7")))
    monotonic.now += 60
    assert lag.seconds() == pytest.approx(60)
