"""What the examples show is what the programs do."""

import json
from pathlib import Path
from typing import Any

import yaml

from outbox_dev.paths import repo_root
from outbox_relay.config import load_relay_config, load_routed_spec
from outbox_relay.preview import preview
from outbox_relay.render import Renderer

EXAMPLES = repo_root() / "examples"


def shown(configuration: Path) -> list[Any]:
    lines = (EXAMPLES / "preview/orders.jsonl").read_bytes().splitlines()
    outcomes = list(preview(lines, Renderer.from_spec(load_routed_spec(configuration))))
    return [json.loads(outcome) for outcome in outcomes if isinstance(outcome, bytes)]


def test_the_preview_example_shows_records_of_every_kind_and_a_dead_letter() -> None:
    placed, paid, scanned, text, refused = shown(EXAMPLES / "local/relay.yaml")
    assert (placed["topic"], placed["key"]) == ("outbox.event.Order", "order-000042")
    assert json.loads(paid["value"]) == {
        "paid_at": "2024-03-12T08:00:01.000Z",
        "amount": "12.50",
        "payment": "0d2e7a54-93a5-4b1c-8a52-6f0f8e0a9b11",
    }
    assert [name for name, _ in paid["headers"]] == ["id", "type", "traceparent"]
    assert (scanned["key_base64"], scanned["value_base64"]) == ("AP8Q", "/9j/4A==")
    assert text["value"] == '{"already":"JSON"}'
    assert refused["deadLetter"]["reason"] == "MissingField"


def test_the_laptop_and_the_cluster_make_the_same_records() -> None:
    assert shown(EXAMPLES / "local/relay.yaml") == shown(EXAMPLES / "kubernetes/outboxrelay.yaml")


def test_the_files_that_the_laptop_configuration_names_are_there() -> None:
    config = load_relay_config(EXAMPLES / "local/relay.yaml")
    assert (repo_root() / config.spec.source.uri_file).read_text().startswith("mongodb://")


def test_the_manifests_belong_together() -> None:
    namespace, secret, relay = (
        yaml.safe_load((EXAMPLES / f"kubernetes/{name}.yaml").read_text())
        for name in ("namespace", "secret", "outboxrelay")
    )
    assert secret["metadata"]["namespace"] == relay["metadata"]["namespace"] == namespace["metadata"]["name"]
    reference = relay["spec"]["source"]["uriSecretRef"]
    assert reference["name"] == secret["metadata"]["name"]
    assert reference["key"] in secret["stringData"]
