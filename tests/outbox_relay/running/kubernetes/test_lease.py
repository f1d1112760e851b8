"""One leader at a time, by a Lease of a real API server."""

import asyncio
import contextlib
import time
from typing import Any

import pytest

from outbox_api.spec.relay import Lease as LeaseSpec
from outbox_relay.kube.client import KubeClient
from outbox_relay.leadership.deadline import Deadline
from outbox_relay.leadership.lease import LeaseElector
from outbox_relay.problems import LeadershipLostError

SPEC = LeaseSpec(duration="3s", renew="1s")


def elector(client: KubeClient, shard: Any, identity: str) -> LeaseElector:
    return LeaseElector(client, shard.runtime, 0, SPEC, identity=identity)


async def test_a_free_lease_is_taken_at_once_and_the_deadline_ends_before_it(client: KubeClient, shard: Any) -> None:
    before = time.monotonic()
    deadline = await elector(client, shard, "a").acquire()
    assert deadline.remaining < 3
    assert time.monotonic() - before < 2
    lease = shard.lease()
    assert lease["spec"]["holderIdentity"] == "a"
    assert lease["spec"]["leaseDurationSeconds"] == 3
    assert lease["metadata"]["labels"] == {"made-by": "operator"}, "what the operator set stays"


async def test_a_held_lease_is_not_taken_while_it_is_renewed_and_is_once_it_is_released(
    client: KubeClient, shard: Any
) -> None:
    first, second = elector(client, shard, "a"), elector(client, shard, "b")
    deadline = await first.acquire()
    keeping = asyncio.create_task(first.keep(deadline))
    waiting = asyncio.create_task(second.acquire())
    done, _ = await asyncio.wait([waiting], timeout=4.5)
    assert not done
    assert not deadline.passed
    await _cancel(keeping)
    await first.release()
    released = time.monotonic()
    await asyncio.wait_for(waiting, 5)
    # Half a second until the other looks, and what a busy machine adds.
    assert time.monotonic() - released < 2
    assert shard.holder() == "b"


async def test_a_lease_that_is_no_longer_renewed_is_taken_after_its_duration_and_not_before_the_deadline(
    client: KubeClient, shard: Any
) -> None:
    deadline = await elector(client, shard, "a").acquire()
    began = time.monotonic()
    taken = await asyncio.wait_for(elector(client, shard, "b").acquire(), 10)
    assert deadline.passed, "the former leader has stopped by its own clock before another may lead"
    assert 2.5 < time.monotonic() - began < 3 + 2
    assert not taken.passed
    assert shard.lease()["spec"]["leaseTransitions"] == 2


async def test_a_process_that_comes_back_under_its_name_takes_its_own_lease_at_once(
    client: KubeClient, shard: Any
) -> None:
    await elector(client, shard, "pod-1").acquire()
    began = time.monotonic()
    await elector(client, shard, "pod-1").acquire()
    assert time.monotonic() - began < 2
    assert shard.lease()["spec"]["leaseTransitions"] == 1


async def test_a_leader_whose_lease_was_taken_gives_up(client: KubeClient, shard: Any) -> None:
    first = elector(client, shard, "a")
    deadline = await first.acquire()
    shard.edit(shard.lease_path, lambda lease: lease["spec"].update(holderIdentity="b"))
    with pytest.raises(LeadershipLostError, match="taken by b"):
        await asyncio.wait_for(first.keep(deadline), 10)


async def test_a_lease_whose_metadata_somebody_edits_is_still_renewed(client: KubeClient, shard: Any) -> None:
    first = elector(client, shard, "a")
    deadline = await first.acquire()
    keeping = asyncio.create_task(first.keep(deadline))
    for number in range(8):
        shard.edit(
            shard.lease_path, lambda lease, number=number: lease["metadata"]["labels"].update(edited=str(number))
        )
        await asyncio.wait([keeping], timeout=0.5)
    assert not keeping.done()
    assert not deadline.passed
    assert shard.lease()["metadata"]["labels"]["edited"] == "7"
    await _cancel(keeping)


async def test_a_lease_that_is_gone_is_made_again_with_labels_and_owner(client: KubeClient, shard: Any) -> None:
    shard.plane.request("DELETE", shard.lease_path)
    await elector(client, shard, "a").acquire()
    lease = shard.lease()
    assert lease["spec"]["holderIdentity"] == "a"
    assert lease["metadata"]["labels"] == {"app.kubernetes.io/name": "outbox-relay"}
    assert lease["metadata"]["ownerReferences"][0]["name"] == shard.namespace


async def test_a_leader_that_is_cut_off_from_the_api_server_stops_before_another_can_lead(
    client: KubeClient, shard: Any, link: Any
) -> None:
    from outbox_relay.kube.access import from_kubeconfig

    wire, kubeconfig = link
    cut_off = KubeClient(from_kubeconfig(kubeconfig))
    first = elector(cut_off, shard, "a")
    deadline = await first.acquire()
    keeping = asyncio.create_task(first.keep(deadline))
    second = asyncio.create_task(elector(client, shard, "b").acquire())
    await asyncio.sleep(1.5)
    wire.cut()
    with pytest.raises(LeadershipLostError):
        await asyncio.wait_for(keeping, 10)
    assert deadline.passed
    assert not second.done(), "the former leader stopped first"
    await asyncio.wait_for(second, 10)
    await cut_off.close()


async def test_only_one_of_many_candidates_wins(client: KubeClient, shard: Any) -> None:
    candidates = [asyncio.create_task(elector(client, shard, f"c{number}").acquire()) for number in range(5)]
    done, pending = await asyncio.wait(candidates, timeout=2)
    assert len(done) == 1
    assert isinstance(done.pop().result(), Deadline)
    for task in pending:
        await _cancel(task)


async def _cancel(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
