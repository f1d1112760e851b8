"""Until when this process may send, by its own monotonic clock.

Another process may take the Lease once it has not changed for the Lease's duration. The deadline ends earlier
and needs no common clock: it counts from the moment before the last successful renewal was asked for.
"""

import time
from collections.abc import Callable

from outbox_relay.problems import LeadershipLostError

Clock = Callable[[], float]
"""Seconds of a clock that never jumps."""


class Deadline:
    """A point in monotonic time that renewals push on; once revoked or passed it stays passed."""

    def __init__(self, until: float, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._until = until
        self._over = False

    @classmethod
    def never(cls) -> "Deadline":
        """Return a deadline that does not come by itself, for a relay without election."""
        return cls(float("inf"))

    def extend(self, until: float) -> None:
        """Push the deadline on to `until`; never back, and never after it has passed."""
        if not self.passed:
            self._until = max(self._until, until)

    def revoke(self) -> None:
        """End it now."""
        self._over = True

    @property
    def passed(self) -> bool:
        """Whether it is over. A deadline that was passed once cannot be extended again."""
        if not self._over and self._clock() >= self._until:
            self._over = True
        return self._over

    @property
    def remaining(self) -> float:
        """Seconds left, 0 when passed."""
        return 0.0 if self.passed else self._until - self._clock()

    def check(self) -> None:
        """Let pass while the deadline has not come.

        Raises:
            LeadershipLostError: it has.
        """
        if self.passed:
            raise LeadershipLostError("the time for which this process may send is over")
