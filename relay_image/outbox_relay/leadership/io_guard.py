"""A look at the deadline before the event loop writes anything, also what was left in a buffer.

A process that was stopped (SIGSTOP, a suspended machine) and goes on past its deadline would first write what its
transports still hold: the loop serves sockets before timers. The selector is where that can be forestalled.
"""

import asyncio
import selectors
from collections.abc import Callable


class GuardedSelector(selectors.DefaultSelector):
    """Calls `before_io` after each wait, before any socket is read or written.

    Attributes:
        before_io: what to call; it must not block.
    """

    def __init__(self) -> None:
        super().__init__()
        self.before_io: Callable[[], None] | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for sockets as the loop asks for."""
        events = super().select(timeout)
        if self.before_io is not None:
            self.before_io()
        return events

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """Return an event loop on this selector."""
        return asyncio.SelectorEventLoop(self)
