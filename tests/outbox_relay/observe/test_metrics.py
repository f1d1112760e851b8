"""What a scrape gets."""

from prometheus_client.exposition import generate_latest

from outbox_relay.observe.endpoints import Endpoints
from outbox_relay.observe.metrics import Metrics


def scrape(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def test_the_latency_histogram_counts_many_events_at_once() -> None:
    metrics = Metrics()
    metrics.latency.observe(0.003, 10)
    metrics.latency.observe(0.05, 5)
    metrics.latency.observe(1_000, 1)
    text = scrape(metrics)
    assert 'outbox_relay_commit_to_ack_seconds_bucket{le="0.0025"} 0.0' in text
    assert 'outbox_relay_commit_to_ack_seconds_bucket{le="0.005"} 10.0' in text
    assert 'outbox_relay_commit_to_ack_seconds_bucket{le="0.05"} 15.0' in text
    assert 'outbox_relay_commit_to_ack_seconds_bucket{le="300.0"} 15.0' in text
    assert "outbox_relay_commit_to_ack_seconds_count 16.0" in text


def test_a_gauge_that_is_not_known_is_absent() -> None:
    metrics = Metrics()
    known: list[float] = []
    metrics.gauge("outbox_relay_lag_seconds", "Lag.", lambda: known[0] if known else None)
    assert "outbox_relay_lag_seconds" not in scrape(metrics)
    known.append(0.25)
    assert "outbox_relay_lag_seconds 0.25" in scrape(metrics)


def test_readiness_says_what_is_missing() -> None:
    missing: list[str] = ["source: not asked yet"]
    endpoints = Endpoints(Metrics().registry, lambda: missing[0] if missing else None)
    page = endpoints.page("/readyz")
    assert (page.status, page.body) == (503, b"source: not asked yet\n")
    missing.clear()
    assert endpoints.page("/readyz").status == 200
    assert endpoints.page("/livez").status == 200
    assert endpoints.page("/").status == 404
