"""Relays as pods would run them: one leads, another stands by, and nothing is lost between them."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest

DURATION = 4.0
LEASE = {"duration": "4s", "renew": "1s"}


@pytest.fixture
def pod(outbox: Any, new_relay: Any, shard: Any) -> Any:
    """Make a relay that takes part in the election under a pod's name."""

    def make(name: str, kubeconfig: Path | None = None, **options: Any) -> Any:
        runtime = shard.runtime.wire()
        options.setdefault("relay", {"lease": LEASE})
        return new_relay(
            outbox,
            name=name,
            runtime={**runtime, "name": "orders", "listen": {"port": 0}},
            env={"POD_NAME": name, "KUBECONFIG": str(kubeconfig or shard.user.kubeconfig)},
            **options,
        ).start()

    return make


@pytest.fixture
def leader(shard: Any, eventually: Any) -> Any:
    """Wait until the report names a leader that streams."""

    def wait(name: str, within: float = 60.0) -> None:
        def leads() -> bool:
            report = shard.report()
            return (report.get("leader"), report.get("state")) == (name, "Streaming")

        eventually(leads, f"{name} leads and streams", within)

    return wait


def test_a_leader_reports_itself_and_its_position(
    outbox: Any, pod: Any, leader: Any, shard: Any, eventually: Any
) -> None:
    relay = pod("pod-a")
    leader("pod-a")
    outbox.emit(100)
    assert outbox.wait_until_delivered().holds
    eventually(lambda: shard.checkpoint().get("position", {}).get("token"), "a position")
    assert shard.holder() == "pod-a"
    code, _ = relay.terminate()
    assert code == 0
    report = shard.report()
    assert (report["state"], report["leader"], report["epoch"]) == ("Stopped", "pod-a", 1)
    assert report["position"]
    assert shard.holder() == "", "a drained leader releases its Lease"


@pytest.mark.timeout(240)
def test_a_leader_that_is_killed_is_followed_within_the_lease_and_two_seconds(
    outbox: Any, pod: Any, leader: Any, shard: Any, eventually: Any
) -> None:
    first = pod("pod-a")
    leader("pod-a")
    standby = pod("pod-b")
    eventually(lambda: standby.page("/readyz")[0] == 200, "a standby that could lead")
    outbox.emit(500)
    eventually(lambda: outbox.arrived() > 0, "the first record")
    first.kill()
    killed = time.monotonic()
    outbox.emit(500)
    eventually(lambda: shard.holder() == "pod-b", "another leader")
    # Two seconds on an idle machine; tests share theirs.
    assert time.monotonic() - killed < DURATION + 2 + 3
    verdict = outbox.wait_until_delivered()
    assert verdict.holds, verdict
    assert shard.checkpoint()["epoch"] == 2


@pytest.mark.timeout(240)
def test_a_planned_handover_loses_and_repeats_nothing(
    outbox: Any, pod: Any, leader: Any, shard: Any, eventually: Any
) -> None:
    first = pod("pod-a", afterPublish="Keep")
    leader("pod-a")
    standby = pod("pod-b", afterPublish="Keep")
    eventually(lambda: standby.page("/readyz")[0] == 200, "a standby that could lead")
    outbox.emit(300)
    code, _ = first.terminate()
    assert code == 0
    outbox.emit(300)
    leader("pod-b")
    verdict = outbox.wait_until_delivered()
    assert verdict.holds, verdict
    assert verdict.duplicates == 0


@pytest.mark.timeout(240)
def test_a_leader_that_was_frozen_past_its_lease_gives_up_and_cannot_write_its_position(
    outbox: Any, pod: Any, leader: Any, shard: Any, eventually: Any
) -> None:
    frozen = pod("pod-a")
    leader("pod-a")
    pod("pod-b")
    outbox.emit(200)
    eventually(lambda: outbox.arrived() == 200, "200 records")
    frozen.signal(signal.SIGSTOP)
    outbox.emit(200)
    leader("pod-b")
    eventually(lambda: outbox.arrived() >= 400, "what the frozen one did not send")
    frozen.signal(signal.SIGCONT)
    eventually(lambda: any(line.get("event") == "no longer leading" for line in frozen.of_this_process()), "giving up")
    outbox.emit(200)
    verdict = outbox.wait_until_delivered()
    assert verdict.holds, verdict
    assert shard.holder() == "pod-b"
    assert shard.report()["leader"] == "pod-b"


@pytest.mark.timeout(240)
def test_a_leader_that_is_cut_off_from_the_api_server_stops_sending_and_another_goes_on(
    outbox: Any, pod: Any, leader: Any, shard: Any, link: Any, eventually: Any
) -> None:
    wire, kubeconfig = link
    cut_off = pod("pod-a", kubeconfig)
    leader("pod-a")
    pod("pod-b")
    outbox.emit(200)
    eventually(lambda: outbox.arrived() == 200, "200 records")
    wire.cut()
    leader("pod-b")
    eventually(lambda: any(line.get("event") == "no longer leading" for line in cut_off.of_this_process()), "giving up")
    outbox.emit(200)
    assert outbox.wait_until_delivered().holds
    assert cut_off.metric("outbox_relay_leader") == 0


def test_an_idle_relay_writes_no_report(outbox: Any, pod: Any, leader: Any, shard: Any, eventually: Any) -> None:
    pod("pod-a", relay={"lease": {"duration": "30s", "renew": "10s"}})
    leader("pod-a")
    outbox.emit(10)
    outbox.wait_until_delivered()
    eventually(lambda: outbox.unpublished() == 0, "everything marked")
    version = shard.plane.request("GET", shard.report_path)["metadata"]["resourceVersion"]
    began = time.monotonic()
    eventually(lambda: time.monotonic() - began > 10, "ten seconds")
    assert shard.plane.request("GET", shard.report_path)["metadata"]["resourceVersion"] == version


def test_a_change_of_state_is_reported_at_once(outbox: Any, pod: Any, leader: Any, shard: Any, eventually: Any) -> None:
    pod("pod-a")
    leader("pod-a")
    (broker,) = outbox.kafka.brokers
    broker.kill()
    outbox.emit(10)
    report = eventually(lambda: (found := shard.report())["state"] == "Retrying" and found, "a report of it", within=30)
    assert report["reason"] == "SinkUnreachable"
    assert report["lastError"]["reason"] == "SinkUnreachable"
    broker.start()
    leader("pod-a")
    assert outbox.wait_until_delivered().holds


def test_a_position_that_is_gone_is_told_and_nothing_is_sent(
    outbox: Any, pod: Any, leader: Any, shard: Any, eventually: Any
) -> None:
    relay = pod("pod-a")
    leader("pod-a")
    outbox.emit(10)
    outbox.wait_until_delivered()
    relay.terminate()
    assert shard.report()["position"]
    shard.plane.request("DELETE", shard.checkpoint_path)
    shard.plane.request(
        "POST",
        shard.checkpoint_path.rpartition("/")[0],
        {"metadata": {"name": shard.checkpoint_path.rpartition("/")[2]}},
    )
    outbox.emit(10)
    relay.start()
    eventually(lambda: shard.report()["reason"] == "HistoryLost", "the loss is told")
    assert shard.report()["state"] == "Stalled"
    assert outbox.arrived() == 10
