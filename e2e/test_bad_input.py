"""What a user gets wrong is said where it can be said first, clearly, and costs no other relay anything."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from e2e.support import Shop, eventually
from e2e.test_lifecycle import arrived, commit, create_topic
from outbox_dev.progress import SetupError


@pytest.fixture
def neighbour(new_shop: Callable[[], Shop]) -> Shop:
    """A healthy relay in another namespace."""
    shop = new_shop()
    create_topic(shop)
    shop.apply(shop.relay())
    shop.wait_ready()
    return shop


@pytest.fixture
def _neighbour_is_untouched(neighbour: Shop) -> Any:
    pod = neighbour.names("pods")
    yield
    arrived(neighbour, commit(neighbour, ["n"], 3))
    assert neighbour.condition("Ready")["status"] == "True"
    assert neighbour.names("pods") == pod


def test_an_unknown_field_is_refused_by_kubectl(shop: Shop) -> None:
    with pytest.raises(SetupError, match=r'unknown field "(spec\.)?afterPublsh"'):
        shop.apply(shop.relay(afterPublsh="Mark"))


def test_a_name_of_46_characters_is_refused_by_the_server(shop: Shop) -> None:
    with pytest.raises(SetupError, match="at most 45 characters"):
        shop.apply(shop.relay("n" * 46))


def test_what_is_not_built_yet_is_refused_by_name(shop: Shop) -> None:
    shop.apply(shop.relay(retention={"published": "7d"}))
    assert "spec.retention" in shop.wait_reason("Stalled", "True", "NotImplemented")
    assert (shop.condition("Ready")["status"], shop.condition("Ready")["reason"]) == ("False", "NotImplemented")


@pytest.mark.usefixtures("_neighbour_is_untouched")
def test_a_missing_secret_a_missing_key_and_a_wrong_password_are_told_apart_and_heal(shop: Shop) -> None:
    create_topic(shop)
    shop.kubectl("delete", "secret", shop.secret)
    shop.apply(shop.relay())
    assert f"{shop.secret}/uri" in shop.wait_reason("CredentialsResolved", "False", "SecretMissing")
    shop.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": shop.secret}, "stringData": {"url": shop.uri}}
    )
    assert f"{shop.secret}/uri" in shop.wait_reason("CredentialsResolved", "False", "SecretMissing")
    shop.write_secret(shop.uri.replace("s3cret", "wr0ng"))
    message = shop.wait_reason("CredentialsResolved", "False", "SourceAuthenticationFailed", timeout=180)
    assert "wr0ng" not in message
    assert shop.condition("Ready")["status"] == "False"
    shop.write_secret(shop.uri)
    shop.wait_ready(timeout=180)
    arrived(shop, commit(shop, ["a"], 3))
    everything = shop.kubectl("get", "outboxrelays,configmaps,events,pods", "--output=json")
    logs = shop.kubectl("logs", "deployment/orders-outbox-0")
    for text in (everything, logs):
        assert "s3cret" not in text
        assert "wr0ng" not in text


@pytest.mark.usefixtures("_neighbour_is_untouched")
def test_unreachable_brokers_are_named(shop: Shop) -> None:
    shop.apply(shop.relay(sink={"bootstrapServers": ["kafka.nowhere.example:9092"]}))
    assert "kafka.nowhere.example:9092" in shop.wait_reason("Ready", "False", "SinkUnreachable")
    events = json.loads(shop.kubectl("get", "events", "--output=json"))["items"]
    assert any(event["reason"] == "SinkUnreachable" for event in events)


@pytest.mark.usefixtures("_neighbour_is_untouched")
def test_a_missing_topic_is_named_and_heals_when_it_appears(shop: Shop) -> None:
    shop.apply(shop.relay())
    shop.wait_ready()
    ids = commit(shop, ["a"], 3)
    held = eventually(
        lambda: named if (named := shop.condition("Ready")).get("reason") == "TopicHeld" else None, "held", 90
    )
    assert f"{shop.namespace}.order" in held["message"]
    create_topic(shop)
    arrived(shop, ids, 90)
    eventually(lambda: shop.condition("Ready").get("reason") == "Ready", "ready again", 90)
