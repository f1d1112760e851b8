"""Several writers that share the work: each takes the next transaction until all are done or the service stops."""

import random
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from order_service.journal import Journal
from order_service.orders import ChangeOfMindError, Orders


@dataclass(frozen=True)
class Plan:
    """What is to be written.

    Attributes:
        transactions: how many to commit; None means until stopped.
        writers: threads.
        aggregates: different orders.
        events: least and most events of a transaction.
        aborts: share of transactions that are aborted on purpose, 0 to 1.
        rate: transactions a second at most; None means as many as go.
        seed: of the choice of orders and numbers of events.
    """

    transactions: int | None
    writers: int
    aggregates: int
    events: tuple[int, int]
    aborts: float
    rate: float | None
    seed: int


@dataclass
class Progress:
    """Counts so far; read them at any time."""

    transactions: int = 0
    events: int = 0
    aborted: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def committed(self, events: int) -> None:
        with self.lock:
            self.transactions += 1
            self.events += events

    def was_aborted(self) -> None:
        with self.lock:
            self.aborted += 1


class Tickets:
    """Hands out transactions one by one, not faster than the rate."""

    def __init__(self, plan: Plan, stop: threading.Event) -> None:
        self._left = plan.transactions
        self._interval = 0.0 if plan.rate is None else 1 / plan.rate
        self._next = time.monotonic()
        self._stop = stop
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Wait for the next turn; return False when there is nothing left to do."""
        with self._lock:
            if self._left == 0:
                return False
            if self._left is not None:
                self._left -= 1
            turn = max(self._next, time.monotonic())
            self._next = turn + self._interval
        return not self._stop.wait(max(0.0, turn - time.monotonic())) and not self._stop.is_set()

    def give_back(self) -> None:
        """Return the turn of a transaction that was aborted, so that another is run in its place."""
        with self._lock:
            if self._left is not None:
                self._left += 1


def write(orders: Orders, plan: Plan, progress: Progress, stop: threading.Event, journal: Journal | None) -> None:
    """Carry out the plan; return when it is done, when `stop` is set, or with the first error of a writer."""
    tickets = Tickets(plan, stop)

    def work(number: int) -> None:
        choose = random.Random(f"{plan.seed}-{number}")
        while tickets.take():
            order_id = f"order-{choose.randrange(plan.aggregates):06d}"
            abort = choose.random() < plan.aborts
            try:
                written = orders.advance(order_id, choose.randint(*plan.events), abort=abort)
            except ChangeOfMindError as change:
                tickets.give_back()
                progress.was_aborted()
                if journal is not None:
                    journal.write("aborted", change.written)
            else:
                progress.committed(len(written))
                if journal is not None:
                    journal.write("committed", written)

    with ThreadPoolExecutor(plan.writers, thread_name_prefix="writer") as pool:
        running = [pool.submit(work, number) for number in range(plan.writers)]
        done, _ = wait(running, return_when=FIRST_EXCEPTION)
        stop.set()
        for writer in done:
            writer.result()
