from pathlib import Path

import pytest

from outbox_relay.config import ConfigurationError, load_relay_config, load_routed_spec

RELAY = """
spec:
  source: {uriFile: /etc/uri, database: shop, collection: outbox}
  sink: {bootstrapServers: ["127.0.0.1:9092"]}
  route: {topic: "shop.{aggregateType}"}
runtime: {name: orders, checkpoint: {file: position.json}}
"""
MANIFEST = """
apiVersion: outboxrelay.io/v1alpha1
kind: OutboxRelay
metadata: {name: orders}
spec:
  source: {uriSecretRef: {name: mongo, key: uri}, database: shop, collection: outbox}
  sink: {bootstrapServers: ["kafka:9092"]}
  route: {topic: "shop.{aggregateType}"}
"""
OTHERS = """
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
"""


def problems(path: Path, load: object = load_relay_config) -> list[str]:
    with pytest.raises(ConfigurationError) as refused:
        load(path)  # type: ignore[operator]
    assert str(refused.value) == "\n".join(map(str, refused.value.problems))
    return [str(problem) for problem in refused.value.problems]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "relay.yaml"


def test_a_relay_configuration_is_read(file: Path) -> None:
    file.write_text(RELAY)
    assert load_relay_config(file).spec.source.uri_file == "/etc/uri"
    assert load_routed_spec(file).route.topic == "shop.{aggregateType}"


@pytest.mark.parametrize("text", [MANIFEST, OTHERS + MANIFEST, MANIFEST + OTHERS])
def test_a_preview_takes_the_manifest_among_others(file: Path, text: str) -> None:
    file.write_text(text)
    assert load_routed_spec(file).route.topic == "shop.{aggregateType}"


def test_a_manifest_is_no_relay_configuration_and_two_manifests_are_one_too_many(file: Path) -> None:
    file.write_text(MANIFEST)
    assert problems(file)[0].startswith(f"{file}: is a manifest of kind OutboxRelay, which the operator reads")
    file.write_text(f"{MANIFEST}\n---\n{MANIFEST}")
    assert problems(file, load_routed_spec) == [f"{file}: holds 2 OutboxRelay manifests; leave one"]


def test_every_problem_of_a_file_is_one_line_with_path_and_next_step(file: Path) -> None:
    file.write_text(
        """
spec:
  source: {uriFile: /etc/uri, database: "a b", colection: outbox}
  sink: {bootstrapServers: ["kafka"]}
runtime: {name: orders}
"""
    )
    assert problems(file) == [
        "spec.source.database: String should match pattern '^[^/\\\\. \"$*<>:|?]+$'; correct the value",
        "spec.source.collection: is required: add it",
        "spec.source.colection: is not a known field: correct its name or remove it",
        "spec.sink.bootstrapServers[0]: String should match pattern "
        "'^(\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9._-]+):[0-9]{1,5}$'; correct the value",
    ]


def test_a_rule_between_fields_says_what_to_do_itself(file: Path) -> None:
    file.write_text(RELAY.replace(", checkpoint: {file: position.json}", ""))
    assert problems(file) == [
        "configuration: runtime.checkpoint.file is missing: name the file that keeps the position"
    ]


def test_a_manifest_names_its_fields_as_the_user_wrote_them(file: Path) -> None:
    file.write_text(MANIFEST.replace("collection: outbox", "collections: outbox"))
    assert problems(file, load_routed_spec) == [
        "spec.source.collection: is required: add it",
        "spec.source.collections: is not a known field: correct its name or remove it",
    ]
    file.write_text("apiVersion: outboxrelay.io/v1alpha1\nkind: OutboxRelay\n")
    assert problems(file, load_routed_spec)[0] == "spec.source: is required: add it"


def test_a_route_that_cannot_be_compiled_is_a_problem_of_the_file(file: Path) -> None:
    for text in (RELAY, MANIFEST):
        file.write_text(text.replace("{aggregateType}", "{aggregateType"))
        (problem,) = problems(file, load_routed_spec)
        assert problem.startswith("spec.route.topic: 'shop.{aggregateType' has a brace without its other half")


def test_a_preview_refuses_what_its_route_asks_for_and_is_not_built(file: Path) -> None:
    file.write_text(MANIFEST.replace("route: {", "route: {value: {format: Raw}, "))
    assert problems(file, load_routed_spec) == ["spec.route.value.format: is not implemented yet: remove it"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a: [", "is not valid YAML: "),
        (b"a: \x01", "is not valid YAML: "),
        (b"\xff", "is not UTF-8 text: save it as UTF-8"),
        (b"", "holds 0 YAML documents; a relay configuration is one"),
        (b"a: 1\n---\nb: 1", "holds 2 YAML documents; a relay configuration is one"),
    ],
)
def test_a_file_that_is_not_one_yaml_document_is_said_to_be_so(file: Path, content: bytes, problem: str) -> None:
    file.write_bytes(content)
    (found,) = problems(file)
    assert found.startswith(str(file))
    assert f": {problem}" in found


def test_a_file_that_cannot_be_read_and_one_that_is_no_mapping_are_said_to_be_so(file: Path) -> None:
    assert problems(file) == [f"{file}: cannot be read: No such file or directory"]
    file.write_text("- 1")
    (found,) = problems(file)
    assert found.startswith("configuration: ")
