"""Did everything that was committed arrive, once at least and in order?

Judged by what lies in Kafka and what the writer committed, never by what the
relay says of itself. Order is promised for first appearances: within a topic and
an aggregate, an event may come again, but no event may come for the first time
after a later one (relay-semantics: "Order").
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outbox_dev.kafka_io import Record

if TYPE_CHECKING:
    from pymongo.collection import Collection

ID_HEADER = "id"  # the relay's default header that carries the event's id


@dataclass(frozen=True)
class Committed:
    """An event that the writer committed.

    Attributes:
        id: as the record's `id` header shows it.
        aggregate: whose events have an order among themselves.
        version: rises with the commits of the aggregate.
    """

    id: str
    aggregate: str
    version: int


@dataclass(frozen=True)
class Inversion:
    """An event whose first appearance came after that of a later event of its aggregate.

    Attributes:
        event: what came too late.
        after: what was there before it, of a higher version or in another partition.
        record: where it lies.
    """

    event: Committed
    after: Committed
    record: Record

    def __str__(self) -> str:
        where = f"{self.record.topic}/{self.record.partition} offset {self.record.offset}"
        return f"{self.event.aggregate}: version {self.event.version} after {self.after.version} at {where}"


@dataclass(frozen=True)
class Verdict:
    """What came of the committed events.

    Attributes:
        committed: how many there were.
        missing: those that did not arrive.
        inversions: those that arrived out of order.
        duplicates: how many records repeat an event that was there already.
        unknown: ids of records that nobody committed (None: without an id).
    """

    committed: int
    missing: list[Committed]
    inversions: list[Inversion]
    duplicates: int
    unknown: list[str | None]

    @property
    def holds(self) -> bool:
        """Whether all arrived in order, and nothing else did; duplicates are allowed."""
        return not (self.missing or self.inversions or self.unknown)

    def __str__(self) -> str:
        return (
            f"{self.committed} committed, {len(self.missing)} missing, {len(self.inversions)} out of order, "
            f"{len(self.unknown)} unknown, {self.duplicates} duplicates"
        )


@dataclass
class Delivery:
    """Compares records, as they are read, with what was committed.

    Records of one partition must be given in the order of their offsets; those of
    several partitions may be mixed. Records may come before their event is known
    to be committed: they are judged at the end.
    """

    _committed: dict[str, Committed] = field(default_factory=dict)
    _first: dict[str, Record] = field(default_factory=dict)
    _unidentified: list[Record] = field(default_factory=list)
    _duplicates: int = 0

    def committed(self, events: Iterable[Committed]) -> None:
        """Add events that were committed; telling one twice is no harm."""
        self._committed.update((event.id, event) for event in events)

    def arrived(self, record: Record) -> bool:
        """Add a record; return whether its event came for the first time."""
        event_id = event_id_of(record)
        if event_id is None:
            self._unidentified.append(record)
            return True
        if event_id in self._first:
            self._duplicates += 1
            return False
        self._first[event_id] = record
        return True

    @property
    def outstanding(self) -> int:
        """How many committed events did not arrive yet."""
        return len(self._committed.keys() - self._first.keys())

    def verdict(self) -> Verdict:
        """Return the comparison of all that was given so far."""
        # By topic as well: an aggregate's events may be routed to several topics,
        # and order is promised within each.
        latest: dict[tuple[str, str], tuple[Committed, Record]] = {}
        inversions = []
        # In the order they were read, which within a partition is that of offsets.
        for event_id, record in self._first.items():
            event = self._committed.get(event_id)
            if event is None:
                continue
            place = (record.topic, event.aggregate)
            before = latest.get(place)
            if before and (before[0].version > event.version or before[1].partition != record.partition):
                inversions.append(Inversion(event, before[0], record))
            if before is None or before[0].version < event.version:
                latest[place] = (event, record)
        return Verdict(
            committed=len(self._committed),
            missing=[event for event_id, event in self._committed.items() if event_id not in self._first],
            inversions=inversions,
            duplicates=self._duplicates,
            unknown=[
                *(event_id for event_id in self._first if event_id not in self._committed),
                *(None for _ in self._unidentified),
            ],
        )


def event_id_of(record: Record) -> str | None:
    """Return the event id that a record's headers carry, or None."""
    return next((value.decode() for name, value in record.headers if name == ID_HEADER), None)


def committed_in(collection: "Collection[dict[str, Any]]") -> list[Committed]:
    """Return the events in an outbox collection that keeps them (afterPublish Mark or Keep).

    The documents have the names of the relay's preset Outbox.
    """
    fields = {"aggregate_id": 1, "version": 1}
    return [
        Committed(str(event["_id"]), str(event["aggregate_id"]), event["version"])
        for event in collection.find({}, fields)
    ]


def committed_by(journal: Path) -> list[Committed]:
    """Return what the order service (`examples/order_service`) noted as committed."""
    events = (json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines())
    return [
        Committed(event["id"], event["aggregate_id"], event["version"])
        for event in events
        if event["outcome"] == "committed"
    ]
