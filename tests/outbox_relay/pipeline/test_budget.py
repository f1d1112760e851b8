"""What is read ahead is bounded, in bytes and in events."""

import asyncio

import pytest

from outbox_relay.pipeline.budget import Budget


@pytest.mark.parametrize(("size", "events"), [(100, 1), (1, 10)])
async def test_the_reader_waits_while_either_bound_is_reached(size: int, events: int) -> None:
    budget = Budget(max_bytes=100, max_events=10)
    budget.take(size, events)
    waiting = asyncio.create_task(budget.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    budget.give(size, events)
    await waiting


async def test_a_single_batch_larger_than_the_bound_passes() -> None:
    budget = Budget(max_bytes=100, max_events=10)
    await budget.room()
    budget.take(1_000, 1)
    budget.give(1_000, 1)
    await budget.room()


async def test_it_tells_when_everything_is_settled() -> None:
    budget = Budget(max_bytes=100, max_events=10)
    await budget.empty()
    budget.take(10, 2)
    waiting = asyncio.create_task(budget.empty())
    budget.give(5, 1)
    await asyncio.sleep(0)
    assert not waiting.done()
    budget.give(5, 1)
    await waiting
