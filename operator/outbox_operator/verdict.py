"""What the operator concludes, before it is put into conditions: one reason and one message, and what they mean."""

from dataclasses import dataclass
from enum import Enum, auto


class Outlook(Enum):
    """What is to be expected of a state that is not the wanted one."""

    #: It heals or completes by itself.
    PROGRESSING = auto()
    #: It is tried again by itself, but does not work now.
    FAILING = auto()
    #: It stays until the user changes something.
    STALLED = auto()


@dataclass(frozen=True)
class Verdict:
    """Why a relay is not, or not yet, as it should be.

    Attributes:
        outlook: what is to be expected.
        reason: CamelCase, for the conditions.
        message: what happened, where, and the next step.
    """

    outlook: Outlook
    reason: str
    message: str

    @classmethod
    def progressing(cls, reason: str, message: str) -> "Verdict":
        """It heals or completes by itself."""
        return cls(Outlook.PROGRESSING, reason, message)

    @classmethod
    def failing(cls, reason: str, message: str) -> "Verdict":
        """It is tried again by itself, but does not work now."""
        return cls(Outlook.FAILING, reason, message)

    @classmethod
    def stalled(cls, reason: str, message: str) -> "Verdict":
        """It stays until the user changes something."""
        return cls(Outlook.STALLED, reason, message)
