"""What every way to elect a leader offers."""

import asyncio
from typing import Protocol

from outbox_relay.leadership.deadline import Deadline


class Elector(Protocol):
    """Makes one process at a time the leader of a shard."""

    async def acquire(self) -> Deadline:
        """Wait until this process leads, and return until when it may send."""

    async def keep(self, deadline: Deadline) -> None:
        """Renew the leadership until cancelled; `deadline` moves on with each renewal.

        Raises:
            LeadershipLostError: another leads, or the deadline has passed.
        """

    async def release(self) -> None:
        """Give the leadership up, so that another need not wait for its end. Never raises; never takes long."""


class NoElection:
    """For a relay that is the only one by arrangement: it always leads."""

    async def acquire(self) -> Deadline:
        """Return at once, with a deadline that does not come."""
        return Deadline.never()

    async def keep(self, deadline: Deadline) -> None:  # noqa: ARG002 - never in danger
        """Wait for ever."""
        await asyncio.Event().wait()

    async def release(self) -> None:
        """Do nothing: nobody waits."""
