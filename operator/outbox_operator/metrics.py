"""The operator's own metrics."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from outbox_operator.hearing import Hearing
from outbox_operator.keys import Key
from outbox_operator.queue import KeyedQueue

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """All metrics, in a registry of their own.

    Attributes:
        registry: what `/metrics` shows.
        reconciles: finished reconciliations by result: `settled`, `retry`, `gone`, `error`.
        seconds: how long they took.
        waited: how long keys waited in the queue.
        leader: 1 while this process leads.
    """

    def __init__(self) -> None:
        """Everything at zero."""
        self.registry = CollectorRegistry()
        self.reconciles = Counter(
            "outbox_operator_reconciles", "Finished reconciliations.", ["result"], registry=self.registry
        )
        self.seconds = Histogram(
            "outbox_operator_reconcile_seconds",
            "Duration of reconciliations.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.waited = Histogram(
            "outbox_operator_queue_wait_seconds",
            "Time between a key being due and its work.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.leader = Gauge("outbox_operator_leader", "1 while this process leads.", registry=self.registry)
        self._requests = Counter(
            "outbox_operator_kube_requests",
            "Requests to the API server; status 0 is no answer.",
            ["verb", "resource", "status"],
            registry=self.registry,
        )
        self._request_seconds = Histogram(
            "outbox_operator_kube_request_seconds",
            "Duration of requests to the API server.",
            ["verb"],
            buckets=_SECONDS,
            registry=self.registry,
        )

    def observe_request(self, verb: str, plural: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(verb, plural, str(status)).inc()
        self._request_seconds.labels(verb).observe(seconds)

    def observe_hearing(self, hearing: Hearing) -> None:
        """Show what the watch owes whenever it is asked for."""
        Gauge(
            "outbox_operator_watch_overdue_seconds",
            "How long the watch has not told of a change that the server has; 0 when it owes none.",
            registry=self.registry,
        ).set_function(lambda: hearing.overdue)

    def observe_queue(self, queue: KeyedQueue[Key]) -> None:
        """Show the queue's state whenever it is asked for."""
        for name, text, read in (
            ("depth", "Keys that are due.", lambda: float(len(queue))),
            ("in_flight", "Keys in work.", lambda: float(queue.in_flight)),
            ("failing", "Keys whose last try failed.", lambda: float(queue.failing)),
            ("oldest_seconds", "How long the longest waiting due key has waited.", lambda: queue.oldest),
        ):
            Gauge(f"outbox_operator_queue_{name}", text, registry=self.registry).set_function(read)
