"""What the operator works on: one `OutboxRelay`, by namespace and name."""

from typing import NamedTuple


class Key(NamedTuple):
    """Names one `OutboxRelay`.

    Attributes:
        namespace: its namespace.
        name: its `metadata.name`.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
