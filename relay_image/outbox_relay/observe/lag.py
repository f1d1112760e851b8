"""How far behind the relay is, by the server's clock alone."""

import time
from collections.abc import Callable

from outbox_api.checkpoint import ClusterTime, Position
from outbox_relay.pipeline.tracker import PositionTracker
from outbox_relay.source.server_time import ServerClock

_FRESH_SECONDS = 5.0
"""A stream that was heard of so recently, with nothing unsettled, is not behind: it waits a second for events."""


class Lag:
    """The age of the oldest event that is committed and not settled; 0 when there is none."""

    def __init__(self, clock: ServerClock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._tracker: PositionTracker | None = None
        self._heard_at: float | None = None

    def follow(self, tracker: PositionTracker | None) -> None:
        """Tell the lag of what `tracker` follows, from the first batch on; None: unknown until the next call."""
        self._tracker = tracker
        self._heard_at = None

    def heard(self) -> None:
        """Note that the stream gave a batch, with or without events."""
        self._heard_at = self._monotonic()

    def seconds(self) -> float | None:
        """Return the lag, never negative; None until it is known."""
        now, tracker = self._clock.now(), self._tracker
        if now is None or tracker is None or self._heard_at is None:
            return None
        behind: float | None
        if tracker.unsettled:
            behind = tracker.oldest_commit or _seconds(tracker.position)
        elif self._monotonic() - self._heard_at <= _FRESH_SECONDS:
            return 0.0
        else:
            behind = _seconds(tracker.position)
        return None if behind is None else max(0.0, now - behind)

    def oldest_unsent(self) -> float | None:
        """Return the age of the oldest event that is read and not settled; None if there is none."""
        now, tracker = self._clock.now(), self._tracker
        if now is None or tracker is None or not tracker.unsettled:
            return None
        committed = tracker.oldest_commit
        return None if committed is None else max(0.0, now - committed)


def _seconds(position: Position | None) -> float | None:
    return None if position is None else float(ClusterTime.parse(position.cluster_time).seconds)
