"""The checkpoint: how far a shard has come, and which leader may write it.

It is one JSON text, under the key `checkpoint.json` of a ConfigMap or in a file of its own.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints

from outbox_api.base import Model, ShortText

ClusterTimeText = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,10}\.[0-9]{1,10}$")]


@dataclass(frozen=True, order=True)
class ClusterTime:
    """MongoDB's logical time: seconds since 1970 and an increment within the second."""

    seconds: int
    increment: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the cluster time that `text` (`<seconds>.<increment>`) names."""
        seconds, increment = text.split(".")
        return cls(int(seconds), int(increment))

    def __str__(self) -> str:
        return f"{self.seconds}.{self.increment}"


class Position(Model):
    """A point in the change stream up to which every event is settled.

    Without a token it is the start of a relay: the stream is opened at `cluster_time`.
    """

    cluster_time: ClusterTimeText = Field(description="Cluster time, as <seconds>.<increment>.")
    token: str | None = Field(default=None, description="Resume token, as Extended JSON.")
    backlog: Literal["Pending", "Done"] = Field(
        default="Done",
        description="Pending: events that were there before the stream's start are not all sent yet; sweep them again.",
    )


class Checkpoint(Model):
    """A shard's position and the epoch of the leader that owns it."""

    epoch: int = Field(default=0, ge=0, description="Rises by one with each leader; a lower one must not write.")
    source: ShortText | None = Field(default=None, description="database.collection that the position belongs to.")
    position: Position | None = Field(default=None, description="Absent until the first leader has chosen its start.")
