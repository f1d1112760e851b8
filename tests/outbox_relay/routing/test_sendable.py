import pytest

from outbox_relay.events import Reason, Record, Refusal
from outbox_relay.routing.sendable import is_legal_topic, placement, sendable

NOW = 1_700_000_000_000


def record(*, topic: str = "t", partition: int | None = None, timestamp: int | None = None) -> Record:
    return Record(topic, partition, timestamp, b"k", b"v", [("id", b"1")], 1)


@pytest.mark.parametrize("topic", ["a", "A-z_0.9", "x" * 249, "..."])
def test_a_topic_that_kafka_allows_is_sent(topic: str) -> None:
    assert is_legal_topic(topic)
    assert sendable(record(topic=topic), NOW) == record(topic=topic)


@pytest.mark.parametrize("topic", ["", ".", "..", "x" * 250, "a b", "a\n", "ä", "a/b"])
def test_a_topic_that_kafka_does_not_allow_is_refused_by_name(topic: str) -> None:
    refused = sendable(record(topic=topic), NOW)
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.INVALID_TOPIC
    assert refused.message.startswith(f"document _id=1: topic {topic!r} is not a name that Kafka allows")


@pytest.mark.parametrize("timestamp", [None, 0, NOW, NOW + 3_600_000])
def test_a_timestamp_that_brokers_accept_is_kept(timestamp: int | None) -> None:
    assert sendable(record(timestamp=timestamp), NOW) == record(timestamp=timestamp)


@pytest.mark.parametrize("timestamp", [-1, NOW + 3_600_001, 14_222_264_625_338])
def test_a_timestamp_before_1970_or_too_far_ahead_becomes_a_header(timestamp: int) -> None:
    sent = sendable(record(timestamp=timestamp), NOW)
    assert isinstance(sent, Record)
    assert sent.timestamp is None
    assert sent.headers == [("id", b"1"), ("timestamp", str(timestamp).encode())]


def test_a_routed_partition_that_exists_is_honoured_and_any_other_is_refused() -> None:
    assert placement(record(partition=2), 3) == 2
    for partition in (-1, 3, 2**40):
        refused = placement(record(partition=partition), 3)
        assert isinstance(refused, Refusal)
        assert refused.reason is Reason.INVALID_PARTITION
        assert f"partition {partition} does not exist: topic t has 3" in refused.message


def test_without_a_routed_partition_the_key_decides() -> None:
    assert placement(record(), 1) == 0
    assert placement(record(), 12) in range(12)
