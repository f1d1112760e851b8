import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as st

from outbox_relay.events import Record
from outbox_relay.routing.partitioner import murmur2, partition_for, shard_for


def record(key: bytes | None, document_id: object = 1) -> Record:
    return Record("t", None, None, key, b"", [], document_id)


# org.apache.kafka.common.utils.UtilsTest.testMurmur2, and the empty key; signed as in Java
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        (b"", 275646681),
    ],
)
def test_the_hash_of_a_key_is_the_one_of_the_java_producer(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFFFFFF


@given(st.one_of(st.binary(max_size=64), st.text().map(lambda text: text.encode("utf-8", "replace"))))
def test_the_hash_equals_the_one_of_the_kafka_client_for_any_bytes(key: bytes) -> None:
    assert murmur2(key) == aiokafka_murmur2(key) & 0xFFFFFFFF


@pytest.mark.parametrize("partitions", [1, 3, 12])
def test_a_keyed_record_goes_where_the_java_producer_would_send_it(partitions: int) -> None:
    for key in (b"order-1", "ключ".encode(), b"\x00\xff", b""):
        assert partition_for(record(key), partitions) == (aiokafka_murmur2(key) & 0x7FFFFFFF) % partitions


def test_a_record_without_key_is_placed_by_its_document_id_always_the_same() -> None:
    placed = {partition_for(record(None, number), 8) for number in range(200)}
    assert placed == set(range(8))
    assert partition_for(record(None, "a"), 8) == partition_for(record(None, "a"), 8)
    assert partition_for(record(None, None), 8) in range(8)


def test_values_that_render_to_the_same_key_belong_to_the_same_shard() -> None:
    assert shard_for(record(b"5"), 7) == shard_for(record(b"5", document_id="other"), 7)
    assert {shard_for(record(b"%d" % number), 4) for number in range(100)} == {0, 1, 2, 3}
