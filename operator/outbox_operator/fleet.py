"""Which relays read which outbox, so that two never settle the same events."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from outbox_api.reasons import ConditionReason
from outbox_api.spec import field_names
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.keys import Key
from outbox_operator.verdict import Verdict


@dataclass(frozen=True)
class Source:
    """An outbox, as far as the operator can tell two apart without reading Secrets."""

    namespace: str
    secret: str
    secret_key: str
    database: str
    collection: str


@dataclass(frozen=True)
class Claim:
    """What one relay does to its outbox.

    Attributes:
        key: the relay.
        uid: its UID.
        created: when it was created; the older of two rivals keeps the outbox.
        source: the outbox.
        deletes: whether it deletes published events.
        mark: the field it marks; None when it marks none.
    """

    key: Key
    uid: str
    created: datetime
    source: Source
    deletes: bool
    mark: str | None


def claim_of(relay: OutboxRelay) -> Claim | None:
    """The relay's claim; None when it makes none: it is being deleted, or its spec cannot be understood."""
    spec = relay.spec
    if spec is None or relay.deleting:
        return None
    reference = spec.source.uri_secret_ref
    return Claim(
        relay.key,
        relay.uid,
        relay.created,
        Source(relay.key.namespace, reference.name, reference.key, spec.source.database, spec.source.collection),
        deletes=spec.after_publish == "Delete",
        mark=field_names(spec.source.fields).published_at if spec.after_publish == "Mark" else None,
    )


def source_conflict(own: Claim, others: Iterable[Claim]) -> Verdict | None:
    """Whether an older relay has the outbox already, and both cannot: one deletes events, or both mark one field."""
    for other in others:
        if other.uid == own.uid or other.source != own.source:
            continue
        if (other.created, other.uid) > (own.created, own.uid):
            continue
        outbox = f"{own.source.database}.{own.source.collection}"
        if own.deletes or other.deletes:
            why = "one of them deletes published events"
        elif own.mark is not None and own.mark == other.mark:
            why = f"both mark the field {own.mark}"
        else:
            continue
        return Verdict.stalled(
            ConditionReason.SOURCE_CONFLICT,
            f"OutboxRelay {other.key.name}, which is older, reads {outbox} too, and {why}. "
            "Delete one of them, or let this one keep events (afterPublish: Keep) or mark another field.",
        )
    return None


class Fleet:
    """The claims of all relays served."""

    def __init__(self) -> None:
        """Nobody claims anything."""
        self._claims: dict[Key, Claim] = {}
        self._by_source: dict[Source, dict[Key, Claim]] = {}

    def update(self, key: Key, claim: Claim | None) -> set[Key]:
        """Note a relay's claim, or that it makes none.

        Returns:
            The other relays of the outboxes concerned, which must be looked at again; empty when nothing changed.
        """
        before = self._claims.get(key)
        if before == claim:
            return set()
        concerned: set[Key] = set()
        if before is not None:
            rivals = self._by_source[before.source]
            del rivals[key]
            concerned |= rivals.keys()
            if not rivals:
                del self._by_source[before.source]
            del self._claims[key]
        if claim is not None:
            rivals = self._by_source.setdefault(claim.source, {})
            concerned |= rivals.keys()
            rivals[key] = claim
            self._claims[key] = claim
        return concerned - {key}

    def rivals(self, claim: Claim) -> list[Claim]:
        """The claims on the same outbox, this one's included."""
        return list(self._by_source.get(claim.source, {}).values())
