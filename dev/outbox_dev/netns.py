"""Calls into servers that listen in a network namespace of their own."""

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_CLONE_NEWNET = 0x40000000  # linux/sched.h


def call_in(netns: str | None, function: Callable[[], T]) -> T:
    """Call a function with the network of a namespace, and return its result.

    A thread alone can change its namespace, and threads that it starts (as
    database drivers do) follow it; so this is a call in a thread that ends with
    it, and the caller's own network never changes.

    Args:
        netns: name of the namespace in /run/netns; None calls `function` as it is.
        function: must not hand out connections that outlive the call.

    Raises:
        OSError: there is no such namespace, or the user may not enter it.
        BaseException: whatever `function` raises.
    """
    if netns is None:
        return function()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            _enter(netns)
            results.append(function())
        except BaseException as error:  # noqa: BLE001 - handed to the caller below
            errors.append(error)

    thread = threading.Thread(target=run, name=f"netns {netns}")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _enter(netns: str) -> None:
    # os.setns is there from Python 3.12 on only.
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.open(Path("/run/netns", netns), os.O_RDONLY)
    try:
        if libc.setns(handle, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot enter network namespace {netns}: {os.strerror(number)}")
    finally:
        os.close(handle)
