"""The last look at a record before it is sent: what a broker could never take is refused, by its name.

Rendering leaves topic, partition and timestamp as the route gives them, so that a preview shows them; this is
where they are held against what Kafka accepts.
"""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Final

from outbox_relay.events.describe import describe_id
from outbox_relay.events.record import Reason, Record, Refusal
from outbox_relay.routing.partitioner import partition_for

MAX_AHEAD_MS: Final = 3_600_000
"""Kafka's default `message.timestamp.after.max.ms`: beyond it a broker refuses the record's whole batch."""

TIMESTAMP_HEADER: Final = "timestamp"
"""Header that carries a routed timestamp (milliseconds, decimal) which could not be the record's own."""

_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@lru_cache(maxsize=4096)
def is_legal_topic(topic: str) -> bool:
    """Say whether Kafka allows the name: 1 to 249 of letters, digits, `.`, `_`, `-`, and not `.` or `..`."""
    return _LEGAL_TOPIC.fullmatch(topic) is not None and topic not in {".", ".."}


def sendable(record: Record, now_ms: int) -> Record | Refusal:
    """Return the record to send, or why it can never be sent.

    A timestamp before 1970, or further ahead of `now_ms` (milliseconds since 1970) than brokers accept, is replaced
    by the time of sending and carried in a header.
    """
    if not is_legal_topic(record.topic):
        return _refusal(
            record,
            Reason.INVALID_TOPIC,
            f"topic {record.topic[:260]!r} is not a name that Kafka allows (1 to 249 of a-z A-Z 0-9 . _ -); "
            "correct the fields that spec.route.topic uses, or the route",
        )
    timestamp = record.timestamp
    if timestamp is not None and not 0 <= timestamp <= now_ms + MAX_AHEAD_MS:
        return replace(record, timestamp=None, headers=[*record.headers, (TIMESTAMP_HEADER, str(timestamp).encode())])
    return record


def placement(record: Record, partitions: int) -> int | Refusal:
    """Return the partition of a record in a topic of so many `partitions`, or why it has none there."""
    if record.partition is None:
        return partition_for(record, partitions)
    if 0 <= record.partition < partitions:
        return record.partition
    return _refusal(
        record,
        Reason.INVALID_PARTITION,
        f"partition {record.partition} does not exist: topic {record.topic} has {partitions}; "
        "correct the field that spec.route.partitionField names, or add partitions",
    )


def _refusal(record: Record, reason: Reason, problem: str) -> Refusal:
    return Refusal(reason, f"document {describe_id(record.document_id)}: {problem}", record.document_id)
