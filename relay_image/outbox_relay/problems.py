"""What keeps a relay from going on, in the words of its report."""

from dataclasses import dataclass

from outbox_api.reasons import RelayReason


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        reason: the CamelCase word of the report.
        message: what happened, where, and what to do next; never a secret.
    """

    reason: RelayReason
    message: str


class StalledError(Exception):
    """The relay cannot go on by itself.

    Args:
        problem: what is wrong.
        retry_after: seconds after which to look again whether the user has mended it; None: only a restart helps.
    """

    def __init__(self, problem: Problem, retry_after: float | None = None) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.retry_after = retry_after


class UnavailableError(Exception):
    """Something the relay needs does not answer, or refuses; trying again later may help."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class LeadershipLostError(Exception):
    """This process no longer leads: it stops sending and writing at once."""
