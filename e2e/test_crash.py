"""The relay is killed from the node, again and again, under load: nothing is lost and nothing changes places."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pymongo import MongoClient

from e2e.support import Shop, eventually
from outbox_dev.crash import kill_relay
from outbox_dev.delivery import Delivery, Verdict, committed_by, committed_in
from outbox_dev.paths import repo_root

TRANSACTIONS, AGGREGATES, RATE = 20_000, 500, 150
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


class Writers:
    """The order service: 20,000 transactions, and then more for as long as the kills take."""

    def __init__(self, shop: Shop, journal: Path) -> None:
        self._command = [
            *(sys.executable, "-m", "order_service", f"--database={shop.namespace}", f"--journal={journal}"),
            *(f"--aggregates={AGGREGATES}", f"--rate={RATE}"),
        ]
        self._env = {**os.environ, "MONGODB_URI": shop.mongodb.uri, "PYTHONPATH": str(repo_root() / "examples")}
        self._first = self._current = self._start(TRANSACTIONS)

    def keep_writing(self) -> None:
        if self._current.poll() is not None:
            assert self._current.returncode == 0
            self._current = self._start(0)

    def finish(self) -> None:
        """Wait for the 20,000, and end what came after them."""
        assert self._first.wait(timeout=600) == 0
        if self._current is not self._first:
            self._current.terminate()
            assert self._current.wait(timeout=60) == 0

    def kill(self) -> None:
        self._current.kill()
        self._current.wait()

    def _start(self, transactions: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([*self._command, f"--transactions={transactions}"], env=self._env)


def kill_after_readable(shop: Shop, writers: Writers) -> None:
    """Wait for enough newly readable events, then kill the relay."""
    before = readable(shop)

    def enough() -> bool:
        writers.keep_writing()
        return readable(shop) >= before + READABLE_BETWEEN_KILLS

    eventually(enough, f"{READABLE_BETWEEN_KILLS} newly readable events", 120)
    pod = shop.names("pods", "--selector=outboxrelay.io/relay=orders")[0]
    kill_relay(shop.cluster, shop.namespace, pod.removeprefix("pod/"))


@pytest.mark.timeout(1200)
def test_ten_kills_under_load_lose_nothing_and_keep_the_order(shop: Shop, tmp_path: Path) -> None:
    asyncio.run(shop.kafka.create_topic(f"{shop.namespace}.{TOPIC_SUFFIX}", 3))
    shop.apply(shop.relay(relay={"lease": {"duration": "5s", "renew": "2s"}}))
    shop.wait_ready()
    journal = tmp_path / "journal.jsonl"
    writers = Writers(shop, journal)
    try:
        for number in range(KILLS):
            kill_after_readable(shop, writers)
            print(f"kill {number + 1} of {KILLS} at {readable(shop)} readable events", flush=True)
        writers.finish()
    finally:
        writers.kill()
    shop.wait_ready()
    committed = committed_by(journal)

    def all_settled() -> bool:
        with MongoClient(shop.mongodb.uri) as client:
            return client[shop.namespace]["outbox"].count_documents({"published_at": None}) == 0

    eventually(all_settled, "every event marked as published", 180)
    verdict = judge(shop)
    print(f"{KILLS} kills: {verdict}")
    assert verdict.committed == len({event.id for event in committed})
    assert verdict.missing == []
    assert verdict.inversions == []
    assert verdict.unknown == []
