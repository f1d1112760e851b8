"""Handing keys to workers, and what a worker makes of failures."""

import asyncio
import time
from dataclasses import dataclass, field

import pytest

from outbox_operator.apply import NamespaceGoneError
from outbox_operator.dispatch import Dispatcher
from outbox_operator.hearing import Hearing
from outbox_operator.inbox import Inbox
from outbox_operator.keys import Key
from outbox_operator.kube.errors import ApiError, UnreachableError
from outbox_operator.leading import NotLeaderError
from outbox_operator.metrics import Metrics
from outbox_operator.queue import KeyedQueue
from outbox_operator.reconcile import Reconciler, Result
from outbox_operator.work import Worker

A, B = Key("shop", "a"), Key("shop", "b")


@pytest.fixture
def queue() -> KeyedQueue[Key]:
    return KeyedQueue(clock=time.monotonic, jitter=lambda: 0.5)


async def test_no_more_keys_than_allowed_are_in_work_at_once(queue: KeyedQueue[Key]) -> None:
    running, most, done = 0, 0, asyncio.Event()

    async def work(key: Key, _: float) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        queue.done(key)
        if key.name == "9":
            done.set()

    dispatcher = Dispatcher(queue, work, concurrency=3)
    for number in range(10):
        queue.add(Key("shop", str(number)))
    async with asyncio.timeout(5):
        running_task = asyncio.create_task(dispatcher.run())
        await done.wait()
    running_task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running_task
    assert most == 3


async def test_a_key_that_is_added_later_or_becomes_due_wakes_the_dispatcher(queue: KeyedQueue[Key]) -> None:
    worked: asyncio.Queue[Key] = asyncio.Queue()

    async def work(key: Key, _: float) -> None:
        queue.done(key)
        worked.put_nowait(key)

    async with asyncio.timeout(5):
        running = asyncio.create_task(Dispatcher(queue, work, concurrency=1).run())
        await asyncio.sleep(0)
        queue.add_after(B, 0.05)
        queue.add(A)
        assert [await worked.get(), await worked.get()] == [A, B]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@dataclass
class Script:
    """A reconciler that does what it is told."""

    outcomes: list[Result | BaseException]
    keys: list[Key] = field(default_factory=list)

    async def reconcile(self, key: Key) -> Result:
        self.keys.append(key)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


class Bench:
    """A worker with a driven clock."""

    def __init__(self, *outcomes: Result | BaseException) -> None:
        self.now = 0.0
        self.metrics = Metrics()
        self.queue: KeyedQueue[Key] = KeyedQueue(clock=lambda: self.now, jitter=lambda: 0.5)
        script = Script(list(outcomes))
        self.script = script

        class Scripted(Reconciler):
            def __init__(self) -> None: ...

            async def reconcile(self, key: Key) -> Result:
                return await script.reconcile(key)

        self.worker = Worker(
            Scripted(),
            self.queue,
            Inbox(self.queue, Hearing(clock=lambda: 0.0)),
            self.metrics,
            resync=600,
            jitter=lambda: 0.5,
        )

    async def work(self, key: Key = A) -> None:
        self.queue.add(key)
        taken = self.queue.take()
        assert taken is not None
        await self.worker.work(taken.key, taken.waited)

    def count(self, result: str) -> float | None:
        return self.metrics.registry.get_sample_value("outbox_operator_reconciles_total", {"result": result})


async def test_a_settled_key_comes_back_after_the_resync_time() -> None:
    bench = Bench(Result(exists=True))
    await bench.work()
    assert bench.queue.next_due() == 600
    assert bench.count("settled") == 1
    assert bench.worker.longest == 0


@pytest.mark.parametrize("jitter", [0.0, 0.999])
async def test_the_resync_time_is_spread_by_a_fifth(jitter: float) -> None:
    bench = Bench(Result(exists=True))
    bench.worker._jitter = lambda: jitter
    await bench.work()
    due = bench.queue.next_due()
    assert due is not None
    assert 480 <= due <= 720


async def test_a_key_that_is_gone_is_forgotten() -> None:
    bench = Bench(Result(exists=False))
    await bench.work()
    assert bench.queue.next_due() is None
    assert bench.count("gone") == 1


async def test_the_relays_concerned_are_looked_at() -> None:
    bench = Bench(Result(exists=True, others=frozenset({B})))
    await bench.work()
    taken = bench.queue.take()
    assert taken is not None
    assert taken.key == B


async def test_what_is_not_settled_is_tried_again_later_and_later() -> None:
    bench = Bench(*[Result(exists=True, settled=False)] * 3)
    delays = []
    for _ in range(3):
        await bench.work()
        delays.append(bench.queue.next_due())
    assert delays == [0.375, 0.75, 1.5]
    assert bench.count("retry") == 3


@pytest.mark.parametrize(
    "error",
    [
        UnreachableError("no answer"),
        ApiError("get x", status=500),
        TimeoutError(),
        # A defect that one resource meets.
        ZeroDivisionError(),
    ],
)
async def test_a_failure_backs_off_and_stops_nobody_else(error: Exception) -> None:
    bench = Bench(error, Result(exists=True))
    await bench.work()
    assert bench.queue.next_due() == 0.375
    assert bench.count("error") == 1
    await bench.work(B)
    assert bench.count("settled") == 1


async def test_the_servers_wish_to_be_left_alone_is_respected() -> None:
    bench = Bench(ApiError("get x", status=429, retry_after=30))
    await bench.work()
    assert bench.queue.next_due() == 30


@pytest.mark.parametrize("end", [NamespaceGoneError("going"), NotLeaderError("lost")])
async def test_what_no_try_can_mend_is_not_tried_again(end: Exception) -> None:
    bench = Bench(end)
    await bench.work()
    assert bench.queue.next_due() is None
