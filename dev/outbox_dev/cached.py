"""Downloads and builds that are made once and never seen half-made."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from outbox_dev.paths import cache_dir
from outbox_dev.progress import say


def cached(name: str, key: str, build: Callable[[Path], None]) -> Path:
    """Return the folder of a cache entry, building it when it is not there.

    Args:
        name: what is cached, for example `mongod`; a folder of the cache.
        key: everything the content depends on, usually the version; a changed
            key is another entry.
        build: fills the empty folder it is given. When it raises, nothing is kept.

    The entry is built in a sibling folder and renamed when complete, so a crash
    leaves no half-made entry; a file lock, which the kernel drops with its
    holder, keeps two processes from building the same entry.
    """
    parent = cache_dir(name)
    entry = parent / key
    if entry.is_dir():
        return entry
    with _locked(parent / f".{key}.lock", f"{name} {key}"):
        if entry.is_dir():
            return entry
        partial = parent / f".{key}.partial"
        # The lock is ours, so whatever lies here was left by a crash.
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            build(partial)
            partial.rename(entry)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return entry


@contextmanager
def _locked(path: Path, what: str) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"    another process is making {what}; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
