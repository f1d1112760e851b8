from pathlib import Path

import pytest

from outbox_dev.kubernetes import tools
from outbox_dev.progress import SetupError


def program(folder: Path, name: str, prints: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "built"
    monkeypatch.setattr(tools, "build", lambda name: folder / name)
    return folder


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v1.36.3", (1, 36, 3)),
        ("kind v0.33.0 go1.26.8 linux/amd64", (0, 33, 0)),
        ("go version go1.26", (1, 26)),
        ("", ()),
    ],
)
def test_versions_compare_as_numbers(text: str, version: tuple[int, ...]) -> None:
    assert tools.parse_version(text) == version


@pytest.mark.parametrize(("minor", "suits"), [(34, False), (35, True), (36, True), (37, True), (38, False)])
def test_a_kubectl_is_used_if_it_is_within_one_minor_version(
    on_path: Path, built: Path, minor: int, suits: bool
) -> None:
    found = program(on_path, "kubectl", f'{{"clientVersion": {{"gitVersion": "v1.{minor}.1"}}}}')

    assert tools.kubectl() == (found if suits else built / "kubectl")


def test_a_program_that_does_not_say_its_version_is_not_used(on_path: Path, built: Path) -> None:
    program(on_path, "helm", "no idea")

    assert tools.helm() == built / "helm"


@pytest.mark.parametrize(("version", "suits"), [("v3.13.3", False), ("v3.14.0", True), ("v4.0.1", True)])
def test_a_helm_is_used_from_3_14_on(on_path: Path, built: Path, version: str, suits: bool) -> None:
    found = program(on_path, "helm", f"{version}+g1234")

    assert tools.helm() == (found if suits else built / "helm")


@pytest.mark.parametrize(("version", "suits"), [("0.23.0", False), ("0.24.0", True), ("0.33.0", True)])
def test_a_kind_is_used_from_0_24_on(on_path: Path, built: Path, version: str, suits: bool) -> None:
    found = program(on_path, "kind", f"kind v{version} go1.26.8 linux/amd64")

    assert tools.kind() == (found if suits else built / "kind")


def test_without_go_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SetupError, match=r"Install Go 1\.\d+"):
        tools.check_go()


def test_a_go_that_is_too_old_and_may_not_upgrade_itself_is_refused(on_path: Path) -> None:
    path = on_path / "go"
    path.write_text("#!/bin/sh\ncase $1 in version) echo go version go1.20 linux/amd64;; env) echo local;; esac\n")
    path.chmod(0o755)

    with pytest.raises(SetupError, match=r"too old: go version go1\.20"):
        tools.check_go()


def test_a_go_that_upgrades_itself_will_do(on_path: Path) -> None:
    path = on_path / "go"
    path.write_text("#!/bin/sh\ncase $1 in version) echo go version go1.21.3 linux/amd64;; env) echo auto;; esac\n")
    path.chmod(0o755)

    tools.check_go()


def test_every_program_has_a_version_in_the_module() -> None:
    assert tools.kubernetes_version().startswith("v1.")
    with pytest.raises(LookupError, match="nobody/knows"):
        tools.module_version("nobody/knows")


def test_a_cached_program_depends_on_the_module_and_its_own_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "tools"
    for name in ("kube", "pause"):
        (module / name).mkdir(parents=True)
        (module / name / "main.go").write_text("package main\n")
    for name in ("go.mod", "go.sum"):
        (module / name).write_bytes((tools.module_dir() / name).read_bytes())
    monkeypatch.setattr(tools, "module_dir", lambda: module)
    kube, pause = tools.cache_key("kube"), tools.cache_key("pause")

    (module / "pause" / "main.go").write_text("package main // other\n")
    assert (tools.cache_key("kube") == kube, tools.cache_key("pause") == pause) == (True, False)

    (module / "go.sum").write_text("")
    assert tools.cache_key("kube") != kube


def test_links_made_by_a_program_that_has_them_on_its_path_still_lead_to_the_programs(
    on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTBOX_DEV_STATE", str(tmp_path / "state"))
    programs = {
        "kubectl": program(
            on_path, "kubectl", f'{{"clientVersion": {{"gitVersion": "{tools.kubernetes_version()}"}}}}'
        ),
        "helm": program(on_path, "helm", "v3.22.0"),
    }
    for _ in range(2):
        links = tools.bin_dir()
        assert {link.name: link.readlink() for link in links.iterdir()} == programs
        monkeypatch.setenv("PATH", f"{links}:{on_path}:/usr/bin:/bin")
