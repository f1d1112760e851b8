import os
import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from outbox_dev.delivery import Committed
from outbox_dev.demo.watch import Watcher, describe
from outbox_dev.kafka import Kafka
from outbox_dev.kafka_io import Record
from outbox_dev.kafka_program import kafka_jars
from outbox_dev.mongod import mongod
from outbox_dev.paths import repo_root

ORDER_PLACED = Record(
    "outbox.event.Order", 1, 7, b"order-1", b'{"version":1}', (("id", b"a1"), ("type", b"OrderPlaced")), 0
)


def test_a_record_is_one_readable_line() -> None:
    assert describe(ORDER_PLACED, repeated=False).split() == ["1@7", "order-1", "OrderPlaced", '{"version":1}']


def test_a_repeated_record_is_shown_as_such() -> None:
    assert describe(ORDER_PLACED, repeated=True).endswith("(again)")


async def produce(kafka: Kafka, topic: str, *event_ids: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for event_id in event_ids:
            await producer.send_and_wait(topic, b"{}", key=b"a", headers=[("id", event_id.encode())])


async def test_the_watcher_shows_every_record_and_judges_what_was_committed(kafka: Kafka, unique: str) -> None:
    await kafka.create_topic(unique)
    committed = [Committed(f"a{version}", "a", version) for version in (1, 2)]
    shown: list[str] = []
    with Watcher(kafka, unique, shown.append) as watcher:
        await produce(kafka, unique, "a1", "a1", "a2")
        assert watcher.wait_for(2, timeout=20)
        verdict = watcher.wait_for_all(committed, timeout=20)
    assert verdict.holds
    assert verdict.duplicates == 1
    assert len(shown) == 3


async def test_the_watcher_calls_missing_what_does_not_come(kafka: Kafka, unique: str) -> None:
    await kafka.create_topic(unique)
    committed = [Committed(f"a{version}", "a", version) for version in (1, 2)]
    with Watcher(kafka, unique, lambda _: None) as watcher:
        await produce(kafka, unique, "a1")
        assert watcher.wait_for(1, timeout=20)
        assert watcher.wait_for_all(committed, timeout=0.2).missing == [committed[1]]


def test_the_watcher_says_why_it_cannot_read(kafka: Kafka, unique: str) -> None:
    with (
        Watcher(kafka, f"no-such-{unique}", lambda _: None) as watcher,
        pytest.raises(RuntimeError, match=f"reading no-such-{unique} failed"),
    ):
        watcher.wait_for(1, timeout=20)


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_demo_local_shows_events_survives_the_kill_and_leaves_nothing_behind(tmp_path: Path) -> None:
    mongod(), kafka_jars()
    state = tmp_path / "state"
    environment = {**os.environ, "OUTBOX_DEV_STATE": str(state)}
    command = [sys.executable, "-m", "outbox_dev", "demo-local"]
    done = subprocess.run(command, env=environment, cwd=repo_root(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "kill -9 of the relay" in done.stderr
    assert "Everything committed arrived, in order" in done.stderr
    assert "OrderPlaced" in done.stdout
    assert not list(state.rglob("*.json"))
