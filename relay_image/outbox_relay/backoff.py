"""Pauses between attempts: doubling, with jitter, up to a cap."""

import random
from collections.abc import Callable

from outbox_api.quantities import parse_duration
from outbox_api.spec.failure import Backoff as BackoffSpec


class Backoff:
    """The pause before the next attempt, in seconds.

    Each pause is drawn between half and all of the nominal one, so that relays that failed together do not
    return together.
    """

    def __init__(self, initial: float, maximum: float, draw: Callable[[], float] = random.random) -> None:
        self._initial = initial
        self._maximum = maximum
        self._draw = draw
        self._failures = 0

    @classmethod
    def from_spec(cls, spec: BackoffSpec) -> "Backoff":
        """Return the back-off that `spec.failure.backoff` asks for."""
        return cls(parse_duration(spec.initial).total_seconds(), parse_duration(spec.max).total_seconds())

    def next(self) -> float:
        """Count one more failure and return the pause that follows it."""
        # The exponent is bounded: after some hours of failures 2**n would no longer be a float.
        nominal = min(self._maximum, self._initial * 2.0 ** min(self._failures, 60))
        self._failures += 1
        return nominal * (0.5 + 0.5 * self._draw())

    def reset(self) -> None:
        """Forget the failures, after a success."""
        self._failures = 0
