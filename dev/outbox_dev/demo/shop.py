"""What both demos have in common: MongoDB, Kafka, the order service, and the verdict."""

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from outbox_dev.delivery import committed_by
from outbox_dev.demo.watch import Watcher
from outbox_dev.kafka import Kafka
from outbox_dev.kafka_program import kafka_jars
from outbox_dev.mongo import MongoDB
from outbox_dev.mongod import mongod
from outbox_dev.paths import repo_root
from outbox_dev.processes import Processes
from outbox_dev.progress import SetupError, say, step

# What the manifests and the configuration in examples/ name.
DATABASE, COLLECTION = "shop", "outbox"
TOPIC = "outbox.event.Order"
PARTITIONS = 3

TRANSACTIONS, PER_SECOND, AGGREGATES, MOST_EVENTS = 200, 10, 20, 3
_ORDER_SERVICE = "order-service"
# Nothing arriving for so long, with events outstanding, means that they are lost.
_SILENCE_SECONDS = 60.0


@dataclass
class Shop:
    """MongoDB and Kafka with the topic, and the order service that writes to the one.

    Attributes:
        mongodb: a replica set of one node.
        kafka: one broker.
        processes: where everything is recorded.
        journal: file in which the order service notes what it committed.
    """

    mongodb: MongoDB
    kafka: Kafka
    processes: Processes
    journal: Path

    @classmethod
    def open(cls, processes: Processes, folder: Path, host: str = "127.0.0.1") -> "Shop":
        """Start MongoDB and Kafka and create the topic.

        Args:
            processes: where they are recorded.
            folder: for their data.
            host: address under which the relay finds them.
        """
        mongod(), kafka_jars()  # fetched one after the other, each with its own progress
        with step("Starting MongoDB and Kafka", expect="ten seconds"), ThreadPoolExecutor() as pool:
            starting_mongodb = pool.submit(MongoDB.start, processes, folder / "mongo", host=host)
            starting_kafka = pool.submit(Kafka.start, processes, folder / "kafka", host=host)
            shop = cls(starting_mongodb.result(), starting_kafka.result(), processes, folder / "journal.jsonl")
            asyncio.run(shop.kafka.create_topic(TOPIC, PARTITIONS))
        return shop

    def watch(self) -> Watcher:
        """Return a watcher of the topic that prints each record."""
        return Watcher(self.kafka, TOPIC, lambda line: print(line, flush=True))

    def start_order_service(self) -> None:
        """Let the order service commit transactions of one to three events for about twenty seconds."""
        say(
            f"==> The order service commits {TRANSACTIONS} transactions on {AGGREGATES} orders, {PER_SECOND} a second; "
            f"some are aborted on purpose. What arrives in topic {TOPIC} (partition@offset, key, type, value):"
        )
        argv = [sys.executable, "-m", "order_service", f"--database={DATABASE}", f"--outbox={COLLECTION}"]
        argv += [f"--transactions={TRANSACTIONS}", f"--rate={PER_SECOND}", f"--aggregates={AGGREGATES}"]
        argv += [f"--max-events={MOST_EVENTS}", f"--journal={self.journal}"]
        env = {**os.environ, "PYTHONPATH": str(repo_root() / "examples"), "MONGODB_URI": self.mongodb.uri}
        self.processes.start(_ORDER_SERVICE, argv, env=env)

    def judge(self, watcher: Watcher) -> bool:
        """Wait for the order service's end and for its events, print the verdict, return whether the promise held."""
        service = self.processes.get(_ORDER_SERVICE)
        if service is not None and not service.wait(timeout=4 * TRANSACTIONS / PER_SECOND):
            raise SetupError("The order service does not end", service.log_tail())
        committed = committed_by(self.journal)
        verdict = watcher.wait_for_all(committed, _SILENCE_SECONDS)
        say("")
        for event in verdict.missing[:10]:
            say(f"    missing: {event.aggregate} version {event.version}, event {event.id}")
        for inversion in verdict.inversions[:10]:
            say(f"    out of order: {inversion}")
        for event_id in verdict.unknown[:10]:
            say(f"    in Kafka, but never committed: {event_id}")
        if not committed:
            say(f"    the order service committed nothing: see {self.processes.state / 'logs'}")
        good = verdict.holds and bool(committed)
        say(f"==> {'Everything committed arrived, in order' if good else 'THE PROMISE IS BROKEN'}: {verdict}")
        return good
