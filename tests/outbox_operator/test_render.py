"""Rendering: each golden folder holds a resource and the children that it must become.

`UPDATE_GOLDEN=1 pytest tests/outbox_operator/test_render.py` writes the expected files anew; read the difference.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from outbox_api.crd import openapi_schema
from outbox_api.relay_config import RelayConfig
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.render.children import expected, render
from outbox_operator.render.config import configuration
from outbox_operator.settings import RelayDefaults

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.name for path in GOLDEN.iterdir())
DEFAULTS = RelayDefaults("registry.example/outbox-relay:1.0", "IfNotPresent", ("operator-pull",))


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they are read, and nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the name is the base class's
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def load(case: str) -> OutboxRelay:
    obj = yaml.safe_load((GOLDEN / case / "outboxrelay.yaml").read_text())
    obj["metadata"] = {
        "uid": "0e3a1d0e-0000-4000-8000-000000000000",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        **obj["metadata"],
    }
    return OutboxRelay.of(obj)


def rendered(relay: OutboxRelay) -> list[dict[str, Any]]:
    assert relay.spec is not None, relay.invalid
    children = expected(relay.key.name, relay.spec.relay.shards)
    found = render(relay, relay.spec, dict.fromkeys(children), DEFAULTS, stopped=relay.spec.suspend)
    assert list(found) == children
    return list(found.values())


@pytest.mark.parametrize("case", CASES)
def test_a_resource_becomes_exactly_these_children(case: str) -> None:
    text = yaml.dump_all(rendered(load(case)), Dumper=_Dumper, sort_keys=False, width=120)
    path = GOLDEN / case / "children.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("case", CASES)
def test_rendering_twice_gives_the_same(case: str) -> None:
    assert rendered(load(case)) == rendered(load(case))


@pytest.mark.parametrize("case", CASES)
def test_the_relay_can_read_its_configuration(case: str) -> None:
    relay = load(case)
    assert relay.spec is not None
    file = configuration(relay, relay.spec)
    config = RelayConfig.model_validate(yaml.safe_load(file.text))
    assert config.runtime.listen.host is None
    assert (config.runtime.name, config.runtime.uid) == (relay.key.name, relay.uid)
    assert config.spec.route == relay.spec.route


@pytest.mark.parametrize("case", CASES)
def test_every_pod_is_restricted_and_every_child_carries_our_labels_only(case: str) -> None:
    relay = load(case)
    for child in rendered(relay):
        labels = child["metadata"]["labels"]
        assert all(key.startswith(("outboxrelay.io/", "app.kubernetes.io/")) for key in labels)
        assert child["metadata"]["namespace"] == relay.key.namespace
        if child["kind"] != "Deployment":
            continue
        pod = child["spec"]["template"]["spec"]
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert all("hostPath" not in volume for volume in pod["volumes"])
        assert (
            child["spec"]["selector"]["matchLabels"].items() <= child["spec"]["template"]["metadata"]["labels"].items()
        )


@pytest.mark.parametrize(
    ("change", "restarts"),
    [
        ({"suspend": True}, False),
        ({"monitoring": {"alerts": {"lag": "10s"}}}, False),
        ({"relay": {"template": {"labels": {"team": "shop"}}}}, False),
        ({"route": {"key": "{aggregateType}"}}, True),
        ({"relay": {"lease": {"duration": "5s", "renew": "1s"}}}, True),
        ({"afterPublish": "Keep"}, True),
    ],
)
def test_the_configuration_changes_only_by_what_the_relay_acts_on(change: dict[str, Any], restarts: bool) -> None:
    before, after = load("minimal"), load("minimal")
    assert before.spec is not None
    assert after.spec is not None
    spec = type(after.spec).model_validate({**after.spec.wire(), **change})
    assert (configuration(before, before.spec).hash != configuration(after, spec).hash) is restarts


def test_the_pods_name_cannot_be_replaced_by_the_user() -> None:
    deployment = next(child for child in rendered(load("template")) if child["kind"] == "Deployment")
    names = [env["name"] for env in deployment["spec"]["template"]["spec"]["containers"][0]["env"]]
    assert names.count("POD_NAME") == 1


def test_each_golden_resource_uses_fields_of_the_schema_only() -> None:
    known = openapi_schema()["properties"]["spec"]["properties"]
    for case in CASES:
        obj = yaml.safe_load((GOLDEN / case / "outboxrelay.yaml").read_text())
        assert obj["spec"].keys() <= known.keys()
