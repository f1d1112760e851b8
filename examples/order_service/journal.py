"""What the service knows to have committed, for a checker that trusts neither the outbox nor the relay."""

import json
import threading
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from order_service.orders import Written


class Journal:
    """A file of JSON lines: `{"outcome": "committed" | "aborted", "id", "aggregate_id", "version", "event_type"}`.

    A line is written after its commit was acknowledged, in any order among orders. Safe to use from several threads.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def write(self, outcome: str, written: list[Written]) -> None:
        lines = "".join(json.dumps({"outcome": outcome, **asdict(event)}) + "\n" for event in written)
        with self._lock:
            self._file.write(lines)
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
