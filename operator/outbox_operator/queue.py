"""Which key is worked on next: a queue that holds each key once.

The rules are those of client-go's work queues: a key added twice waits once; a key in work is not handed out again, but
remembers that it was added meanwhile and comes back when its work is done; a failed key comes back after a back-off.

Time and randomness are handed in, and nothing here waits: `outbox_operator.dispatch` does.
"""

import heapq
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Backoff:
    """How long a failed key waits.

    Attributes:
        initial: seconds after the first failure.
        cap: the most seconds, jitter included.
        factor: each further failure multiplies the wait by this.
    """

    initial: float = 0.5
    cap: float = 300.0
    factor: float = 2.0

    def delay(self, failures: int, jitter: float) -> float:
        """Seconds to wait.

        Args:
            failures: how often in a row the key failed, at least 1.
            jitter: a number of [0, 1): the wait is between half of the full one and all of it, so that keys which
                failed together do not come back together.
        """
        # The exponent is bounded so that a year of failures does not overflow a float.
        full = min(self.cap, self.initial * self.factor ** min(failures - 1, 64))
        return full * (0.5 + 0.5 * jitter)


@dataclass(frozen=True)
class Taken(Generic[K]):
    """A key handed out.

    Attributes:
        key: the key.
        waited: seconds between the moment it was due and now.
    """

    key: K
    waited: float


class KeyedQueue(Generic[K]):
    """Deduplicating queue, one in flight a key."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        jitter: Callable[[], float],
        backoff: Backoff | None = None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """An empty queue.

        Args:
            clock: seconds, monotonic.
            jitter: a number of [0, 1) at each call.
            backoff: how long failed keys wait.
            wake: called whenever a key may have become ready or due earlier than before.
        """
        self._clock = clock
        self._jitter = jitter
        self._backoff = backoff or Backoff()
        self.wake = wake
        self._ready: deque[K] = deque()
        self._ready_since: dict[K, float] = {}
        self._due: dict[K, float] = {}
        self._timers: list[tuple[float, int, K]] = []
        self._sequence = 0  # orders equal times, so that keys themselves are never compared
        self._working: dict[K, bool] = {}  # key in flight → added meanwhile
        self._failures: dict[K, int] = {}

    def __len__(self) -> int:
        """How many keys are ready to be taken."""
        self._promote()
        return len(self._ready)

    @property
    def in_flight(self) -> int:
        """How many keys are taken and not done."""
        return len(self._working)

    @property
    def failing(self) -> int:
        """How many keys failed at their last try."""
        return len(self._failures)

    @property
    def oldest(self) -> float:
        """Seconds that the longest waiting ready key has waited; 0 when none waits."""
        self._promote()
        return self._clock() - self._ready_since[self._ready[0]] if self._ready else 0.0

    def failures(self, key: K) -> int:
        """How often in a row the key failed."""
        return self._failures.get(key, 0)

    def add(self, key: K) -> None:
        """Have the key worked on as soon as possible; while it is in work, once more when that is done."""
        if key in self._working:
            self._working[key] = True
        elif key not in self._ready_since:
            self._make_ready(key, self._clock())
            self.wake()

    def add_after(self, key: K, seconds: float) -> None:
        """Have the key worked on in that time, unless it is earlier anyway: the earliest of several times holds."""
        due = self._clock() + seconds
        if key in self._ready_since or self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._sequence += 1
        heapq.heappush(self._timers, (due, self._sequence, key))
        self.wake()

    def take(self) -> Taken[K] | None:
        """The next ready key, now in flight; None when none is ready."""
        self._promote()
        if not self._ready:
            return None
        key = self._ready.popleft()
        waited = self._clock() - self._ready_since.pop(key)
        self._due.pop(key, None)
        self._working[key] = False
        return Taken(key, waited)

    def done(self, key: K) -> None:
        """The key's work succeeded: failures are forgotten; if it was added meanwhile, it is ready again."""
        self._failures.pop(key, None)
        if self._working.pop(key):
            self._make_ready(key, self._clock())
            self.wake()

    def retry(self, key: K, *, at_least: float = 0.0) -> float:
        """The key's work failed: it comes back after the back-off, or at once if it was added meanwhile.

        Args:
            key: a key in flight.
            at_least: seconds that the back-off has in any case.

        Returns:
            The seconds of the back-off.
        """
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(at_least, self._backoff.delay(failures, self._jitter()))
        if self._working.pop(key):
            self._make_ready(key, self._clock())
            self.wake()
        else:
            self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Drop what is known of a key that is not in flight: its object is gone."""
        self._failures.pop(key, None)
        self._due.pop(key, None)

    def next_due(self) -> float | None:
        """Seconds until the next waiting key is ready (0 if one is); None when none waits."""
        self._promote()
        if self._ready:
            return 0.0
        return max(0.0, self._timers[0][0] - self._clock()) if self._timers else None

    def _make_ready(self, key: K, since: float) -> None:
        self._ready.append(key)
        self._ready_since[key] = since

    def _promote(self) -> None:
        """Move the keys whose time has come to the ready ones, and drop timers that no longer hold."""
        now = self._clock()
        while self._timers:
            due, _, key = self._timers[0]
            holds = self._due.get(key) == due
            if holds and due > now:
                return
            heapq.heappop(self._timers)
            if not holds:
                continue
            del self._due[key]
            if key in self._working:
                self._working[key] = True
            elif key not in self._ready_since:
                self._make_ready(key, due)
