"""A relay's life in a cluster: applied, ready, read, suspended, healed, deleted."""

import asyncio
import json
import time
from collections.abc import Sequence

from bson import ObjectId
from pymongo import MongoClient

from e2e.support import Shop, eventually
from outbox_client import Event, Outbox
from outbox_dev.installation import NAMESPACE, RELEASE
from outbox_dev.kafka_io import Record


def commit(shop: Shop, aggregates: Sequence[str], count: int = 1) -> list[str]:
    """Commit `count` events for each aggregate, one transaction an event; return the ids in commit order."""
    ids: list[str] = []
    with MongoClient(shop.mongodb.uri) as client:
        outbox = Outbox(client[shop.namespace]["outbox"])
        for number in range(count):
            for aggregate in aggregates:
                with client.start_session() as session, session.start_transaction():
                    event = Event(
                        aggregate_type="order", aggregate_id=aggregate, event_type="OrderPlaced", payload={"n": number}
                    )
                    ids += [str(event_id) for event_id in outbox.emit(session, event)]
    return ids


def records(shop: Shop) -> list[Record]:
    return asyncio.run(shop.kafka.read_all(f"{shop.namespace}.order"))


def ids_of(found: list[Record]) -> list[str]:
    return [dict(record.headers)["id"].decode() for record in found]


def create_topic(shop: Shop) -> None:
    asyncio.run(shop.kafka.create_topic(f"{shop.namespace}.order", 1))


def arrived(shop: Shop, ids: list[str], timeout: float = 30) -> list[Record]:
    """Wait until every id is in the topic, and return the records."""

    def all_there() -> list[Record] | None:
        found = records(shop)
        return found if set(ids) <= set(ids_of(found)) else None

    return eventually(all_there, f"{len(ids)} events in Kafka", timeout)


def test_an_applied_relay_becomes_ready_delivers_in_order_and_shows_itself(shop: Shop) -> None:
    create_topic(shop)
    before = commit(shop, ["a", "b"], 3)
    shop.apply(shop.relay())
    shop.wait_ready()
    ids = before + commit(shop, ["a", "b"], 20)
    found = arrived(shop, ids)
    assert list(dict.fromkeys(ids_of(found))) == ids
    assert [ObjectId.is_valid(dict(record.headers)["id"].decode()) for record in found] == [True] * len(found)
    assert json.loads(found[0].value or b"") == {"n": 0}
    assert found[0].key == b"a"

    name, ready, reason, source, leader, *_ = shop.kubectl("get", "outboxrelays", "--no-headers").split()
    assert (name, ready, reason, source) == ("orders", "True", "Ready", f"{shop.namespace}.outbox")
    assert leader.startswith("orders-outbox-0-")
    lag = eventually(lambda: shop.get("outboxrelay", "orders")["status"].get("lagMilliseconds"), "lag", 60)
    assert lag >= 0
    described = shop.kubectl("describe", "outboxrelay", "orders")
    for words in ("Conditions:", "Type:", "Ready", "Streaming", "Events:"):
        assert words in described
    assert "MongoDB" in shop.kubectl("explain", "outboxrelay.spec.source")
    with MongoClient(shop.mongodb.uri) as client:
        assert client[shop.namespace]["outbox"].count_documents({"published_at": None}) == 0


def test_suspend_scales_to_zero_and_resume_continues_where_it_stopped(shop: Shop) -> None:
    create_topic(shop)
    shop.apply(shop.relay())
    shop.wait_ready()
    first = commit(shop, ["a"], 5)
    arrived(shop, first)
    shop.kubectl("patch", "outboxrelay", "orders", "--type=merge", "--patch", '{"spec":{"suspend":true}}')
    shop.wait_reason("Suspended", "True", "Suspended")
    eventually(lambda: not shop.names("pods"), "no pods", 60)
    assert shop.condition("Ready")["reason"] == "Suspended"
    second = commit(shop, ["a"], 5)
    shop.kubectl("patch", "outboxrelay", "orders", "--type=merge", "--patch", '{"spec":{"suspend":false}}')
    found = arrived(shop, first + second, 60)
    assert ids_of(found) == first + second


def test_a_deleted_or_edited_child_is_restored_and_the_relay_goes_on(shop: Shop) -> None:
    create_topic(shop)
    shop.apply(shop.relay())
    shop.wait_ready()
    uid = shop.get("deployment", "orders-outbox-0")["metadata"]["uid"]
    shop.kubectl("delete", "deployment", "orders-outbox-0", "--wait=false")
    eventually(
        lambda: (
            any("orders-outbox-0" in name for name in shop.names("deployment"))
            and shop.get("deployment", "orders-outbox-0")["metadata"]["uid"] != uid
        ),
        "a new Deployment",
        10,
    )
    shop.kubectl("patch", "role", "orders-outbox-relay", "--type=merge", "--patch", '{"rules":[]}')
    eventually(lambda: len(shop.get("role", "orders-outbox-relay")["rules"] or []) > 0, "the Role's rules", 10)
    shop.wait_ready()
    ids = commit(shop, ["a"], 5)
    arrived(shop, ids)


def test_a_changed_spec_rolls_out_without_loss(shop: Shop) -> None:
    create_topic(shop)
    shop.apply(shop.relay())
    shop.wait_ready()
    first = commit(shop, ["a"], 5)
    arrived(shop, first)
    shop.apply(shop.relay(sink={"bootstrapServers": [shop.kafka.bootstrap_servers], "compression": "gzip"}))
    generation = shop.get("outboxrelay", "orders")["metadata"]["generation"]
    second = commit(shop, ["a"], 50)
    eventually(
        lambda: (
            shop.get("outboxrelay", "orders")["status"]["observedGeneration"] == generation
            and shop.condition("Ready")["status"] == "True"
            and len(shop.names("pods")) == 1
        ),
        "the rollout",
        90,
    )
    found = arrived(shop, first + second)
    assert list(dict.fromkeys(ids_of(found))) == first + second


def test_a_relay_goes_on_while_the_operator_is_restarted_and_changes_made_meanwhile_are_carried_out(shop: Shop) -> None:
    create_topic(shop)
    shop.apply(shop.relay())
    shop.wait_ready()
    shop.cluster.kubectl(f"--namespace={NAMESPACE}", "scale", f"deployment/{RELEASE}", "--replicas=0")
    eventually(
        lambda: not shop.cluster.kubectl(f"--namespace={NAMESPACE}", "get", "pods", "--output=name").split(),
        "no operator",
        60,
    )
    ids = commit(shop, ["a"], 5)
    arrived(shop, ids)
    shop.kubectl("patch", "outboxrelay", "orders", "--type=merge", "--patch", '{"spec":{"suspend":true}}')
    shop.cluster.kubectl(f"--namespace={NAMESPACE}", "scale", f"deployment/{RELEASE}", "--replicas=1")
    shop.wait_reason("Suspended", "True", "Suspended")


def test_a_deleted_relay_takes_everything_along(shop: Shop) -> None:
    create_topic(shop)
    shop.apply(shop.relay())
    shop.wait_ready()
    kinds = "deployments,pods,configmaps,leases,serviceaccounts,roles,rolebindings"
    mine = "--selector=outboxrelay.io/relay=orders"
    assert len(shop.names(kinds, mine)) >= 8
    shop.kubectl("delete", "outboxrelay", "orders", "--timeout=30s")
    eventually(lambda: not shop.names(kinds, mine), "no children", 60)
    time.sleep(2)  # nothing comes back: there is no condition to wait for
    assert shop.names(kinds, mine) == []
