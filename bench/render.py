"""Speed of decode + route + encode on one core, without MongoDB or Kafka: `python bench/render.py`.

CPU time, not wall time, so that a busy machine changes little. The events are those of the order service, about
330 bytes as stored, with a million different aggregates at most in the key's hash.
"""

import argparse
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

import bson
from bson import ObjectId

from outbox_api.spec import OutboxRelaySpec
from outbox_relay.events import CODEC, Record, decode
from outbox_relay.render import Renderer
from outbox_relay.routing.sendable import placement, sendable

SPEC = {
    "source": {"uriSecretRef": {"name": "m", "key": "uri"}, "database": "shop", "collection": "outbox"},
    "sink": {"bootstrapServers": ["127.0.0.1:9092"]},
}


def events(count: int, aggregates: int) -> list[bytes]:
    return [
        bson.encode(
            {
                "_id": ObjectId(),
                "aggregate": "Order",
                "aggregate_id": f"order-{number % aggregates:06d}",
                "event_type": "OrderPlaced",
                "version": 1 + number // aggregates,
                "occurred_at": datetime.now(UTC),
                "published_at": None,
                "payload": {
                    "order_id": f"order-{number % aggregates:06d}",
                    "customer": "customer-4711",
                    "total": 1999,
                    "currency": "EUR",
                    "note": "x" * 80,
                },
            }
        )
        for number in range(count)
    ]


def seconds(work: Callable[[bytes], object], documents: list[bytes], rounds: int) -> float:
    """Return the CPU seconds of the fastest of some rounds over all documents."""
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        for document in documents:
            work(document)
        best = min(best, time.process_time() - started)
    return best


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--events", type=int, default=50_000)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()

    renderer = Renderer.from_spec(OutboxRelaySpec.model_validate(SPEC))
    documents = events(options.events, 500)
    projected = [
        bson.encode({name: value for name, value in bson.decode(raw, CODEC).items() if name in renderer.fields})
        for raw in documents
    ]
    now = time.time_ns() // 1_000_000

    def all_of_it(raw: bytes) -> None:
        record = renderer.render(raw)
        assert isinstance(record, Record)
        sent = sendable(record, now)
        assert isinstance(sent, Record)
        placement(sent, 12)

    measured = {
        "decode_events_per_s": seconds(decode, documents, options.rounds),
        "render_events_per_s": seconds(renderer.render, documents, options.rounds),
        "render_and_place_events_per_s": seconds(all_of_it, documents, options.rounds),
        "decode_projected_events_per_s": seconds(decode, projected, options.rounds),
        "render_projected_events_per_s": seconds(renderer.render, projected, options.rounds),
    }
    figures = {name: round(options.events / spent) for name, spent in measured.items()}
    print(json.dumps({"event_bytes": len(documents[0]), "projected_bytes": len(projected[0])} | figures, indent=2))


if __name__ == "__main__":
    main()
