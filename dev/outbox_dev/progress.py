"""What a person sees while something long runs, and when it cannot go on."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

TICK_SECONDS = 15.0


class SetupError(Exception):
    """Something is missing or broken on this machine; not a bug to trace.

    Args:
        what: what could not be done, and why.
        how_to_get_it: what the user can do about it.
    """

    def __init__(self, what: str, how_to_get_it: str) -> None:
        super().__init__(f"{what}\n  {how_to_get_it}")
        self.what = what
        self.how_to_get_it = how_to_get_it


def fail(what: str, how_to_get_it: str) -> NoReturn:
    """Raise the error that the command line shows without a stack trace.

    For example `fail("mvn is not on the PATH", "apt-get install maven")`.

    Raises:
        SetupError: always.
    """
    raise SetupError(what, how_to_get_it)


def say(message: str) -> None:
    """Print one line of progress on standard error, so that output stays clean."""
    print(message, file=sys.stderr, flush=True)


@contextmanager
def step(title: str, expect: str = "") -> Iterator[None]:
    """Show that a step started, goes on (every 15 seconds) and how it ended.

    Each line names the step, since steps of several threads may interleave.

    Args:
        title: what is done, for example `Building kind`.
        expect: how long it usually takes, for example `about 6 min on 2 cores`.
    """
    started = time.monotonic()
    finished = threading.Event()

    def tick() -> None:
        while not finished.wait(TICK_SECONDS):
            say(f"    {title}: {time.monotonic() - started:.0f} s so far")

    say(f"==> {title}" + (f" ({expect})" if expect else ""))
    ticker = threading.Thread(target=tick, daemon=True, name=f"progress: {title}")
    ticker.start()
    outcome = "failed after"
    try:
        yield
        outcome = "done in"
    finally:
        finished.set()
        ticker.join()
        say(f"    {title}: {outcome} {time.monotonic() - started:.1f} s")
