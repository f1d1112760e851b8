"""Ends the process when its right to write has ended and it does not notice itself."""

import os
import sys
import threading
from collections.abc import Callable

#: How often the deadline is looked at, in seconds; far below the margin of the Lease.
INTERVAL = 0.2
EXIT_CODE = 70


def _exit() -> None:
    sys.stderr.write("The Lease was not renewed in time: ending at once, so that another operator can act alone\n")
    os._exit(EXIT_CODE)


class Watchdog:
    """A thread that compares the deadline with the clock.

    A thread, because a request that hangs or an event loop that is stuck must not keep the process from ending; and an
    end without clean-up, because clean-up may hang too.
    """

    def __init__(
        self, deadline: Callable[[], float | None], clock: Callable[[], float], expire: Callable[[], None] = _exit
    ) -> None:
        """A watchdog that does not run.

        Args:
            deadline: when the right ends, by the clock; None when there is none to lose.
            clock: seconds, monotonic.
            expire: called once past the deadline.
        """
        self._deadline = deadline
        self._clock = clock
        self._expire = expire
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no longer."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL):
            deadline = self._deadline()
            if deadline is not None and self._clock() >= deadline:
                self._expire()
                return
