"""The checkpoint in a ConfigMap: written by the latest leader only, and never silently started anew."""

import json
from typing import Any

import pytest

from outbox_api import names
from outbox_api.checkpoint import Position
from outbox_api.report import Report
from outbox_relay.checkpoint.configmap import ConfigMapStore
from outbox_relay.checkpoint.store import StoreError, SupersededError
from outbox_relay.kube.client import KubeClient
from outbox_relay.problems import StalledError

SOURCE = "shop.outbox"


def at(seconds: int) -> Position:
    return Position(cluster_time=f"{seconds}.1", token="{}")


def store(client: KubeClient, shard: Any) -> ConfigMapStore:
    return ConfigMapStore(client, shard.runtime, 0)


async def test_each_claim_raises_the_epoch_and_finds_the_position(client: KubeClient, shard: Any) -> None:
    first = store(client, shard)
    claimed = await first.claim(SOURCE)
    assert (claimed.checkpoint.epoch, claimed.checkpoint.position, claimed.lost) == (1, None, None)
    await first.write(at(5))
    again = await store(client, shard).claim(SOURCE)
    assert (again.checkpoint.epoch, again.checkpoint.position) == (2, at(5))


async def test_an_older_leader_cannot_write_over_a_later_ones_position(client: KubeClient, shard: Any) -> None:
    older, later = store(client, shard), store(client, shard)
    await older.claim(SOURCE)
    await older.write(at(5))
    await later.claim(SOURCE)
    with pytest.raises(SupersededError):
        await older.write(at(9))
    assert shard.checkpoint()["position"]["clusterTime"] == "5.1"
    await later.write(at(7))
    with pytest.raises(SupersededError):
        await older.write(at(9))
    assert shard.checkpoint()["position"]["clusterTime"] == "7.1"


async def test_an_edit_of_its_metadata_is_no_obstacle_and_is_kept(client: KubeClient, shard: Any) -> None:
    keeper = store(client, shard)
    await keeper.claim(SOURCE)
    shard.edit(shard.checkpoint_path, lambda found: found["metadata"]["labels"].update(edited="yes"))
    await keeper.write(at(5))
    found = shard.plane.request("GET", shard.checkpoint_path)
    assert found["metadata"]["labels"]["edited"] == "yes"
    assert shard.checkpoint()["position"]["clusterTime"] == "5.1"


async def test_a_checkpoint_that_is_deleted_is_made_again_by_the_running_leader(client: KubeClient, shard: Any) -> None:
    keeper = store(client, shard)
    await keeper.claim(SOURCE)
    await keeper.write(at(5))
    shard.plane.request("DELETE", shard.checkpoint_path)
    await keeper.write(at(6))
    assert shard.checkpoint() == {"epoch": 1, "source": SOURCE, "position": at(6).wire()}
    assert shard.plane.request("GET", shard.checkpoint_path)["metadata"]["labels"] == shard.runtime.labels
    assert keeper.was_missing()


async def test_a_checkpoint_that_is_missing_at_the_start_is_waited_for(client: KubeClient, shard: Any) -> None:
    shard.plane.request("DELETE", shard.checkpoint_path)
    keeper = store(client, shard)
    with pytest.raises(StoreError, match="not found"):
        await keeper.claim(SOURCE)
    assert keeper.was_missing()


async def test_a_position_that_the_operator_remembers_is_history_lost(client: KubeClient, shard: Any) -> None:
    shard.edit(
        shard.checkpoint_path,
        lambda found: found["metadata"].setdefault("annotations", {}).update({names.ANNOTATION_POSITION_LOST: "7.1"}),
    )
    assert (await store(client, shard).claim(SOURCE)).lost == "7.1"


async def test_a_position_that_the_last_report_names_is_history_lost(client: KubeClient, shard: Any) -> None:
    report = Report(state="Streaming", reason="Streaming", message="", time="2026-01-01T00:00:00Z", position="9.3")
    shard.edit(
        shard.report_path, lambda found: found.update(data={names.REPORT_KEY: report.model_dump_json(by_alias=True)})
    )
    assert (await store(client, shard).claim(SOURCE)).lost == "9.3"


async def test_the_position_of_another_source_is_refused(client: KubeClient, shard: Any) -> None:
    keeper = store(client, shard)
    await keeper.claim(SOURCE)
    await keeper.write(at(5))
    with pytest.raises(StalledError, match=r"of shop.outbox, not of shop.other"):
        await store(client, shard).claim("shop.other")


async def test_a_text_that_is_no_checkpoint_is_not_written_over(client: KubeClient, shard: Any) -> None:
    shard.edit(
        shard.checkpoint_path, lambda found: found.update(data={names.CHECKPOINT_KEY: json.dumps({"epoch": "x"})})
    )
    with pytest.raises(StalledError, match="does not hold a checkpoint"):
        await store(client, shard).claim(SOURCE)
    assert shard.checkpoint() == {"epoch": "x"}
