"""What a part of the local environment offers to the command line."""

from collections.abc import Callable
from dataclasses import dataclass

import typer


@dataclass(frozen=True)
class Part:
    """One part: MongoDB, Kafka, Kubernetes and so on.

    Attributes:
        name: the sub-command.
        app: its commands.
        status: what runs now, one line each; empty when nothing does.
        down: end what runs and remove its data. Called again, or after a crash of
            the command that started it, it ends whatever is left, and is no error.
        top_level: its commands stand beside the sub-commands, not below one.
    """

    name: str
    app: typer.Typer
    status: Callable[[], list[str]]
    down: Callable[[], None]
    top_level: bool = False
