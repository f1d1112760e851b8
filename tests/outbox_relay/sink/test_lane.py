"""A partition's order survives whatever becomes of its batches."""

from collections.abc import Sequence

import pytest
from aiokafka.producer.message_accumulator import BatchBuilder

from outbox_api.checkpoint import Position
from outbox_relay.events import Record
from outbox_relay.pipeline.batch import Marker
from outbox_relay.pipeline.tracker import Chunk, Item
from outbox_relay.sink.lane import Lane, SentBatch

CHUNK = Chunk(Marker(Position(cluster_time="1.1")))


def items(count: int, first: int = 0) -> list[Item]:
    return [
        Item(CHUNK, number, Record("topic", 0, None, b"key", b"v" * 100, [("id", b"1")], number))
        for number in range(first, first + count)
    ]


def ids(batch: Sequence[Item]) -> list[int]:
    return [item.record.document_id for item in batch]


def send(lane: Lane, batch_size: int = 1_000_000) -> list[int]:
    sent = lane.fill(BatchBuilder(batch_size, 0))
    lane.sent.append(SentBatch(sent, 0.0))
    return ids(sent)


@pytest.fixture
def lane() -> Lane:
    return Lane("topic", 0)


def test_batches_take_what_waits_in_order_up_to_their_size(lane: Lane) -> None:
    lane.add(items(10))
    first = send(lane, batch_size=400)
    assert first == [0, 1]
    assert send(lane) == list(range(2, 10))
    assert lane.depth == 10


def test_one_event_larger_than_a_batch_goes_alone(lane: Lane) -> None:
    lane.add(items(2))
    assert send(lane, batch_size=10) == [0]


def test_what_is_not_acknowledged_is_sent_again_in_order(lane: Lane) -> None:
    lane.add(items(6))
    send(lane, batch_size=400)
    send(lane, batch_size=400)
    assert ids(lane.acknowledged().items) == [0, 1]
    send(lane, batch_size=400)
    lane.take_back()
    assert not lane.sent
    assert send(lane) == [2, 3, 4, 5]


def test_a_refused_batch_is_halved_until_the_culprit_is_alone(lane: Lane) -> None:
    lane.add(items(16))
    culprit = 11
    acknowledged: list[int] = []
    found = None
    for _ in range(50):
        batch = send(lane)
        if culprit in batch:
            found = lane.narrow()
            lane.take_back()
        else:
            acknowledged += ids(lane.acknowledged().items)
        if found is not None:
            break
    assert found is not None
    assert found.record.document_id == culprit
    assert acknowledged == list(range(culprit)), "everything before it is out, in order"
    assert ids(lane.waiting) == list(range(culprit, 16))


def test_once_the_suspects_are_out_batches_are_whole_again(lane: Lane) -> None:
    lane.add(items(8))
    send(lane)
    assert lane.narrow() is None
    lane.take_back()
    lane.add(items(100, first=8))
    while len(batch := send(lane)) <= 4:
        lane.acknowledged()
    assert batch == list(range(8, 108))
