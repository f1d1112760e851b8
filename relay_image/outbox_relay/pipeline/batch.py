"""What the source hands on: some events in order, each with the position after it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from outbox_api.checkpoint import Position


class SourceBatch(ABC):
    """Events of one read, in the order in which they are to appear.

    Attributes:
        documents: the raw BSON documents.
        size: bytes that the batch holds in memory.
        end: position once all of it is settled; None where it does not move the position (a sweep).
        replayed: whether a former leader may have sent events of it already.
    """

    documents: Sequence[bytes]
    size: int
    end: Position | None
    replayed: bool

    @abstractmethod
    def position(self, index: int) -> Position | None:
        """Return the position once the events up to and including `index` are settled."""

    def rendered(self) -> None:  # noqa: B027 - most batches have nothing to let go of
        """Let go of what is only needed until every document is rendered."""

    @abstractmethod
    def committed(self, index: int) -> float | None:
        """Return when event `index` was committed, in seconds since 1970 by the server's clock; None if unknown."""


class Marker(SourceBatch):
    """No event: the stream has come this far without any for this relay."""

    documents = ()
    size = 0
    replayed = False

    def __init__(self, end: Position) -> None:
        self.end = end

    def position(self, index: int) -> Position | None:  # noqa: ARG002
        """Return None: there is no event."""
        return None

    def committed(self, index: int) -> float | None:  # noqa: ARG002
        """Return None: there is no event."""
        return None
