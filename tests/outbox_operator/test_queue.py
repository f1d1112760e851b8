"""The keyed queue, with a driven clock."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox_operator.queue import Backoff, KeyedQueue

from .clock import Clock


@pytest.fixture
def queue(clock: Clock) -> KeyedQueue[str]:
    return KeyedQueue(clock=clock, jitter=lambda: 1.0)


def take(queue: KeyedQueue[str]) -> str | None:
    taken = queue.take()
    return taken.key if taken else None


def test_a_key_added_twice_is_worked_on_once(queue: KeyedQueue[str]) -> None:
    queue.add("a")
    queue.add("a")
    assert (take(queue), take(queue)) == ("a", None)


def test_keys_come_in_the_order_they_became_ready(queue: KeyedQueue[str], clock: Clock) -> None:
    queue.add_after("late", 2)
    queue.add_after("soon", 1)
    queue.add("now")
    clock.now += 5
    assert [take(queue) for _ in range(4)] == ["now", "soon", "late", None]


def test_a_key_in_work_is_not_handed_out_again_and_comes_back_when_it_was_added_meanwhile(
    queue: KeyedQueue[str],
) -> None:
    queue.add("a")
    take(queue)
    queue.add("a")
    assert take(queue) is None
    queue.done("a")
    assert take(queue) == "a"
    queue.done("a")
    assert take(queue) is None


def test_a_timer_that_fires_while_the_key_is_in_work_brings_it_back(queue: KeyedQueue[str], clock: Clock) -> None:
    queue.add("a")
    take(queue)
    queue.add_after("a", 1)
    clock.now += 2
    assert take(queue) is None
    queue.done("a")
    assert take(queue) == "a"


def test_a_delayed_key_is_ready_when_due_and_not_before(queue: KeyedQueue[str], clock: Clock) -> None:
    queue.add_after("a", 10)
    clock.now += 9.9
    assert take(queue) is None
    assert queue.next_due() == pytest.approx(0.1)
    clock.now += 0.1
    assert take(queue) == "a"


def test_the_earliest_of_several_delays_holds(queue: KeyedQueue[str], clock: Clock) -> None:
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    clock.now += 5
    assert take(queue) == "a"
    queue.done("a")
    clock.now += 100
    assert take(queue) is None


def test_adding_a_delayed_key_makes_it_ready_at_once_and_only_once(queue: KeyedQueue[str], clock: Clock) -> None:
    queue.add_after("a", 10)
    queue.add("a")
    assert take(queue) == "a"
    queue.done("a")
    clock.now += 100
    assert take(queue) is None


def test_failures_back_off_to_the_cap_and_success_forgets_them(queue: KeyedQueue[str], clock: Clock) -> None:
    delays = []
    for _ in range(12):
        queue.add("a")
        take(queue)
        delays.append(queue.retry("a"))
        clock.now += delays[-1]
    assert delays[:4] == [0.5, 1.0, 2.0, 4.0]
    assert delays[-1] == 300.0
    assert queue.failing == 1
    assert take(queue) == "a"
    queue.done("a")
    assert queue.failures("a") == 0


def test_a_failed_key_that_was_added_meanwhile_does_not_wait(queue: KeyedQueue[str]) -> None:
    queue.add("a")
    take(queue)
    queue.add("a")
    queue.retry("a")
    assert take(queue) == "a"
    assert queue.failures("a") == 1


def test_forgotten_keys_leave_nothing_behind(queue: KeyedQueue[str], clock: Clock) -> None:
    queue.add("a")
    take(queue)
    queue.retry("a")
    queue.forget("a")
    clock.now += 1000
    assert take(queue) is None
    assert (queue.failing, queue.next_due(), len(queue)) == (0, None, 0)


@given(failures=st.integers(1, 10_000), jitter=st.floats(0, 1, exclude_max=True))
def test_every_delay_is_between_half_and_all_of_the_full_one_and_below_the_cap(failures: int, jitter: float) -> None:
    backoff = Backoff()
    full = min(300.0, 0.5 * 2 ** min(failures - 1, 64))
    assert full / 2 <= backoff.delay(failures, jitter) <= full


def test_the_oldest_waiting_key_tells_its_age(queue: KeyedQueue[str], clock: Clock) -> None:
    assert queue.oldest == 0
    queue.add("a")
    clock.now += 3
    queue.add("b")
    assert (queue.oldest, len(queue)) == (3, 2)
    taken = queue.take()
    assert taken is not None
    assert taken.waited == 3


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "later", "take", "done", "retry", "tick"]), st.sampled_from("abc")),
        max_size=60,
    )
)
def test_no_key_is_ever_in_flight_twice_and_none_that_was_added_is_lost(steps: list[tuple[str, str]]) -> None:
    clock = Clock()
    queue: KeyedQueue[str] = KeyedQueue(clock=clock, jitter=lambda: 0.5)
    flying: set[str] = set()
    owed: Counter[str] = Counter()
    for what, key in steps:
        if what == "add":
            queue.add(key)
            owed[key] = 1
        elif what == "later":
            queue.add_after(key, 3)
            owed[key] = 1
        elif what == "take" and (taken := take(queue)) is not None:
            assert taken not in flying
            flying.add(taken)
            owed[taken] = 0
        elif what == "done" and key in flying:
            flying.remove(key)
            queue.done(key)
        elif what == "retry" and key in flying:
            flying.remove(key)
            queue.retry(key)
            owed[key] = 1
        elif what == "tick":
            clock.now += 1
    for key in flying:
        queue.done(key)
    clock.now += 1000
    seen = set()
    while (left := take(queue)) is not None:
        seen.add(left)
    assert {key for key, n in owed.items() if n} <= seen
