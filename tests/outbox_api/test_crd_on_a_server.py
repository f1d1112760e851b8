"""The CRD on a real kube-apiserver: it reads back as written, and each CEL rule accepts and refuses what it should."""

import copy
import json
import time
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest

from outbox_api.crd import custom_resource_definition, openapi_schema
from outbox_api.names import API_VERSION, CRD_NAME
from outbox_dev.kubernetes.control_plane import ControlPlane

pytestmark = pytest.mark.integration

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RELAYS = "/apis/outboxrelay.io/v1alpha1/namespaces/default/outboxrelays"
REF = {"name": "kafka", "key": "password"}
OAUTH = {"tokenEndpoint": "https://idp/token", "clientId": "relay", "clientSecretRef": {"name": "idp", "key": "secret"}}
IMMUTABLE = "spec.source.database and spec.source.collection are immutable"
Changes = dict[str, Any]


def manifest(changes: Changes, name: str = "orders") -> dict[str, Any]:
    """A minimal OutboxRelay with `changes` (dotted path below spec → value) made to it."""
    spec: dict[str, Any] = {
        "source": {"uriSecretRef": {"name": "mongo", "key": "uri"}, "database": "shop", "collection": "outbox"},
        "sink": {"bootstrapServers": ["kafka:9092"]},
    }
    for path, value in changes.items():
        *parents, last = path.split(".")
        target = spec
        for parent in parents:
            target = target.setdefault(parent, {})
        target[last] = copy.deepcopy(value)
    return {"apiVersion": API_VERSION, "kind": "OutboxRelay", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> ControlPlane:
    try:
        control_plane.request("POST", CRDS, custom_resource_definition())
    except urllib.error.HTTPError as error:
        if error.code != 409:
            raise
    while not served(control_plane):
        time.sleep(0.05)
    return control_plane


def served(server: ControlPlane) -> bool:
    try:
        server.request("GET", RELAYS)
    except urllib.error.HTTPError as error:
        if error.code not in (404, 429):  # 429: its storage is being set up
            raise
        return False
    conditions = server.request("GET", f"{CRDS}/{CRD_NAME}")["status"]["conditions"] or []
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)


def refusal(server: ControlPlane, method: str, path: str, body: dict[str, Any]) -> str | None:
    """Send `body` as a dry run; return the server's message when it refuses, else None."""
    try:
        server.request(method, f"{path}?dryRun=All&fieldValidation=Strict", body)
    except urllib.error.HTTPError as error:
        return str(json.loads(error.read())["message"])
    return None


ACCEPTED: list[Changes] = [
    {},
    {"source.mode": "Polling"},
    {"source.mode": "Polling", "source.polling": {"interval": "2s"}},
    {"source.tls": {}, "sink.tls": {"caRef": {"kind": "ConfigMap", "name": "cas", "key": "ca.crt"}}},
    {"sink.sasl": {"mechanism": "PLAIN", "username": "relay", "passwordSecretRef": REF}},
    {
        "sink.sasl": {
            "mechanism": "SCRAM-SHA-512",
            "usernameSecretRef": REF,
            "passwordSecretRef": REF,
        }
    },
    {"sink.sasl": {"mechanism": "OAUTHBEARER", "oauth": OAUTH}},
    {"sink.delivery": "ExactlyOnce", "sink.exactlyOnce": {"positionTopic": "positions"}},
    {"sink.topics": {"create": True, "partitions": 3, "replicationFactor": 1, "config": {"retention.ms": "1000"}}},
    {"sink.maxRequestSize": "1Ki"},
    {"sink.maxRequestSize": "256Mi"},
    {"sink.bootstrapServers": ["[::1]:9092", "kafka-0.kafka.svc.cluster.local:9092"]},
    {"route.value": {"format": "ExtendedJson", "extendedJson": {"mode": "Canonical"}}},
    {"route.value": {"format": "CloudEvents", "cloudEvents": {"source": "/shop"}}},
    {"route.value": {"format": "Debezium", "debezium": {"valueConverter": "Json"}}},
    {"route.headers": []},
    {"afterPublish": "Mark", "retention": {"published": "7d"}},
    {"afterPublish": "Keep"},
    {"failure.backoff": {"initial": "1s", "max": "1s"}},
    {"failure.hold.size": "1Gi"},
    {"checkpoint.startFrom": {"position": "Time", "time": "2026-01-01T00:00:00Z"}},
    {"relay.lease": {"duration": "10s", "renew": "5s"}},
    {"relay.lease": {"duration": "2s", "renew": "500ms"}},
    {"relay.resources": {"requests": {"cpu": 1, "memory": "64Mi"}}},
    {"relay.template": {"labels": {"team": "shop"}, "annotations": {"team": "shop"}, "affinity": {"podAffinity": {}}}},
]


@pytest.mark.parametrize("changes", ACCEPTED, ids=json.dumps)
def test_a_valid_spec_is_accepted(server: ControlPlane, changes: Changes) -> None:
    assert refusal(server, "POST", RELAYS, manifest(changes)) is None


REFUSED: list[tuple[Changes, str]] = [
    ({"source.polling": {}}, "spec.source.polling is only for mode Polling"),
    ({"sink.sasl": {"mechanism": "OAUTHBEARER"}}, "spec.sink.sasl.oauth belongs to mechanism OAUTHBEARER"),
    (
        {"sink.sasl": {"mechanism": "PLAIN", "username": "a", "passwordSecretRef": REF, "oauth": OAUTH}},
        "spec.sink.sasl.oauth belongs to mechanism OAUTHBEARER",
    ),
    ({"sink.sasl": {"mechanism": "PLAIN", "username": "a"}}, "spec.sink.sasl.passwordSecretRef is needed"),
    (
        {"sink.sasl": {"mechanism": "OAUTHBEARER", "oauth": OAUTH, "passwordSecretRef": REF}},
        "spec.sink.sasl.passwordSecretRef is needed",
    ),
    ({"sink.sasl": {"mechanism": "PLAIN", "passwordSecretRef": REF}}, "exactly one of username and"),
    ({"sink.sasl": {"mechanism": "OAUTHBEARER", "oauth": OAUTH, "username": "a"}}, "exactly one of username and"),
    (
        {
            "sink.sasl": {
                "mechanism": "PLAIN",
                "username": "a",
                "usernameSecretRef": REF,
                "passwordSecretRef": REF,
            }
        },
        "exactly one of username and",
    ),
    ({"sink.exactlyOnce": {}}, "spec.sink.exactlyOnce is only for delivery ExactlyOnce"),
    ({"sink.topics": {"partitions": 3}}, "spec.sink.topics.partitions, replicationFactor and config are used only"),
    ({"sink.maxRequestSize": "1023"}, "spec.sink.maxRequestSize must be from 1Ki to 256Mi"),
    ({"sink.maxRequestSize": "257Mi"}, "spec.sink.maxRequestSize must be from 1Ki to 256Mi"),
    ({"sink.maxRequestSize": "1M"}, "spec.sink.maxRequestSize"),
    ({"sink.bootstrapServers": []}, "spec.sink.bootstrapServers"),
    ({"sink.bootstrapServers": ["kafka"]}, "spec.sink.bootstrapServers"),
    ({"route.value": {"extendedJson": {}}}, "spec.route.value.extendedJson is only for format ExtendedJson"),
    ({"route.value": {"format": "CloudEvents"}}, "spec.route.value.cloudEvents, with its source, is needed"),
    ({"route.value": {"cloudEvents": {"source": "/a"}}}, "spec.route.value.cloudEvents, with its source, is needed"),
    ({"route.value": {"debezium": {}}}, "spec.route.value.debezium is only for format Debezium"),
    ({"failure.backoff": {"initial": "2s", "max": "1s"}}, "spec.failure.backoff.initial must not exceed"),
    ({"failure.hold.size": "1025Mi"}, "spec.failure.hold.size must be at most 1Gi"),
    ({"checkpoint.startFrom": {"position": "Time"}}, "spec.checkpoint.startFrom.time is needed with position Time"),
    (
        {"checkpoint.startFrom": {"time": "2026-01-01T00:00:00Z"}},
        "spec.checkpoint.startFrom.time is needed with position Time",
    ),
    ({"checkpoint.interval": "5"}, "spec.checkpoint.interval"),
    ({"relay.lease": {"duration": "9s", "renew": "5s"}}, "spec.relay.lease.renew must be at most half"),
    ({"relay.lease": {"duration": "1s", "renew": "500ms"}}, "spec.relay.lease.duration must be from 2s to 1h"),
    ({"relay.lease": {"duration": "2s", "renew": "499ms"}}, "spec.relay.lease.duration must be from 2s to 1h"),
    ({"relay.template": {"labels": {"outboxrelay.io/x": "y"}}}, "spec.relay.template.labels must not use"),
    ({"relay.template": {"labels": {"app.kubernetes.io/name": "y"}}}, "spec.relay.template.labels must not use"),
    ({"relay.template": {"annotations": {"outboxrelay.io/x": "y"}}}, "spec.relay.template.annotations must not use"),
    ({"source.mode": "Polling", "afterPublish": "Keep"}, "spec.afterPublish Keep does not work"),
    ({"source.mode": "Polling", "sink.delivery": "ExactlyOnce"}, "spec.sink.delivery ExactlyOnce does not work"),
    (
        {"source.mode": "Polling", "checkpoint.startFrom": {"position": "Now"}},
        "spec.checkpoint.startFrom.position must be Backlog",
    ),
    ({"afterPublish": "Delete", "retention": {"published": "7d"}}, "spec.retention works only with"),
    ({"source.database": "a/b"}, "spec.source.database"),
    ({"afterPublsh": "Mark"}, 'unknown field "spec.afterPublsh"'),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=lambda value: json.dumps(value)[:60])
def test_an_invalid_spec_is_refused_with_the_field_and_the_reason(
    server: ControlPlane, changes: Changes, message: str
) -> None:
    assert message in (refusal(server, "POST", RELAYS, manifest(changes)) or "accepted")


@pytest.mark.parametrize("name", ["n" * 45, "a", "orders-2"])
def test_a_name_that_is_a_label_of_at_most_45_characters_is_accepted(server: ControlPlane, name: str) -> None:
    assert refusal(server, "POST", RELAYS, manifest({}, name)) is None


@pytest.mark.parametrize(("name", "message"), [("n" * 46, "at most 45 characters"), ("a.b", "must be a DNS label")])
def test_a_longer_or_dotted_name_is_refused(server: ControlPlane, name: str, message: str) -> None:
    assert message in (refusal(server, "POST", RELAYS, manifest({}, name)) or "accepted")


TRANSITIONS: list[tuple[Changes, Changes, str | None]] = [
    ({}, {"afterPublish": "Keep"}, None),
    ({}, {"source.database": "other"}, IMMUTABLE),
    (
        {"suspend": True},
        {"source.collection": "other"},
        IMMUTABLE,
    ),
    ({}, {"source.mode": "Polling"}, "spec.source.mode may be changed only while suspended"),
    ({}, {"source.mode": "Polling", "suspend": True}, "spec.source.mode may be changed only while suspended"),
    ({"suspend": True}, {"source.mode": "Polling"}, None),
    ({}, {"sink.delivery": "ExactlyOnce"}, "spec.sink.delivery may be changed only while suspended"),
    ({"suspend": True}, {"sink.delivery": "ExactlyOnce"}, None),
    ({}, {"checkpoint.storage": "Secret"}, "spec.checkpoint.storage may be changed only while suspended"),
    ({"suspend": True}, {"checkpoint.storage": "Secret"}, None),
    ({}, {"relay.shards": 2}, "spec.relay.shards may be changed only while suspended"),
    ({"suspend": True}, {"relay.shards": 2, "suspend": False}, None),
]


@pytest.mark.parametrize(("before", "after", "message"), TRANSITIONS, ids=lambda value: json.dumps(value)[:60])
def test_what_is_fixed_is_fixed_and_what_needs_suspension_needs_it(
    server: ControlPlane, before: Changes, after: Changes, message: str | None
) -> None:
    created = server.request("POST", RELAYS, manifest(before))
    try:
        changed = manifest({**before, **after})
        changed["metadata"] = created["metadata"]
        answer = refusal(server, "PUT", f"{RELAYS}/orders", changed)
        if message is None:
            assert answer is None
        else:
            assert message in (answer or "accepted")
    finally:
        server.request("DELETE", f"{RELAYS}/orders")


def test_every_rule_of_the_schema_has_a_case_that_it_refuses() -> None:
    def messages(schema: dict[str, Any]) -> Iterator[str]:
        for rule in schema.get("x-kubernetes-validations", ()):
            yield rule["message"]
        for value in (*schema.get("properties", {}).values(), schema.get("items", {})):
            if value:
                yield from messages(value)

    expected = [message for _, message in REFUSED] + [message for _, _, message in TRANSITIONS if message]
    expected += ["at most 45 characters", "must be a DNS label"]
    assert [rule for rule in messages(openapi_schema()) if not any(text in rule for text in expected)] == []


def test_the_definition_reads_back_as_it_was_written(server: ControlPlane) -> None:
    live = server.request("GET", f"{CRDS}/{CRD_NAME}")
    assert live["spec"] == custom_resource_definition()["spec"]


def test_defaults_are_filled_in_by_the_server(server: ControlPlane) -> None:
    created = server.request("POST", f"{RELAYS}?dryRun=All", manifest({}))
    spec = created["spec"]
    assert spec["route"]["topic"] == "outbox.event.{aggregateType}"
    assert spec["route"]["headers"] == [{"name": "id", "value": "{id}"}, {"name": "type", "value": "{eventType}"}]
    assert spec["relay"]["lease"] == {"duration": "15s", "renew": "5s"}
    assert spec["checkpoint"]["startFrom"] == {"position": "Backlog", "republish": False}
    assert "polling" not in spec["source"]
    assert "exactlyOnce" not in spec["sink"]
