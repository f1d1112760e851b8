"""Real services for tests: started once a session, when the first test asks for them.

Whatever happens to the session (Ctrl-C, SIGKILL), the services end with it. Tests
may kill, freeze and restart them: each fixture heals its service after the test.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import settings

from outbox_dev.kafka import Kafka
from outbox_dev.kafka_program import kafka_jars
from outbox_dev.kubernetes import tools
from outbox_dev.kubernetes.control_plane import ControlPlane
from outbox_dev.mongo import MongoDB
from outbox_dev.mongod import mongod
from outbox_dev.processes import Processes

# No time limit an example: a busy machine is no fault of the code. CI tries the same examples each time, so that it
# judges a change and not its luck; everywhere else they are new ones.
settings.register_profile("everywhere", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "everywhere")

# What each fixture needs to have downloaded or built.
_PREPARE: dict[str, Callable[[], object]] = {
    "mongodb": mongod,
    "mongodb_replica_set": mongod,
    "mongodb_standalone": mongod,
    "kafka": kafka_jars,
    "kafka_cluster": kafka_jars,
    "control_plane": lambda: tools.build("kube"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that uses a real service is an integration test."""
    for item in items:
        if _PREPARE.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.integration)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Download and build before the first test, whose time limit must not cover it."""
    if session.config.option.collectonly:
        return
    wanted = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    for prepare in {_PREPARE[name] for name in wanted & _PREPARE.keys()}:
        prepare()


@pytest.fixture(scope="session")
def service_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the services' data, removed at the end (hundreds of megabytes)."""
    path = tmp_path_factory.mktemp("services")
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory, service_data: Path) -> Iterator[Processes]:
    """The session's processes; all are ended with it, however it ends, and before their data go."""
    processes = Processes(tmp_path_factory.mktemp("processes"))
    processes.end_with_caller()
    yield processes
    # At once: nobody needs the data any more, so there is nothing to say goodbye to.
    processes.stop_all(timeout=0)


@pytest.fixture(scope="session")
def _mongodb(processes: Processes, service_data: Path) -> MongoDB:
    return MongoDB.start(processes, service_data / "mongo")


@pytest.fixture
def mongodb(_mongodb: MongoDB) -> Iterator[MongoDB]:
    """A replica set of one node; use a `database` of your own in it."""
    yield _mongodb
    _mongodb.heal()


@pytest.fixture(scope="session")
def _mongodb_replica_set(processes: Processes, service_data: Path) -> MongoDB:
    return MongoDB.start(processes, service_data / "mongo-three", nodes=3, name="mongo-three")


@pytest.fixture
def mongodb_replica_set(_mongodb_replica_set: MongoDB) -> Iterator[MongoDB]:
    """A replica set of three nodes, for fail-over."""
    yield _mongodb_replica_set
    _mongodb_replica_set.heal()


@pytest.fixture(scope="session")
def _mongodb_standalone(processes: Processes, service_data: Path) -> MongoDB:
    return MongoDB.start(processes, service_data / "mongo-standalone", standalone=True, name="mongo-standalone")


@pytest.fixture
def mongodb_standalone(_mongodb_standalone: MongoDB) -> Iterator[MongoDB]:
    """A server that is no replica set: no change streams, no transactions."""
    yield _mongodb_standalone
    _mongodb_standalone.heal()


@pytest.fixture(scope="session")
def _kafka(processes: Processes, service_data: Path) -> Kafka:
    return Kafka.start(processes, service_data / "kafka")


@pytest.fixture
def kafka(_kafka: Kafka) -> Iterator[Kafka]:
    """One broker that creates no topics by itself; use topics named by `unique`."""
    yield _kafka
    _kafka.heal()


@pytest.fixture(scope="session")
def _kafka_cluster(processes: Processes, service_data: Path) -> Kafka:
    return Kafka.start(processes, service_data / "kafka-three", brokers=3, name="kafka-three")


@pytest.fixture
def kafka_cluster(_kafka_cluster: Kafka) -> Iterator[Kafka]:
    """Three brokers; topics have three replicas of which two must be in sync."""
    yield _kafka_cluster
    _kafka_cluster.heal()


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """A program that a test runs in this process sets logging up for itself; its stream ends with the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def unique() -> str:
    """A short word that no other test uses: for names of topics, collections, databases."""
    return uuid4().hex[:10]


@pytest.fixture
def database(unique: str) -> str:
    """The name of a database that no other test uses."""
    return f"test_{unique}"


@pytest.fixture(scope="session")
def control_plane(processes: Processes, service_data: Path) -> Iterator[ControlPlane]:
    """A real kube-apiserver with etcd, shared by the session; use a namespace of your own in it."""
    plane = ControlPlane.start(processes, service_data / "control-plane")
    yield plane
    plane.stop()
