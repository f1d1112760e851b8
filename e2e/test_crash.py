"""The relay is killed from the node, again and again, under load: nothing is lost and nothing changes places."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pymongo import MongoClient

from e2e.support import Shop, eventually
from outbox_dev.crash import kill_relay
from outbox_dev.delivery import Delivery, Verdict, committed_in
from outbox_dev.paths import repo_root

TRANSACTIONS, AGGREGATES, RATE = 20_000, 500, 180
KILLS, READABLE_BETWEEN_KILLS = 10, 500
TOPIC_SUFFIX = "Order"


def readable(shop: Shop) -> int:
    """How many records the topic holds."""
    return sum(asyncio.run(shop.kafka.end_offsets(f"{shop.namespace}.{TOPIC_SUFFIX}")).values())


def judge(shop: Shop) -> Verdict:
    delivery = Delivery()
    for record in asyncio.run(shop.kafka.read_all(f"{shop.namespace}.{TOPIC_SUFFIX}")):
        delivery.arrived(record)
    with MongoClient(shop.mongodb.uri) as client:
        delivery.committed(committed_in(client[shop.namespace]["outbox"]))
    return delivery.verdict()


@pytest.mark.timeout(1200)
def test_ten_kills_under_load_lose_nothing_and_keep_the_order(shop: Shop, tmp_path: Path) -> None:
    asyncio.run(shop.kafka.create_topic(f"{shop.namespace}.{TOPIC_SUFFIX}", 3))
    shop.apply(shop.relay(relay={"lease": {"duration": "5s", "renew": "2s"}}))
    shop.wait_ready()
    journal = tmp_path / "journal.jsonl"
    writer = subprocess.Popen(
        [
            *(sys.executable, "-m", "order_service", f"--database={shop.namespace}", f"--journal={journal}"),
            *(f"--transactions={TRANSACTIONS}", f"--aggregates={AGGREGATES}", f"--rate={RATE}"),
        ],
        env={**os.environ, "MONGODB_URI": shop.mongodb.uri, "PYTHONPATH": str(repo_root() / "examples")},
    )
    try:
        for _ in range(KILLS):
            before = readable(shop)
            eventually(lambda: readable(shop) >= before + READABLE_BETWEEN_KILLS, "500 newly readable events", 120)  # noqa: B023
            assert writer.poll() is None, "the writer ended before the last kill: lower RATE"
            pod = shop.names("pods", "--selector=outboxrelay.io/relay=orders")[0]
            kill_relay(shop.cluster, shop.namespace, pod.removeprefix("pod/"))
        assert writer.wait(timeout=600) == 0
    finally:
        writer.kill()
        writer.wait()
    shop.wait_ready()
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    committed = {event["id"] for event in events if event["outcome"] == "committed"}

    def all_settled() -> bool:
        with MongoClient(shop.mongodb.uri) as client:
            return client[shop.namespace]["outbox"].count_documents({"published_at": None}) == 0

    eventually(all_settled, "every event marked as published", 180)
    verdict = judge(shop)
    print(f"{TRANSACTIONS} transactions, {KILLS} kills: {verdict}")
    assert verdict.committed == len(committed)
    assert verdict.missing == []
    assert verdict.inversions == []
    assert verdict.unknown == []
