"""Which partition and which shard an event belongs to: murmur2 of the key, exactly as Kafka's Java producer."""

from functools import lru_cache
from struct import unpack_from
from typing import Any

from outbox_relay.encoding.text import text_bytes
from outbox_relay.events.record import Record

_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_REMEMBERED_KEYS = 16_384


def murmur2(data: bytes) -> int:
    """Return the unsigned 32-bit hash that `org.apache.kafka.common.utils.Utils.murmur2` gives (there signed)."""
    length = len(data)
    words = length >> 2
    value = _SEED ^ length
    for word in unpack_from(f"<{words}I", data):
        mixed = word * _MULTIPLIER & _MASK
        value = (value * _MULTIPLIER & _MASK) ^ ((mixed ^ mixed >> 24) * _MULTIPLIER & _MASK)
    if rest := data[words << 2 :]:
        value = (value ^ int.from_bytes(rest, "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15


@lru_cache(maxsize=_REMEMBERED_KEYS)
def positive_hash(key: bytes) -> int:
    """Return the hash as Java's `Utils.toPositive` makes it non-negative; recent keys are remembered."""
    return murmur2(key) & _POSITIVE


def partition_hash(record: Record) -> int:
    """Return the hash that places a record: of its key, or of its document id, so that a retry lands the same."""
    return positive_hash(record.key if record.key is not None else _id_bytes(record.document_id))


def partition_for(record: Record, partitions: int) -> int:
    """Return the partition of a record whose route names none, out of `partitions`."""
    return partition_hash(record) % partitions


def shard_for(record: Record, shards: int) -> int:
    """Return the shard that an event belongs to, out of `shards`."""
    return partition_hash(record) % shards


def _id_bytes(document_id: Any) -> bytes:
    return b"null" if document_id is None else text_bytes(document_id)
