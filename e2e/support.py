"""What the end-to-end tests do with the cluster: one namespace with its MongoDB user, and the relays in it."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from outbox_api.names import API_VERSION, KIND
from outbox_dev.kafka import Kafka
from outbox_dev.kubernetes.cluster import Cluster
from outbox_dev.mongo import MongoDB

T = TypeVar("T")
POLL_SECONDS = 0.25


def eventually(check: Callable[[], T | None], what: str, timeout: float = 60.0) -> T:
    """Return the first result of `check` that is neither None nor False.

    Raises:
        AssertionError: there was none in `timeout` seconds; the message says what was waited for and the last result.
    """
    deadline = time.monotonic() + timeout
    while True:
        result = check()
        if result is not None and result is not False:
            return result
        assert time.monotonic() < deadline, f"{what}: not within {timeout:.0f} s; last result {result!r}"
        time.sleep(POLL_SECONDS)


@dataclass
class Shop:
    """A namespace of the cluster, a database of the same name and its user, and the Secret that holds the URI."""

    namespace: str
    cluster: Cluster
    mongodb: MongoDB
    kafka: Kafka
    uri: str
    secret: str = "orders-mongo"

    def kubectl(self, *args: str) -> str:
        return self.cluster.kubectl(f"--namespace={self.namespace}", *args)

    def apply(self, *manifests: dict[str, Any]) -> None:
        folder = self.cluster.kubeconfig.parent
        path = folder / f"e2e-{self.namespace}.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}), encoding="utf-8")
        try:
            self.kubectl("apply", "--filename", str(path))
        finally:
            path.unlink()

    def write_secret(self, uri: str) -> None:
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": self.secret, "namespace": self.namespace},
                "stringData": {"uri": uri},
            }
        )

    def relay(self, name: str = "orders", **spec: Any) -> dict[str, Any]:
        """A manifest of a relay from this shop's outbox; `spec` replaces whole sections."""
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "source": {
                    "uriSecretRef": {"name": self.secret, "key": "uri"},
                    "database": self.namespace,
                    "collection": "outbox",
                },
                "sink": {"bootstrapServers": [self.kafka.bootstrap_servers]},
                "route": {"topic": f"{self.namespace}.{{aggregateType}}"},
                **spec,
            },
        }

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", kind, name, "--output=json"))
        return found

    def names(self, kind: str, *args: str) -> list[str]:
        return self.kubectl("get", kind, "--output=name", *args).split()

    def condition(self, type_: str, name: str = "orders") -> dict[str, Any]:
        """The condition of a relay, or an empty one while there is none."""
        conditions = self.get("outboxrelay", name).get("status", {}).get("conditions") or []
        return next((condition for condition in conditions if condition["type"] == type_), {})

    def wait_ready(self, name: str = "orders", timeout: int = 120) -> None:
        self.kubectl("wait", "--for=condition=Ready", f"outboxrelay/{name}", f"--timeout={timeout}s")

    def wait_reason(self, type_: str, status: str, reason: str, name: str = "orders", timeout: float = 90) -> str:
        """Wait for a condition with this status and reason, and return its message."""

        def met() -> str | None:
            found = self.condition(type_, name)
            seen.append((found.get("status"), found.get("reason"), found.get("message")))
            return str(found["message"]) if (found.get("status"), found.get("reason")) == (status, reason) else None

        seen: list[tuple[Any, ...]] = []
        try:
            return eventually(met, f"{type_}={status}/{reason} of {name}", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; seen: {list(dict.fromkeys(seen))}") from None
