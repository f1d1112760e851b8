"""Relays as processes of their own, as a user runs them; only so can a test kill, stop and freeze one."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from pymongo import MongoClient
from pymongo.collection import Collection

from outbox_dev.delivery import Committed, Delivery, Verdict
from outbox_dev.kafka import Kafka
from outbox_dev.mongo import MongoDB

WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.02


def wait_for(condition: Callable[[], Any], what: str, within: float = WAIT_SECONDS) -> Any:
    """Return what `condition` returns once that is true."""
    end = time.monotonic() + within
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"within {within:g} s: {what}")
        time.sleep(_POLL_SECONDS)
    return found


@dataclass
class RelayProcess:
    """One `outbox-relay run`."""

    config: Path
    log: Path
    env: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> "RelayProcess":
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "outbox_relay", "run", "--config", str(self.config)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment(),
            )
        return self

    def _environment(self) -> dict[str, str]:
        # Without byte code every start would compile a second's worth of modules.
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return inherited | self.env

    def lines(self) -> list[dict[str, Any]]:
        """Return the log so far; what is not JSON comes as {"text": …}."""
        text = self.log.read_text(encoding="utf-8")
        return [json.loads(line) if line.startswith("{") else {"text": line} for line in text.splitlines()]

    def of_this_process(self) -> list[dict[str, Any]]:
        """Return the log since the last start."""
        lines = self.lines()
        starts = [index for index, line in enumerate(lines) if line.get("event") == "started"]
        return lines[starts[-1] :] if starts else []

    def reports(self) -> list[dict[str, Any]]:
        return [line for line in self.of_this_process() if line.get("event") == "report"]

    def wait_for_report(self, state: str, reason: str | None = None, within: float = WAIT_SECONDS) -> dict[str, Any]:
        """Return the newest report once it has the state (and reason)."""

        def found() -> dict[str, Any] | None:
            self.check_alive()
            reports = self.reports()
            if reports and reports[-1]["state"] == state and reason in {None, reports[-1]["reason"]}:
                return reports[-1]
            return None

        try:
            return wait_for(found, f"a report {state}/{reason}", within)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the log:\n{self.log.read_text()[-4000:]}") from None

    def check_alive(self) -> None:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"the relay ended with {self.process.returncode}:\n{self.log.read_text()[-3000:]}")

    def page(self, path: str) -> tuple[int, str]:
        def port_of_start() -> int | None:
            self.check_alive()
            return next((line["port"] for line in self.of_this_process() if line.get("event") == "started"), None)

        port = wait_for(port_of_start, "the port")
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name: str) -> float | None:
        """Return the sum of a metric's samples; None while it is absent."""
        lines = self.page("/metrics")[1].splitlines()
        values = [float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{name} ", f"{name}{{"))]
        return sum(values) if values else None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def terminate(self, within: float = WAIT_SECONDS) -> tuple[int, float]:
        """Send SIGTERM; return the exit code and the seconds it took."""
        assert self.process is not None
        began = time.monotonic()
        self.process.terminate()
        code = self.process.wait(within)
        return code, time.monotonic() - began


@dataclass
class Outbox:
    """An outbox collection, its topic, and what was committed to it."""

    mongodb: MongoDB
    kafka: Kafka
    database: str
    topic: str
    client: MongoClient[dict[str, Any]]
    committed: list[Committed] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)
    count: int = 0

    @property
    def collection(self) -> Collection[dict[str, Any]]:
        return self.client[self.database]["outbox"]

    def emit(self, events: int, aggregates: int = 20, **fields: Any) -> list[Committed]:
        """Commit events, over the aggregates in turn."""
        documents = [self.document(f"a{number % aggregates}", **fields) for number in range(events)]
        self.collection.insert_many(documents, ordered=True)
        committed = [Committed(d["_id"], d["aggregate_id"], d["version"]) for d in documents]
        self.committed += committed
        return committed

    def document(self, aggregate_id: str, **fields: Any) -> dict[str, Any]:
        self.count += 1
        self.versions[aggregate_id] = version = self.versions.get(aggregate_id, 0) + 1
        return {
            "_id": f"{self.database}-{self.count:07d}",
            "aggregate": self.topic,
            "aggregate_id": aggregate_id,
            "event_type": "OrderPlaced",
            "payload": {"number": self.count, "text": "x" * 100},
            "version": version,
            "occurred_at": datetime.now(UTC),
            "published_at": None,
            **fields,
        }

    def unpublished(self) -> int:
        return self.collection.count_documents({"published_at": None})

    def verdict(self, topic: str | None = None) -> Verdict:
        """Compare what lies in Kafka now with what was committed."""
        delivery = Delivery()
        delivery.committed(self.committed)
        for record in asyncio.run(self.kafka.read_all(topic or self.topic)):
            delivery.arrived(record)
        return delivery.verdict()

    def arrived(self, topic: str | None = None) -> int:
        """Return how many records lie in the topic."""
        return sum(asyncio.run(self.kafka.end_offsets(topic or self.topic)).values())

    def wait_until_delivered(self, within: float = 60.0) -> Verdict:
        """Return the verdict once nothing is missing any more."""
        wait_for(lambda: self.arrived() >= self.count, "as many records as events", within)
        return wait_for(
            lambda: (verdict := self.verdict()) if not self.verdict().missing else None, "all events", within
        )


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Wait for a condition: `eventually(condition, "what it is", within=seconds)`."""
    return wait_for


@pytest.fixture
def outbox(mongodb: MongoDB, kafka: Kafka, database: str, unique: str) -> Iterator[Outbox]:
    """An empty outbox and its topic of three partitions."""
    topic = f"orders-{unique}"
    asyncio.run(kafka.create_topic(topic, partitions=3))
    with mongodb.client() as client:
        client[database].create_collection("outbox")
        yield Outbox(mongodb, kafka, database, topic, client)
        client.drop_database(database)


StartRelay = Callable[..., RelayProcess]


@pytest.fixture
def new_relay(tmp_path: Path) -> Iterator[StartRelay]:
    """Make (and not yet start) a relay for an outbox, with parts of its configuration replaced."""
    made: list[RelayProcess] = []

    def make(
        outbox: Outbox,
        *,
        name: str = "orders",
        uri_file: Path | None = None,
        source: dict[str, Any] | None = None,
        sink: dict[str, Any] | None = None,
        runtime: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        **spec: Any,
    ) -> RelayProcess:
        if uri_file is None:
            uri_file = tmp_path / "uri"
            uri_file.write_text(f"{outbox.mongodb.uri}\n")
        config = {
            "spec": {
                "source": {
                    "uriFile": str(uri_file),
                    "database": outbox.database,
                    "collection": "outbox",
                    **(source or {}),
                },
                "sink": {"bootstrapServers": outbox.kafka.bootstrap_servers.split(","), **(sink or {})},
                "route": {"topic": "{aggregateType}", **spec.pop("route", {})},
                "failure": {"backoff": {"initial": "100ms", "max": "1s"}},
                "checkpoint": {"interval": "500ms", **spec.pop("checkpoint", {})},
                **spec,
            },
            "runtime": {
                "name": name,
                "checkpoint": {"file": str(tmp_path / "checkpoint.json")},
                "listen": {"port": 0},
                **(runtime or {}),
            },
        }
        if config["runtime"].get("election") == "Kubernetes":
            del config["runtime"]["checkpoint"]
        path = tmp_path / f"{name}-{len(made)}.yaml"
        path.write_text(yaml.safe_dump(config))
        relay = RelayProcess(path, tmp_path / f"{name}-{len(made)}.log", env or {})
        made.append(relay)
        return relay

    yield make
    for relay in made:
        if relay.process is not None and relay.process.poll() is None:
            relay.kill()
