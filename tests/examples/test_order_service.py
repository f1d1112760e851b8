"""The order service is what demo and end-to-end tests compare Kafka with, so it has to be right itself."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo.database import Database

from outbox_dev.mongo import MongoDB
from outbox_dev.paths import repo_root

EXAMPLES = repo_root() / "examples"


@pytest.fixture
def shop(mongodb: MongoDB, database: str) -> Iterator[Database[Any]]:
    with mongodb.client() as client:
        yield client[database]
        client.drop_database(database)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "order_service", *arguments]


def environment(mongodb: MongoDB) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(EXAMPLES), "MONGODB_URI": mongodb.uri}


def entries(journal: Path, outcome: str) -> list[dict[str, Any]]:
    return [entry for line in journal.read_text().splitlines() if (entry := json.loads(line))["outcome"] == outcome]


def check(shop: Database[Any], journal: Path) -> list[dict[str, Any]]:
    """Compare the journal with the outbox and the orders; return the outbox."""
    outbox = list(shop.outbox.find())
    assert sorted(entry["id"] for entry in entries(journal, "committed")) == sorted(str(e["_id"]) for e in outbox)
    versions: dict[str, list[int]] = defaultdict(list)
    for event in outbox:
        versions[event["aggregate_id"]].append(event["version"])
    for order in shop.orders.find():
        assert sorted(versions.pop(order["_id"])) == list(range(1, order["version"] + 1))
    assert not versions
    return outbox


def test_what_is_committed_is_in_the_journal_and_aborted_transactions_leave_no_trace(
    mongodb: MongoDB, shop: Database[Any], tmp_path: Path
) -> None:
    journal = tmp_path / "journal.jsonl"
    options = ["--database", shop.name, "--transactions", "120", "--writers", "4", "--aggregates", "5"]
    for _ in range(2):  # the second run continues the orders of the first
        done = subprocess.run(
            command(*options, "--aborts", "0.2", "--journal", str(journal)),
            env=environment(mongodb),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "120 transactions committed" in done.stdout
    outbox = check(shop, journal)
    assert 240 <= len(outbox) <= 5 * 240
    aborted = {entry["id"] for entry in entries(journal, "aborted")}
    assert aborted
    assert not aborted & {str(event["_id"]) for event in outbox}


def test_the_events_of_an_order_rise_in_version_in_the_order_of_their_commits(
    mongodb: MongoDB, shop: Database[Any]
) -> None:
    with shop.outbox.watch() as stream:
        subprocess.run(
            command("--database", shop.name, "--transactions", "60", "--aggregates", "3"),
            env=environment(mongodb),
            capture_output=True,
            timeout=100,
            check=True,
        )
        last: dict[str, int] = defaultdict(int)
        for _ in range(shop.outbox.count_documents({})):
            event = stream.next()["fullDocument"]
            assert event["version"] == last[event["aggregate_id"]] + 1
            last[event["aggregate_id"]] = event["version"]


def test_a_signal_ends_it_after_the_transactions_under_way(
    mongodb: MongoDB, shop: Database[Any], tmp_path: Path
) -> None:
    journal = tmp_path / "journal.jsonl"
    with subprocess.Popen(
        command("--database", shop.name, "--transactions", "0", "--rate", "200", "--journal", str(journal)),
        env=environment(mongodb),
        stdout=subprocess.PIPE,
        text=True,
    ) as service:
        deadline = time.monotonic() + 60
        while shop.outbox.estimated_document_count() < 50:
            assert time.monotonic() < deadline
            assert service.poll() is None
            time.sleep(0.02)
        service.send_signal(signal.SIGTERM)
        shown, _ = service.communicate(timeout=60)
    assert service.returncode == 0
    assert "; done" in shown
    check(shop, journal)


def test_an_unreachable_mongodb_is_said_in_a_line() -> None:
    done = subprocess.run(
        command("--uri", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200"),
        env=os.environ | {"PYTHONPATH": str(EXAMPLES)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("MongoDB: ")
    assert "Traceback" not in done.stderr
