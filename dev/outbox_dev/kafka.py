"""Real Kafka: one or several KRaft brokers, each broker and controller in one process."""

import base64
import signal
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from outbox_dev.kafka_io import KafkaIO, serves
from outbox_dev.kafka_program import java, kafka_jars
from outbox_dev.ports import free_port
from outbox_dev.processes import Processes
from outbox_dev.progress import fail
from outbox_dev.server import Server

_SETTINGS = {
    # What has an old timestamp must not vanish from a test's topic.
    "log.retention.ms": "-1",
    # Consumer groups form at once; the default waits 3 s for more members.
    "group.initial.rebalance.delay.ms": "0",
    # A lost broker is noticed in 3 s instead of 9, so that tests of it are short.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
}


@dataclass(frozen=True)
class Security:
    """How clients reach the brokers.

    Brokers talk to each other, and tests look on, through a plaintext listener on
    loopback that this does not touch; so the client listener can be closed down
    without locking out the test that watches.

    Attributes:
        protocol: of the client listener.
        users: passwords by user name, with SASL (SCRAM-SHA-512).
    """

    protocol: Literal["PLAINTEXT", "SASL_PLAINTEXT"] = "PLAINTEXT"
    users: Mapping[str, str] = field(default_factory=dict)

    def properties(self) -> dict[str, str]:
        """Return the broker settings of the client listener."""
        if self.protocol == "PLAINTEXT":
            return {}
        login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        return {
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.client.scram-sha-512.sasl.jaas.config": login,
        }

    def format_arguments(self) -> list[str]:
        """Return what the storage tool is told, so that the users are there from the start."""
        return [
            argument
            for user, password in self.users.items()
            for argument in ("--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]")
        ]


@dataclass
class Kafka(KafkaIO):
    """A running cluster.

    Attributes:
        bootstrap_servers: `host:port,…` for clients.
        internal_servers: the same for tests that look on, without any security.
        brokers: its servers; broker `i` has node id `i + 1`.
    """

    bootstrap_servers: str
    brokers: list[Server]

    @classmethod
    def start(
        cls,
        processes: Processes,
        dir: Path,  # noqa: A002 - the shortest honest name
        brokers: int = 1,
        *,
        host: str = "127.0.0.1",
        config: Mapping[str, str] | None = None,
        security: Security | None = None,
        auto_create_topics: bool = False,
        heap_mb: int = 384,
        name: str = "kafka",
    ) -> "Kafka":
        """Start it and wait until every broker serves.

        Args:
            processes: where the brokers are recorded.
            dir: empty or new folder for the data.
            brokers: how many; with three, topics have three replicas of which two must be in sync.
            host: address to listen on and to be found under.
            config: further broker settings, over ours.
            security: of the client listener; plaintext when absent.
            auto_create_topics: whether a topic appears when somebody asks for it.
            heap_mb: Java heap of each broker, in MiB.
            name: what the processes are called: `<name>-0` and so on.

        Raises:
            SetupError: Java or Maven is missing.
            TimeoutError: it did not come up within two minutes.
        """
        security = security or Security()
        program, jars = java(), kafka_jars()
        dir.mkdir(parents=True, exist_ok=True)
        client, internal, controller = (
            [free_port(h) for _ in range(brokers)] for h in (host, "127.0.0.1", "127.0.0.1")
        )
        shared = {
            "process.roles": "broker,controller",
            "controller.quorum.voters": ",".join(f"{i + 1}@127.0.0.1:{port}" for i, port in enumerate(controller)),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "INTERNAL",
            "listener.security.protocol.map": f"CLIENT:{security.protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "auto.create.topics.enable": str(auto_create_topics).lower(),
            **_SETTINGS,
            **_replication(brokers),
            **security.properties(),
            **(config or {}),
        }
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        servers = []
        formats = []
        for i in range(brokers):
            folder = dir / f"{name}-{i}"
            (folder / "tmp").mkdir(parents=True)
            advertised = f"CLIENT://{host}:{client[i]},INTERNAL://127.0.0.1:{internal[i]}"
            own = {
                "node.id": str(i + 1),
                "listeners": f"{advertised},CONTROLLER://127.0.0.1:{controller[i]}",
                "advertised.listeners": advertised,
                "log.dirs": str(folder / "data"),
            }
            properties = folder / "server.properties"
            properties.write_text("".join(f"{key}={value}\n" for key, value in {**shared, **own}.items()))
            run_java = [program, *_java_options(folder, heap_mb), "-cp", f"{jars}/*"]
            store = [*run_java, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties)]
            formats.append([*store, *security.format_arguments()])
            argv = [*run_java, "kafka.Kafka", str(properties)]
            servers.append(Server(f"{name}-{i}", host, client[i], argv, processes))
        _format_storage(formats)
        kafka = cls(
            internal_servers=",".join(f"127.0.0.1:{port}" for port in internal),
            replicas=_replicas(brokers),
            bootstrap_servers=",".join(server.address for server in servers),
            brokers=servers,
        )
        for i, server in enumerate(servers):
            server.ready = serves(f"127.0.0.1:{internal[i]}", i + 1)
            server.launch()
        for server in servers:
            server.wait_ready()
        return kafka

    def heal(self) -> None:
        """Undo what a test did to the servers: thaw the frozen, start the dead."""
        for server in self.brokers:
            server.heal()

    def stop(self) -> None:
        """End all brokers; the data stay."""
        for broker in self.brokers:
            if broker.running:
                broker.process.signal(signal.SIGTERM)
        for broker in self.brokers:
            # The last ones find no quorum to say goodbye to, and would wait for it.
            broker.stop(timeout=5)


def _replicas(brokers: int) -> int:
    return 3 if brokers >= 3 else 1


def _replication(brokers: int) -> dict[str, str]:
    replicas = _replicas(brokers)
    in_sync = max(1, replicas - 1)
    return {
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
    }


def _java_options(folder: Path, heap_mb: int) -> list[str]:
    return [
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        "-XX:+ExitOnOutOfMemoryError",
        # A third less CPU until the broker is up. A benchmark of throughput wants the second compiler as well.
        "-XX:TieredStopAtLevel=1",
        # Nothing in the machine's /tmp: neither unpacked libraries nor JVM statistics.
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        "-XX:-UsePerfData",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
    ]


def _format_storage(commands: list[list[str]]) -> None:
    """Write each broker's cluster id; a second of Java each, so all at once."""
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for command in commands
    ]
    printed = [process.communicate(timeout=120)[0] for process in running]
    for process, text in zip(running, printed, strict=True):
        if process.returncode != 0:
            fail(f"Kafka's storage tool failed:\n{text.strip()}", "see the message above; this is a bug of the setup")
