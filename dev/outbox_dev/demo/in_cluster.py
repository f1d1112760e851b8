"""`python -m outbox_dev.demo.in_cluster`, run where the cluster can be reached: the demo's second half.

The operator by its chart, the manifests of `examples/kubernetes/` as they are, and MongoDB and Kafka beside the
cluster under the names that those manifests use.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from outbox_dev.crash import kill_relay
from outbox_dev.demo.shop import Shop
from outbox_dev.installation import install_operator
from outbox_dev.kubernetes.cluster import Cluster
from outbox_dev.paths import repo_root
from outbox_dev.progress import SetupError, fail, say, step
from outbox_dev.services import Service

NAMESPACE, RELAY = "shop", "orders"
MANIFESTS = "examples/kubernetes/"
service = Service("demo")

_KILL_AFTER = 120


def main() -> int:
    """Run it, and return 0 when everything committed arrived in order."""
    cluster = Cluster.current()
    try:
        if cluster is None:
            fail("No cluster is up", "outbox-dev cluster up")
        if cluster.host_address is None:
            fail(
                "It is not known at which address pods reach this machine",
                "set OUTBOX_DEV_HOST_ADDRESS to it",
            )
        good = run(cluster, cluster.host_address)
    except SetupError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("Stopped half-way. To end what runs: make down")
        return 130
    return 0 if good else 1


def run(cluster: Cluster, host: str) -> bool:
    """Install, apply, show, kill and judge; what runs afterwards stays, to be looked at.

    Args:
        cluster: is up, with the images loaded.
        host: address of this machine that pods reach.
    """
    _clear(cluster)
    with ThreadPoolExecutor() as pool:
        installing = pool.submit(install_operator, cluster)
        shop = Shop.open(service.processes, service.data, host)
        installing.result()
    _introduce(cluster, host, shop)
    say(f"==> kubectl apply -f {MANIFESTS}")
    print(cluster.kubectl("apply", "-f", _manifests()), end="", flush=True)
    with step("Waiting until the relay is Ready", expect="ten seconds"):
        wait = ["wait", "--for=condition=Ready", f"outboxrelay/{RELAY}", f"--namespace={NAMESPACE}"]
        cluster.kubectl(*wait, "--timeout=120s", timeout=150)
    with shop.watch() as watcher:
        shop.start_order_service()
        if not watcher.wait_for(_KILL_AFTER, timeout=60):
            fail("No events arrive", f"outbox-dev cluster exec -- kubectl -n {NAMESPACE} describe outboxrelay {RELAY}")
        pod = _leader(cluster)
        say(f"==> kill -9 of the relay in pod {pod}, and the pod deleted; the order service goes on.")
        say("    The next pod waits until the Lease of the killed one has passed: 15 seconds by default.")
        kill_relay(cluster, NAMESPACE, pod)
        good = shop.judge(watcher)
    _show_what_is_left(cluster)
    return good


def _clear(cluster: Cluster) -> None:
    """End what an earlier demo left: its outbox is gone with its MongoDB, so its position means nothing."""
    service.down()
    if cluster.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "--output=name"):
        with step("Removing what an earlier demo left"):
            cluster.kubectl("delete", "namespace", NAMESPACE, "--wait", "--timeout=120s", timeout=150)


def _introduce(cluster: Cluster, host: str, shop: Shop) -> None:
    """Give MongoDB and Kafka the names by which the manifests know them: Services that lead to this machine."""
    services = [
        *_service("mongo", 27017, host, shop.mongodb.nodes[0].port),
        *_service("kafka", 9092, host, shop.kafka.brokers[0].port),
    ]
    path = service.folder / "services.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": services}), encoding="utf-8")
    cluster.kubectl("apply", "-f", path)


def _service(name: str, port: int, host: str, host_port: int) -> list[dict[str, Any]]:
    """Return a Service `<name>.<name>` without pods, whose only endpoint is a port of this machine."""
    metadata = {"name": name, "namespace": name}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"ports": [{"name": name, "port": port}]},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**metadata, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": [{"name": name, "port": host_port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [host]}],
        },
    ]


def _manifests() -> Path:
    return repo_root() / MANIFESTS


def _leader(cluster: Cluster) -> str:
    query = "--output=jsonpath={.status.leader}"
    leader = cluster.kubectl("get", "outboxrelay", RELAY, f"--namespace={NAMESPACE}", query)
    if not leader:
        fail("The status names no leader", f"outbox-dev cluster exec -- kubectl -n {NAMESPACE} get pods")
    return leader


def _show_what_is_left(cluster: Cluster) -> None:
    with step("Waiting until the status says that nothing is pending", expect="counted every 30 seconds"):
        wait = ["wait", "--for=jsonpath={.status.pending}=0", f"outboxrelay/{RELAY}", f"--namespace={NAMESPACE}"]
        cluster.kubectl(*wait, "--timeout=90s", timeout=120)
    say("==> kubectl get outboxrelays -A")
    print(cluster.kubectl("get", "outboxrelays", "--all-namespaces"), end="", flush=True)
    say(
        f"""
It is all still there. To look further:
    .venv/bin/outbox-dev status
    .venv/bin/outbox-dev cluster exec -- kubectl -n {NAMESPACE} describe outboxrelay {RELAY}
    .venv/bin/outbox-dev cluster exec -- kubectl -n {NAMESPACE} logs deployment/{RELAY}-outbox-0
    .venv/bin/outbox-dev cluster exec -- kubectl explain outboxrelay.spec.source
To stop it all:
    make down"""
    )


if __name__ == "__main__":
    sys.exit(main())
