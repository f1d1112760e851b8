"""Shows records as they arrive, and keeps the evidence for the verdict."""

import asyncio
import threading
from collections.abc import Callable
from typing import Self

from outbox_dev.delivery import Committed, Delivery, Verdict
from outbox_dev.kafka import Kafka
from outbox_dev.kafka_io import Record, to_record

_POLL_MILLISECONDS = 200


class Watcher:
    """A reader of one topic from its beginning, in a thread of its own.

    Args:
        kafka: the cluster, reached by the way that has no security.
        topic: must exist.
        show: gets one line for each record.
    """

    def __init__(self, kafka: Kafka, topic: str, show: Callable[[str], None]) -> None:
        self._kafka = kafka
        self._topic = topic
        self._show = show
        self._delivery = Delivery()
        self._changed = threading.Condition()
        self._seen = 0
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {topic}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def seen(self) -> int:
        """How many different events have arrived."""
        return self._seen

    def wait_for(self, events: int, timeout: float) -> bool:
        """Wait until so many different events have arrived; False when it took longer."""
        with self._changed:
            return self._wait(lambda: self._seen >= events, timeout)

    def wait_for_all(self, committed: list[Committed], timeout: float) -> Verdict:
        """Wait until all these have arrived, or nothing arrives any more, and judge.

        Args:
            committed: everything that was committed.
            timeout: how long nothing may arrive before the rest counts as missing, in seconds.
        """
        with self._changed:
            self._delivery.committed(committed)
            arrives = True
            while arrives and self._delivery.outstanding:
                arrives = self._wait(self._another(), timeout)
            return self._delivery.verdict()

    def _another(self) -> Callable[[], bool]:
        before = self._seen
        return lambda: self._seen > before

    def _wait(self, condition: Callable[[], bool], timeout: float) -> bool:
        done = self._changed.wait_for(lambda: self._error is not None or condition(), timeout)
        if self._error is not None:
            raise RuntimeError(f"reading {self._topic} failed") from self._error
        return done

    def _run(self) -> None:
        try:
            asyncio.run(self._read())
        except BaseException as error:  # noqa: BLE001 - raised by whoever waits
            with self._changed:
                self._error = error
                self._changed.notify_all()

    async def _read(self) -> None:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        partitions = [TopicPartition(self._topic, number) for number in await self._kafka.partitions(self._topic)]
        consumer = AIOKafkaConsumer(bootstrap_servers=self._kafka.internal_servers, auto_offset_reset="earliest")
        try:
            await consumer.start()
            consumer.assign(partitions)
            while not self._stop.is_set():
                for batch in (await consumer.getmany(timeout_ms=_POLL_MILLISECONDS)).values():
                    for record in batch:
                        self._take(to_record(record))
        finally:
            await consumer.stop()

    def _take(self, record: Record) -> None:
        with self._changed:
            new = self._delivery.arrived(record)
            self._seen += new
            self._changed.notify_all()
        self._show(describe(record, repeated=not new))


def describe(record: Record, *, repeated: bool) -> str:
    """Return a line for a person: where it lies (partition@offset), whom it is about, what happened."""
    headers = {name: value.decode(errors="replace") for name, value in record.headers}
    key = (record.key or b"").decode(errors="replace")
    line = f"  {f'{record.partition}@{record.offset}':<7} {key:<12} {headers.get('type', ''):<12} {_text(record.value)}"
    return f"{line}  (again)" if repeated else line


def _text(value: bytes | None) -> str:
    return "(no value)" if value is None else value.decode(errors="replace")
