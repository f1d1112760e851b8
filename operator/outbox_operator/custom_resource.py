"""An `OutboxRelay` as the operator sees it: the server's object, decoded once."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from outbox_api import names
from outbox_api.spec import OutboxRelaySpec
from outbox_operator.keys import Key
from outbox_operator.kube.resources import Object


@dataclass(frozen=True)
class OutboxRelay:
    """One custom resource.

    Attributes:
        key: namespace and name.
        uid: its UID.
        generation: rises with each change of its spec.
        created: when it was created.
        deleting: whether its deletion has begun.
        annotations: its annotations.
        spec: what it asks for; None when it cannot be understood.
        invalid: why the spec cannot be understood; empty when it can.
        status: its status as stored, which may be older or newer than this operator's.
    """

    key: Key
    uid: str
    generation: int
    created: datetime
    deleting: bool
    annotations: Mapping[str, str]
    spec: OutboxRelaySpec | None
    invalid: str
    status: Mapping[str, Any]

    @classmethod
    def of(cls, obj: Object) -> "OutboxRelay":
        """Decode the server's object; a spec that cannot be understood is no error but told in `invalid`."""
        metadata = obj["metadata"]
        spec, invalid = None, ""
        try:
            spec = OutboxRelaySpec.model_validate(obj.get("spec") or {})
        except ValidationError as error:
            invalid = _readable(error)
        return cls(
            key=Key(metadata["namespace"], metadata["name"]),
            uid=metadata["uid"],
            generation=metadata["generation"],
            created=datetime.fromisoformat(metadata["creationTimestamp"]),
            deleting="deletionTimestamp" in metadata,
            annotations=metadata.get("annotations") or {},
            spec=spec,
            invalid=invalid,
            status=obj.get("status") or {},
        )

    @property
    def paused(self) -> bool:
        """Whether the user asked the operator to keep its hands off."""
        return self.annotations.get(names.ANNOTATION_PAUSED) == "true"

    @property
    def seen_before(self) -> bool:
        """Whether an operator has worked on it before, so that its children may exist."""
        return bool(self.status)

    def remembered_position(self, shard: int) -> str | None:
        """The cluster time that status remembers for a shard; None when none is known."""
        for entry in self.status.get("shards") or ():
            if entry.get("index") == shard and entry.get("position"):
                return str(entry["position"])
        return None


def _readable(error: ValidationError) -> str:
    """Where a validation error is and why; never the value, which may be a secret put in a wrong place."""
    problems = [
        f"{'.'.join(['spec', *(str(part) for part in problem['loc'])])}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    shown = "; ".join(problems[:5])
    return shown if len(problems) <= 5 else f"{shown}; and {len(problems) - 5} more"
