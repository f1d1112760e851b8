from pathlib import Path

import pytest
import yaml

from outbox_api.checkpoint import ClusterTime
from outbox_api.generate import generated_files, main, stale_files
from outbox_api.names import MAX_NAME_LENGTH, checkpoint, config, deployment, lease, relay, report

ROOT = Path(__file__).parents[2]


def test_the_committed_files_are_those_that_the_models_give() -> None:
    assert stale_files(ROOT) == []


def test_a_stale_file_fails_the_check_by_name_and_is_mended_by_writing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check"], tmp_path) == 1
    assert "crds/outboxrelays.yaml is stale" in capsys.readouterr().err
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0


def test_the_chart_holds_the_same_definition_between_its_toggles() -> None:
    files = generated_files()
    crd = files[Path("crds/outboxrelays.yaml")]
    chart = files[Path("charts/outbox-relay-operator/templates/crd.yaml")]
    plain = "".join(
        line
        for line in chart.splitlines(keepends=True)
        if "{{-" not in line and line not in ("  annotations:\n", "    helm.sh/resource-policy: keep\n")
    )
    assert yaml.safe_load(plain) == yaml.safe_load(crd)


def test_the_longest_name_gives_a_deployment_and_a_service_account_that_are_dns_labels() -> None:
    name = "n" * MAX_NAME_LENGTH
    assert len(deployment(name, 63)) <= 63
    assert len(relay(name)) <= 63


def test_no_two_children_of_a_relay_share_a_name() -> None:
    shards = [make("orders", shard) for shard in (0, 1, 11) for make in (deployment, lease, checkpoint, report)]
    names = [config("orders"), relay("orders"), *shards]
    assert len(set(names)) == len(names)


def test_cluster_times_are_ordered_by_second_then_increment_and_read_back() -> None:
    assert ClusterTime(1, 9) < ClusterTime(2, 1) < ClusterTime(2, 10)
    assert ClusterTime.parse(str(ClusterTime(1_700_000_000, 3))) == ClusterTime(1_700_000_000, 3)
