"""A checkpoint in a file, for relays outside Kubernetes."""

import asyncio
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from outbox_api.checkpoint import Checkpoint, Position
from outbox_api.reasons import RelayReason
from outbox_relay.checkpoint.store import Claimed, StoreError, SupersededError, refuse_other_source, unreadable
from outbox_relay.problems import Problem


class FileStore:
    """Replaces the file as a whole and forces it to disk; a lock beside it serialises relays of one machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = path.with_name(f"{path.name}.lock")
        self._claimed = Checkpoint()

    async def claim(self, source: str) -> Claimed:
        """Raise the epoch and return the checkpoint; see `CheckpointStore`."""
        return await asyncio.to_thread(self._claim, source)

    async def write(self, position: Position) -> None:
        """Write the position; see `CheckpointStore`."""
        await asyncio.to_thread(self._write, position)

    def was_missing(self) -> bool:
        """Return False: the relay makes the file itself."""
        return False

    def _claim(self, source: str) -> Claimed:
        with self._locked():
            found = self._read()
            refuse_other_source(found, source, str(self._path))
            self._claimed = found.model_copy(update={"epoch": found.epoch + 1, "source": source})
            self._replace(self._claimed)
            return Claimed(self._claimed)

    def _write(self, position: Position) -> None:
        with self._locked():
            found = self._read()
            if found.epoch > self._claimed.epoch:
                raise SupersededError(
                    f"{self._path} was claimed by another relay (epoch {found.epoch}, ours {self._claimed.epoch}): "
                    "run one relay for a checkpoint file"
                )
            self._claimed = self._claimed.model_copy(update={"position": position})
            self._replace(self._claimed)

    def _read(self) -> Checkpoint:
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return Checkpoint()
        try:
            return Checkpoint.model_validate_json(text)
        except ValidationError as error:
            raise unreadable(str(self._path), error) from None

    def _replace(self, checkpoint: Checkpoint) -> None:
        temporary = self._path.with_name(f"{self._path.name}.new")
        with temporary.open("w", encoding="utf-8") as file:
            file.write(checkpoint.model_dump_json(by_alias=True, exclude_none=True))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
        # The new name is on disk only once the directory is.
        directory = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock.open("a", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise StoreError(
                Problem(
                    RelayReason.CHECKPOINT_UNAVAILABLE,
                    f"the checkpoint file {self._path} cannot be used ({error.strerror}); "
                    "make its directory writable for the relay",
                )
            ) from None
