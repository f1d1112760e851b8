"""The metrics of a relay. Names and meanings are a contract with dashboards and alert rules."""

from bisect import bisect_left
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

Reading = Callable[[], float | None]
"""Returns the value of a gauge now; None while it is unknown, and then the metric is absent, not zero."""

_LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class LatencyHistogram(Collector):
    """Time from an event's commit to its acknowledgement; takes many equal observations at once."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counts = [0] * (len(_LATENCY_BUCKETS) + 1)
        self._sum = 0.0
        registry.register(self)

    def observe(self, seconds: float, events: int) -> None:
        """Note that `events` events took so long."""
        self._counts[bisect_left(_LATENCY_BUCKETS, seconds)] += events
        self._sum += seconds * events

    def collect(self) -> Iterable[Metric]:
        """Return the histogram for a scrape."""
        total = 0
        buckets: list[tuple[str, float]] = []
        for bound, count in zip((*map(str, _LATENCY_BUCKETS), "+Inf"), self._counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        yield HistogramMetricFamily(
            "outbox_relay_commit_to_ack_seconds",
            "Time from the commit of an event to its acknowledgement by Kafka, by the server's clock.",
            buckets=buckets,
            sum_value=self._sum,
        )


class _Readings(Collector):
    """Gauges that are asked for their value when they are scraped."""

    def __init__(self) -> None:
        self.readings: dict[str, tuple[str, Reading]] = {}

    def collect(self) -> Iterable[Metric]:
        for name, (documentation, reading) in self.readings.items():
            value = reading()
            if value is not None:
                yield GaugeMetricFamily(name, documentation, value=value)


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter, which nobody reads
        self.registry = CollectorRegistry()
        self._readings = _Readings()
        self.registry.register(self._readings)
        self.latency = LatencyHistogram(self.registry)
        self.published = Counter(
            "outbox_relay_published", "Events that Kafka acknowledged.", ["topic"], registry=self.registry
        )
        self.failed = Counter(
            "outbox_relay_failed", "Events that became no record.", ["topic", "reason"], registry=self.registry
        )
        self.skipped = Counter(
            "outbox_relay_repeats_skipped", "Events that were marked as published already.", registry=self.registry
        )
        self.rebuilds = Counter(
            "outbox_relay_producer_rebuilds", "Times the Kafka producer was built anew.", registry=self.registry
        )

    def gauge(self, name: str, documentation: str, reading: Reading) -> None:
        """Offer a gauge, in place of the one that had this name."""
        self._readings.readings[name] = (documentation, reading)
