import json
from pathlib import Path

import pytest

from outbox_dev.kubernetes import cluster as clusters
from outbox_dev.kubernetes import own_engine
from outbox_dev.kubernetes.cluster import Cluster
from outbox_dev.kubernetes.engine import Engine, checkout_id, find_engine
from outbox_dev.processes import Processes
from outbox_dev.progress import SetupError


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OUTBOX_DEV_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str, exit_code: int) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    path.chmod(0o755)


def test_a_docker_that_answers_comes_before_podman(client: Path) -> None:
    program(client, "docker", 0)
    program(client, "podman", 0)

    assert find_engine() == Engine("docker")


def test_a_docker_client_without_a_daemon_is_no_engine(client: Path) -> None:
    program(client, "docker", 1)

    assert find_engine() is None


def test_podman_is_used_where_no_docker_answers(client: Path) -> None:
    program(client, "docker", 1)
    program(client, "podman", 0)

    assert find_engine() == Engine("podman", {"KIND_EXPERIMENTAL_PROVIDER": "podman"})


def test_two_checkouts_never_share_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = checkout_id()
    monkeypatch.setenv("OUTBOX_DEV_STATE", str(tmp_path / "other"))

    assert checkout_id() != first


def test_what_an_engine_in_a_namespace_reaches_is_run_inside_it() -> None:
    assert Engine("docker", netns="outbox-1").inside(["curl", "x"]) == [
        "nsenter",
        "--net=/run/netns/outbox-1",
        "curl",
        "x",
    ]
    assert Engine("docker").inside(["curl", "x"]) == ["curl", "x"]


def test_the_gateway_is_the_ipv4_one_of_docker_and_of_podman() -> None:
    docker = {"IPAM": {"Config": [{"Gateway": "fc00::1"}, {"Gateway": "172.18.0.1"}]}}
    podman = {"subnets": [{"gateway": "fd00::1"}, {"gateway": "10.89.0.1"}]}

    assert (clusters._gateway(docker), clusters._gateway(podman)) == ("172.18.0.1", "10.89.0.1")
    with pytest.raises(SetupError, match="no IPv4 gateway"):
        clusters._gateway({"IPAM": {"Config": [{"Subnet": "fc00::/64"}]}})


def test_kind_with_its_published_image_gets_no_workaround() -> None:
    assert clusters._kind_config(None) == {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "nodes": [{"role": "control-plane"}],
    }


def test_the_capability_workaround_is_applied_only_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_engine, "has_sys_resource", lambda: True)
    assert "containerdConfigPatches" not in clusters._kind_config("node:1")

    monkeypatch.setattr(own_engine, "has_sys_resource", lambda: False)
    assert "restrict_oom_score_adj = true" in clusters._kind_config("node:1")["containerdConfigPatches"][0]


def test_no_cluster_is_current_until_one_is_up() -> None:
    assert Cluster.current() is None


def test_a_cluster_is_found_again_by_another_process(tmp_path: Path) -> None:
    cluster = Cluster("c", tmp_path / "kubeconfig", "ns", "172.18.0.1", "docker", {"DOCKER_HOST": "unix:///s"})

    clusters._write(cluster)

    assert Cluster.current() == cluster


def test_the_users_cluster_is_taken_only_when_its_kubeconfig_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_state: Path
) -> None:
    monkeypatch.setenv("OUTBOX_DEV_CLUSTER", "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))

    with pytest.raises(SetupError, match="is not one file"):
        clusters.up(Processes(own_state))


def test_a_node_of_the_users_cluster_is_never_entered(tmp_path: Path) -> None:
    cluster = Cluster("prod", tmp_path / "kubeconfig", None, None, None, {})

    with pytest.raises(SetupError, match="not a kind cluster"):
        cluster.node_exec(["true"])
    with pytest.raises(SetupError, match="by a registry"):
        cluster.load_images("outbox-relay:dev")


def test_commands_for_the_cluster_see_its_kubeconfig_and_a_fitting_kubectl_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters.tools, "bin_dir", lambda: tmp_path / "fitting")
    environment = Cluster("c", tmp_path / "k", None, None, "docker", {"DOCKER_HOST": "unix:///s"}).environment()

    assert environment["KUBECONFIG"] == str(tmp_path / "k")
    assert environment["DOCKER_HOST"] == "unix:///s"
    assert environment["PATH"].startswith(f"{tmp_path / 'fitting'}:")


def test_the_runtime_takes_the_capability_out_of_bundles_and_processes_and_of_nothing_else(tmp_path: Path) -> None:
    """What runc is given: `--bundle DIR` at create, `--process FILE` at exec."""
    capabilities = ["CAP_CHOWN", "CAP_SYS_RESOURCE", "CAP_KILL"]
    spec = json.dumps({"bounding": capabilities, "first": capabilities[1:]}, separators=(",", ":"))
    bundle, process, other = tmp_path / "bundle", tmp_path / "process.json", tmp_path / "other.json"
    bundle.mkdir()
    for file in (bundle / "config.json", process, other):
        file.write_text(spec)
    runtime = tmp_path / "runc"
    runtime.write_text(own_engine._RUNC_WITHOUT_SYS_RESOURCE.format(runc="true"))
    runtime.chmod(0o755)

    clusters.run([runtime, "--log", other, "create", "--bundle", bundle, "id"])
    clusters.run([runtime, "exec", "--process", process, "id"])

    expected = {"bounding": ["CAP_CHOWN", "CAP_KILL"], "first": ["CAP_KILL"]}
    assert json.loads((bundle / "config.json").read_text()) == json.loads(process.read_text()) == expected
    assert other.read_text() == spec
