"""The numbers of a report, and the gauges that say the same to Prometheus."""

from collections.abc import Callable
from datetime import UTC, datetime

from outbox_api.report import Report
from outbox_relay.observe.lag import Lag
from outbox_relay.observe.metrics import Metrics
from outbox_relay.source.pending import PendingCount
from outbox_relay.term import Term


class Numbers:
    """Reads them off the term that is led now."""

    def __init__(
        self,
        identity: str,
        term: Callable[[], Term | None],
        lag: Lag,
        pending: PendingCount,
        missing: Callable[[], bool],
    ) -> None:
        """Prepare it.

        Args:
            identity: name of this process, as the leader.
            term: returns the term that is led now.
            lag: how far behind the relay is.
            pending: how much is unpublished.
            missing: says whether the checkpoint was found missing.
        """
        self._identity = identity
        self._term = term
        self._lag = lag
        self._pending = pending
        self._missing = missing

    def report(self) -> Report:
        """Return a report of the numbers; what the relay is at is not its matter."""
        term = self._term()
        line = term.line if term is not None else None
        lag = self._lag.seconds()
        position = line.tracker.event_position if line is not None else None
        published = line.last_published if line is not None else None
        return Report(
            state="Starting",
            reason="Starting",
            message="",
            time="",
            leader=self._identity if term is not None else None,
            epoch=term.epoch if term is not None else None,
            position=position and position.cluster_time,
            last_published_time=published and _text(published),
            lag_milliseconds=None if lag is None else round(lag * 1000),
            pending=self._pending.value,
            checkpoint_missing=self._missing(),
        )

    def offer(self, metrics: Metrics) -> None:
        """Offer the gauges."""
        metrics.gauge("outbox_relay_leader", "1 while this process leads its shard.", self._leads)
        metrics.gauge(
            "outbox_relay_lag_seconds", "Age of the oldest event that is committed and not settled.", self._lag.seconds
        )
        metrics.gauge(
            "outbox_relay_oldest_unsent_age_seconds",
            "Age of the oldest event that is read and not settled; absent when there is none.",
            self._lag.oldest_unsent,
        )
        metrics.gauge(
            "outbox_relay_pending_events",
            "Unpublished events in the outbox, counted at most every 30 seconds and up to 100,000.",
            lambda: self._pending.value,
        )
        metrics.gauge(
            "outbox_relay_in_flight_bytes", "Bytes of events that are read and not settled.", self._in_flight_bytes
        )
        metrics.gauge(
            "outbox_relay_position_age_seconds", "Time since the position was last written.", self._position_age
        )

    def _leads(self) -> float:
        return 0.0 if self._term() is None else 1.0

    def _in_flight_bytes(self) -> float | None:
        term = self._term()
        return None if term is None or term.line is None else float(term.line.budget.bytes)

    def _position_age(self) -> float | None:
        term = self._term()
        return None if term is None else term.position_age


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
