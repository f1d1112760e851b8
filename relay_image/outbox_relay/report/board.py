"""The board on which each part of a relay says what it is at, and what is wrong with it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from outbox_api.reasons import RelayReason
from outbox_api.report import State
from outbox_relay.problems import Problem


class Part(StrEnum):
    """The parts that can be in trouble, the most telling first."""

    STALL = "stall"
    CHECKPOINT = "checkpoint"
    STREAM = "stream"
    SWEEP = "sweep"
    MARKS = "marks"
    CLOCK = "clock"
    SINK = "sink"
    TOPIC = "topic"


@dataclass(frozen=True)
class Standing:
    """What the relay is at.

    Attributes:
        since: monotonic time at which it came to be so.
    """

    state: State
    reason: RelayReason
    message: str
    since: float


class Board:
    """Gathers troubles and activity; `changed` is set whenever the standing may be another."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._troubles: dict[Part, tuple[Problem, float]] = {}
        self._activity = Standing("Starting", RelayReason.STARTING, "starting", clock())
        self.last_error: tuple[Problem, float] | None = None
        self.changed = asyncio.Event()

    def activity(self, state: State, reason: RelayReason, message: str) -> None:
        """Say what the relay is at when nothing is wrong."""
        if (state, reason, message) != (self._activity.state, self._activity.reason, self._activity.message):
            self._activity = Standing(state, reason, message, self._clock())
            self.changed.set()

    def trouble(self, part: Part, problem: Problem) -> None:
        """Say what is wrong with a part, until `clear`."""
        known = self._troubles.get(part)
        # The same reason again is the same trouble, though numbers in its text may differ.
        since = known[1] if known and known[0].reason == problem.reason else self._clock()
        self._troubles[part] = (problem, since)
        self.last_error = (problem, time.time())
        if known is None or known[0] != problem:
            self.changed.set()

    def clear(self, part: Part) -> None:
        """Say that nothing is wrong with a part."""
        if self._troubles and self._troubles.pop(part, None) is not None:
            self.changed.set()

    def clear_all(self) -> None:
        """Forget all troubles: a new term begins."""
        self._troubles.clear()
        self.changed.set()

    @property
    def standing(self) -> Standing:
        """The relay as it stands: its worst trouble, or what it is at."""
        for part in Part:
            if part in self._troubles:
                problem, since = self._troubles[part]
                state: State = "Stalled" if part is Part.STALL else "Retrying"
                return Standing(state, problem.reason, problem.message, since)
        return self._activity
