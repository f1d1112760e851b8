"""The position is the end of the settled prefix: never past an event that has no outcome."""

import random
from collections.abc import Callable, Sequence

import pytest

from outbox_api.checkpoint import Position
from outbox_relay.events import Record
from outbox_relay.pipeline.batch import Marker, SourceBatch
from outbox_relay.pipeline.budget import Budget
from outbox_relay.pipeline.tracker import Chunk, Item, PositionTracker


def at(time: int) -> Position:
    return Position(cluster_time=f"{time}.1", token=f"t{time}")


class FakeBatch(SourceBatch):
    """Events at the given cluster times."""

    replayed = False

    def __init__(self, times: Sequence[int], end: Position | None = None, size: int = 10) -> None:
        self._times = times
        self.documents: Sequence[bytes] = [b"x"] * len(times)
        self.size = size
        self.end = end or at(times[-1])

    def position(self, index: int) -> Position:
        return at(self._times[index])

    def rendered(self) -> None:
        self.documents = ()

    def committed(self, index: int) -> float:
        return float(self._times[index])


RECORD = Record("topic", None, None, b"key", b"value", [], "id")


def item(chunk: Chunk, index: int) -> Item:
    return Item(chunk, index, RECORD)


@pytest.fixture
def budget() -> Budget:
    return Budget(max_bytes=1_000, max_events=1_000)


@pytest.fixture
def add(budget: Budget) -> Callable[[PositionTracker, SourceBatch], Chunk]:
    def add(tracker: PositionTracker, batch: SourceBatch) -> Chunk:
        """Take a batch up as the flow does: its documents are let go of as soon as they are rendered."""
        budget.take(batch.size, len(batch.documents))
        chunk = tracker.add(batch)
        batch.rendered()
        return chunk

    return add


def test_before_anything_settles_the_position_is_the_start(budget: Budget, add: Callable[..., Chunk]) -> None:
    tracker = PositionTracker(budget, at(1))
    add(tracker, FakeBatch([2, 3]))
    assert tracker.position == at(1)
    assert tracker.oldest_commit == 2


def test_within_a_batch_the_position_follows_the_settled_prefix(budget: Budget, add: Callable[..., Chunk]) -> None:
    tracker = PositionTracker(budget, at(1))
    chunk = add(tracker, FakeBatch([2, 3, 4], end=at(9)))
    tracker.settle([item(chunk, 0), item(chunk, 2)])
    assert tracker.position == at(2)
    assert tracker.oldest_commit == 3
    tracker.settle([item(chunk, 1)])
    assert tracker.position == at(9), "the end of a batch may lie behind its last event"
    assert tracker.event_position == at(4)
    assert tracker.oldest_commit is None


def test_a_later_batch_that_settles_first_does_not_move_the_position(budget: Budget, add: Callable[..., Chunk]) -> None:
    tracker = PositionTracker(budget, at(1))
    first, second = add(tracker, FakeBatch([2])), add(tracker, FakeBatch([3]))
    tracker.settle([item(second, 0)])
    assert tracker.position == at(1)
    tracker.settle([item(first, 0)])
    assert tracker.position == at(3)


def test_settling_twice_has_no_effect(budget: Budget, add: Callable[..., Chunk]) -> None:
    tracker = PositionTracker(budget, at(1))
    chunk = add(tracker, FakeBatch([2, 3]))
    tracker.settle([item(chunk, 0), item(chunk, 0)])
    assert tracker.position == at(2)
    assert tracker.unsettled == 1
    assert tracker.settled_events == 1


def test_markers_move_an_idle_position_and_do_not_pile_up(budget: Budget, add: Callable[..., Chunk]) -> None:
    tracker = PositionTracker(budget, at(1))
    tracker.add(Marker(at(2)))
    assert tracker.position == at(2)
    chunk = add(tracker, FakeBatch([3]))
    for time in range(4, 100):
        tracker.add(Marker(at(time)))
    assert tracker.position == at(2), "a marker waits for the events before it"
    tracker.settle([item(chunk, 0)])
    assert tracker.position == at(99)
    assert tracker.event_position == at(3)
    assert budget.events == 0


def test_events_of_a_sweep_do_not_move_the_position(budget: Budget, add: Callable[..., Chunk]) -> None:
    class Swept(FakeBatch):
        def position(self, index: int) -> Position | None:  # type: ignore[override]  # noqa: ARG002
            return None

    pending = Position(cluster_time="5.1", backlog="Pending")
    tracker = PositionTracker(budget, pending)
    swept = Swept([1, 2])
    swept.end = None  # type: ignore[assignment]
    chunk = add(tracker, swept)
    tracker.settle([item(chunk, 0)])
    assert tracker.position == pending
    tracker.settle([item(chunk, 1)])
    assert tracker.position == pending
    tracker.add(Marker(Position(cluster_time="5.1")))
    assert tracker.position == Position(cluster_time="5.1")


def test_the_budget_gets_back_what_is_settled(budget: Budget, add: Callable[..., Chunk]) -> None:
    tracker = PositionTracker(budget)
    chunk = add(tracker, FakeBatch([1, 2], size=400))
    tracker.settle([item(chunk, 0)])
    assert (budget.bytes, budget.events) == (400, 2)
    tracker.settle([item(chunk, 1)])
    assert (budget.bytes, budget.events) == (0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_in_any_order_of_settlement_the_position_is_the_settled_prefix(
    seed: int, budget: Budget, add: Callable[..., Chunk]
) -> None:
    draw = random.Random(seed)
    tracker = PositionTracker(budget, at(0))
    open_items: list[tuple[int, Item]] = []
    settled: set[int] = set()
    time = 0
    for _ in range(200):
        if draw.random() < 0.4:
            times = list(range(time + 1, time + 1 + draw.randint(1, 5)))
            time = times[-1]
            chunk = add(tracker, FakeBatch(times, size=0))
            open_items += [(t, item(chunk, index)) for index, t in enumerate(times)]
        elif open_items:
            which, chosen = open_items.pop(draw.randrange(len(open_items)))
            tracker.settle([chosen])
            settled.add(which)
        prefix = 0
        while prefix + 1 in settled:
            prefix += 1
        assert tracker.position == at(prefix)
