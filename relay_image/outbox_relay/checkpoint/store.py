"""What every place for a checkpoint offers, and the rule of the epoch that all share."""

from dataclasses import dataclass
from typing import Protocol

from outbox_api.checkpoint import Checkpoint, Position
from outbox_api.reasons import RelayReason
from outbox_relay.problems import LeadershipLostError, Problem, StalledError, UnavailableError

RETRY_SECONDS = 30.0
"""How often a checkpoint that only the user can mend is looked at again."""


class StoreError(UnavailableError):
    """The checkpoint could not be read or written; trying again may help."""


class SupersededError(LeadershipLostError):
    """A later leader owns the checkpoint: its epoch is higher than ours."""


@dataclass(frozen=True)
class Claimed:
    """What a leader finds when it claims the checkpoint.

    Attributes:
        checkpoint: as it is now, under our own epoch.
        lost: cluster time of a position that is known to have existed although the checkpoint has none.
    """

    checkpoint: Checkpoint
    lost: str | None = None


class CheckpointStore(Protocol):
    """Keeps one checkpoint. A leader claims it before it reads the position; only the latest claimant may write."""

    async def claim(self, source: str) -> Claimed:
        """Raise the epoch by one and return the checkpoint.

        Args:
            source: `database.collection`, noted with the first claim.

        Raises:
            StoreError: the store did not answer, or another claimed at the same time.
        """

    async def write(self, position: Position) -> None:
        """Write the position under the claimed epoch.

        Raises:
            SupersededError: a higher epoch is there.
            StoreError: the store did not answer.
        """

    def was_missing(self) -> bool:
        """Say whether the place of the checkpoint, which the operator makes, was found missing."""


def refuse_other_source(found: Checkpoint, source: str, where: str) -> None:
    """Let pass a checkpoint of `source`, or of none yet.

    Raises:
        StalledError: its position belongs to another collection.
    """
    if found.source not in {None, source}:
        raise StalledError(
            Problem(
                RelayReason.CHECKPOINT_MISMATCH,
                f"{where} holds the position of {found.source}, not of {source}; delete it to start anew, or correct "
                "spec.source",
            ),
            RETRY_SECONDS,
        )


def unreadable(where: str, error: Exception) -> StalledError:
    """Return the stall of a checkpoint whose text is not one."""
    return StalledError(
        Problem(
            RelayReason.CHECKPOINT_MISMATCH,
            f"{where} does not hold a checkpoint ({type(error).__name__}); restore it, or delete it to start anew",
        ),
        RETRY_SECONDS,
    )
