from typing import Any

import pytest
from pydantic import ValidationError

from outbox_api.relay_config import MountedKey, RelayConfig, to_relay_spec
from outbox_api.spec import OutboxRelaySpec, field_names, order_field
from outbox_api.unimplemented import not_implemented


def spec(**changes: Any) -> OutboxRelaySpec:
    source = {"uriSecretRef": {"name": "mongo", "key": "uri"}, "database": "shop", "collection": "outbox"}
    sink: dict[str, Any] = {"bootstrapServers": ["kafka:9092"]}
    return OutboxRelaySpec.model_validate(
        {"source": source | changes.pop("source", {}), "sink": sink | changes.pop("sink", {}), **changes}
    )


def test_every_secret_reference_becomes_a_file_of_the_same_stem_and_a_key_to_mount() -> None:
    full = spec(
        source={"tls": {"caRef": {"kind": "ConfigMap", "name": "cas", "key": "ca.crt"}}},
        sink={
            "tls": {
                "clientCertificateSecretRef": {"name": "c", "certificateKey": "tls.crt", "privateKeyKey": "tls.key"}
            },
            "sasl": {
                "mechanism": "SCRAM-SHA-512",
                "usernameSecretRef": {"name": "kafka", "key": "user"},
                "passwordSecretRef": {"name": "kafka", "key": "password"},
            },
        },
    )
    relay, keys = to_relay_spec(full, "/secrets")
    wire = relay.wire()
    assert wire["source"]["uriFile"] == "/secrets/secret-mongo/uri"
    assert wire["source"]["tls"] == {"caFile": "/secrets/configmap-cas/ca.crt"}
    assert wire["sink"]["tls"] == {
        "clientCertificateFile": "/secrets/secret-c/tls.crt",
        "clientPrivateKeyFile": "/secrets/secret-c/tls.key",
    }
    assert wire["sink"]["sasl"] == {
        "mechanism": "SCRAM-SHA-512",
        "usernameFile": "/secrets/secret-kafka/user",
        "passwordFile": "/secrets/secret-kafka/password",
    }
    assert keys == [
        MountedKey("Secret", "mongo", "uri"),
        MountedKey("ConfigMap", "cas", "ca.crt"),
        MountedKey("Secret", "c", "tls.crt"),
        MountedKey("Secret", "c", "tls.key"),
        MountedKey("Secret", "kafka", "user"),
        MountedKey("Secret", "kafka", "password"),
    ]


def test_an_oauth_client_secret_becomes_a_file_and_a_key_named_twice_is_mounted_once() -> None:
    oauth = {
        "tokenEndpoint": "https://idp/token",
        "clientId": "relay",
        "clientSecretRef": {"name": "mongo", "key": "uri"},
    }
    relay, keys = to_relay_spec(spec(sink={"sasl": {"mechanism": "OAUTHBEARER", "oauth": oauth}}), "/secrets")
    assert relay.sink.sasl is not None
    assert relay.sink.sasl.oauth is not None
    assert relay.sink.sasl.oauth.client_secret_file == "/secrets/secret-mongo/uri"
    assert keys == [MountedKey("Secret", "mongo", "uri")]


def test_the_relay_reads_back_the_spec_that_was_written_for_it() -> None:
    relay, _ = to_relay_spec(spec(), "/secrets")
    config = RelayConfig.model_validate(
        {"spec": relay.wire(), "runtime": {"name": "orders", "checkpoint": {"file": "position.json"}}}
    )
    assert config.spec == relay


@pytest.mark.parametrize(
    ("runtime", "message"),
    [
        ({"name": "orders"}, "runtime.checkpoint.file is missing"),
        ({"name": "orders", "election": "Kubernetes", "checkpoint": {"file": "x"}}, "remove it"),
    ],
)
def test_a_checkpoint_has_exactly_one_place(runtime: dict[str, Any], message: str) -> None:
    relay, _ = to_relay_spec(spec(), "/secrets")
    with pytest.raises(ValidationError, match=message):
        RelayConfig.model_validate({"spec": relay.wire(), "runtime": runtime})


def test_fields_are_those_of_the_preset_except_where_renamed() -> None:
    outbox = field_names(spec().source.fields)
    assert (outbox.id, outbox.aggregate_type, outbox.event_type) == ("_id", "aggregate", "event_type")
    debezium = field_names(spec(source={"fields": {"preset": "Debezium", "payload": "body.data"}}).source.fields)
    assert (debezium.aggregate_type, debezium.event_type, debezium.payload) == ("aggregatetype", "type", "body.data")


def test_a_sweep_is_ordered_by_time_and_under_debezium_by_id() -> None:
    assert order_field(spec().source) == "occurredAt"
    assert order_field(spec(source={"fields": {"preset": "Debezium"}}).source) == "id"
    assert order_field(spec(source={"orderField": "seq"}).source) == "seq"


def test_a_default_spec_asks_for_nothing_that_is_not_built() -> None:
    default = spec()
    assert not_implemented(default, default.source, default.sink) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"source": {"mode": "Polling"}}, "spec.source.mode: Polling"),
        ({"source": {"tls": {}}}, "spec.source.tls"),
        ({"sink": {"tls": {}}}, "spec.sink.tls"),
        ({"sink": {"delivery": "ExactlyOnce"}}, "spec.sink.delivery: ExactlyOnce"),
        ({"sink": {"topics": {"create": True}}}, "spec.sink.topics.create"),
        ({"route": {"value": {"format": "Raw"}}}, "spec.route.value.format"),
        ({"route": {"value": {"from": "Document"}}}, "spec.route.value.from"),
        ({"route": {"value": {"expandPayload": True}}}, "spec.route.value.expandPayload"),
        ({"route": {"value": {"envelope": [{"name": "a", "field": "id"}]}}}, "spec.route.value.envelope"),
        ({"route": {"value": {"tombstoneOnEmptyPayload": True}}}, "spec.route.value.tombstoneOnEmptyPayload"),
        ({"route": {"value": {"schemaVersionField": "v"}}}, "spec.route.value.schemaVersionField"),
        ({"retention": {"published": "7d"}}, "spec.retention"),
        ({"failure": {"maxAttempts": 3}}, "spec.failure.maxAttempts"),
        ({"failure": {"hold": {"events": 5}}}, "spec.failure.hold"),
        ({"failure": {"onTopicUnavailable": "DeadLetter"}}, "spec.failure.onTopicUnavailable: DeadLetter"),
        ({"failure": {"deadLetter": {"topic": "dlq"}}}, "spec.failure.deadLetter"),
        ({"checkpoint": {"storage": "Secret"}}, "spec.checkpoint.storage: Secret"),
        ({"checkpoint": {"deletionPolicy": "Retain"}}, "spec.checkpoint.deletionPolicy: Retain"),
        ({"checkpoint": {"startFrom": {"position": "Now"}}}, "spec.checkpoint.startFrom.position"),
        ({"checkpoint": {"startFrom": {"republish": True}}}, "spec.checkpoint.startFrom.republish"),
        ({"checkpoint": {"onHistoryLost": "SkipToNow"}}, "spec.checkpoint.onHistoryLost: SkipToNow"),
        ({"relay": {"shards": 2}}, "spec.relay.shards"),
        ({"relay": {"standbys": 1}}, "spec.relay.standbys"),
        ({"relay": {"networkPolicy": {"enabled": True}}}, "spec.relay.networkPolicy"),
        ({"monitoring": {"podMonitor": {"labels": {"a": "b"}}}}, "spec.monitoring.podMonitor.labels"),
        ({"monitoring": {"alerts": {"lag": "5s"}}}, "spec.monitoring.alerts"),
    ],
)
def test_a_field_that_asks_for_what_is_not_built_is_named(changes: dict[str, Any], field: str) -> None:
    asked = spec(**changes)
    assert not_implemented(asked, asked.source, asked.sink) == [field]
    relay, _ = to_relay_spec(asked, "/secrets")
    assert not_implemented(relay, relay.source, relay.sink) == [field]
