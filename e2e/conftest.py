"""The cluster with the operator in it, and MongoDB and Kafka beside it, at an address that pods reach."""

import itertools
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.support import Shop
from outbox_dev.installation import install_operator
from outbox_dev.kafka import Kafka
from outbox_dev.kubernetes.cluster import Cluster
from outbox_dev.mongo import MongoDB
from outbox_dev.processes import Processes

_numbers = itertools.count()


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    cluster = Cluster.current()
    assert cluster is not None, "no cluster is up: run `make e2e`"
    assert cluster.host_address is not None, "set OUTBOX_DEV_HOST_ADDRESS to an address of this machine that pods reach"
    return cluster


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    processes = Processes(tmp_path_factory.mktemp("processes"))
    processes.end_with_caller()
    yield processes
    processes.stop_all()


@pytest.fixture(scope="session")
def service_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("services")
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def mongodb(cluster: Cluster, processes: Processes, service_data: Path) -> Iterator[MongoDB]:
    assert cluster.host_address is not None
    mongodb = MongoDB.start(processes, service_data / "mongo", host=cluster.host_address, auth=True)
    yield mongodb
    mongodb.stop()


@pytest.fixture(scope="session")
def kafka(cluster: Cluster, processes: Processes, service_data: Path) -> Iterator[Kafka]:
    assert cluster.host_address is not None
    kafka = Kafka.start(processes, service_data / "kafka", host=cluster.host_address)
    yield kafka
    kafka.stop()


@pytest.fixture(scope="session")
def operator(cluster: Cluster) -> None:
    install_operator(cluster)


@pytest.fixture
def new_shop(
    request: pytest.FixtureRequest, cluster: Cluster, operator: None, mongodb: MongoDB, kafka: Kafka
) -> Iterator[Callable[[], Shop]]:
    """Makes shops, each a namespace of its own with Secret, database and database user."""
    made: list[Shop] = []
    word = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:24].strip("-")

    def make() -> Shop:
        name = f"{word}-{next(_numbers)}"
        uri = mongodb.add_user(name, "s3cret", [{"role": "readWrite", "db": name}])
        shop = Shop(name, cluster, mongodb, kafka, uri)
        cluster.kubectl("create", "namespace", name)
        made.append(shop)
        cluster.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
        shop.write_secret(uri)
        return shop

    yield make
    for shop in made:
        cluster.kubectl("delete", "namespace", shop.namespace, "--wait=false")


@pytest.fixture
def shop(new_shop: Callable[[], Shop]) -> Shop:
    return new_shop()
