from collections.abc import Mapping
from pathlib import Path

import pytest

from outbox_dev import images
from outbox_dev.kubernetes.cluster import Cluster
from outbox_dev.kubernetes.engine import Engine
from outbox_dev.paths import repo_root
from outbox_dev.progress import SetupError

RELAY = images.IMAGES[0]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the files that the relay's image is made of."""
    for path in (RELAY.dockerfile, RELAY.lock, *(f"{folder}/__init__.py" for folder in RELAY.code)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"# {path}\n")
    monkeypatch.setattr(images, "repo_root", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "path", [RELAY.dockerfile, RELAY.lock, "crds/outbox_api/__init__.py", "crds/outbox_api/new.py"]
)
def test_an_edit_to_what_an_image_is_made_of_builds_it_again(checkout: Path, path: str) -> None:
    before = images._content(RELAY, None)
    (checkout / path).write_text("# other\n")

    assert images._content(RELAY, None) != before


def test_byte_code_and_edits_elsewhere_build_nothing(checkout: Path) -> None:
    before = images._content(RELAY, None)
    cache = checkout / "crds/outbox_api/__pycache__"
    cache.mkdir()
    (cache / "x.pyc").write_bytes(b"")
    (checkout / "README.md").write_text("other")

    assert images._content(RELAY, None) == before


def test_another_base_image_builds_again(checkout: Path) -> None:
    assert images._content(RELAY, "debian:12") != images._content(RELAY, None)


def test_what_an_image_is_made_of_exists() -> None:
    missing = [
        path
        for source in images.IMAGES
        for path in (source.dockerfile, source.lock, *source.code)
        if not (repo_root() / path).exists()
    ]

    assert missing == []


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "outbox-relay:dev"),
        ({"OUTBOX_DEV_IMAGE_PREFIX": "registry.example/team/"}, "registry.example/team/outbox-relay:dev"),
    ],
)
def test_a_registry_prefix_goes_before_the_name(
    monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str], expected: str
) -> None:
    monkeypatch.delenv("OUTBOX_DEV_IMAGE_PREFIX", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert images.reference("outbox-relay") == expected


def test_a_users_cluster_gets_images_only_by_a_registry_that_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OUTBOX_DEV_IMAGE_PREFIX", raising=False)
    cluster = Cluster("prod", tmp_path / "kubeconfig", None, None, None, {})

    with pytest.raises(SetupError, match="Set OUTBOX_DEV_IMAGE_PREFIX"):
        images.load(cluster, Engine("docker"))


@pytest.mark.parametrize("source", images.IMAGES, ids=lambda source: source.name)
def test_images_run_as_a_numbered_user_who_is_not_root(source: images.ImageSource) -> None:
    lines = (repo_root() / source.dockerfile).read_text().splitlines()

    assert [line for line in lines if line.startswith("USER")] == ["USER 65532:65532"]
