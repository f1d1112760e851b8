"""Brings one relay to what its resource asks for, and tells what came of it. Idempotent: it may run at any time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from outbox_api import names
from outbox_operator.apply import Applied, ChangedError, make, observe
from outbox_operator.belonging import obstacle
from outbox_operator.compare import differences
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.decision import Decision, decide
from outbox_operator.fleet import Fleet, claim_of
from outbox_operator.keys import Key
from outbox_operator.kube.client import Kube
from outbox_operator.kube.errors import ApiError
from outbox_operator.kube.resources import OUTBOX_RELAY, POD, Object, uid_of
from outbox_operator.recorder import Recorder
from outbox_operator.render.children import Child, Observed, expected, render
from outbox_operator.settings import RelayDefaults
from outbox_operator.status.announcements import announcements
from outbox_operator.status.conditions import trouble
from outbox_operator.status.patch import status_patch
from outbox_operator.status.situation import Situation, shards_of
from outbox_operator.status.summary import status


@dataclass(frozen=True)
class Result:
    """What came of one reconciliation.

    Attributes:
        exists: whether the resource is there and not being deleted.
        settled: whether only a change would bring more; else it should be tried again, later and later.
        others: relays that must be looked at, since this one's claim on their outbox changed.
    """

    exists: bool
    settled: bool = True
    others: frozenset[Key] = field(default_factory=frozenset)


class Reconciler:
    """Reconciles relays."""

    def __init__(
        self,
        kube: Kube,
        fleet: Fleet,
        recorder: Recorder,
        defaults: RelayDefaults,
        *,
        now: Callable[[], datetime],
        seen: Callable[[Object], None],
    ) -> None:
        """A reconciler.

        Args:
            kube: the API server.
            fleet: all relays' claims on outboxes.
            recorder: writes Events.
            defaults: what relays get where they do not say.
            now: the time, with zone.
            seen: told of each watched object in the version that is acted on.
        """
        self._seen = seen
        self._kube = kube
        self._fleet = fleet
        self._recorder = recorder
        self._defaults = defaults
        self._now = now

    async def reconcile(self, key: Key) -> Result:
        """Reconcile one relay.

        Raises:
            KubeError: a request failed in a way that another try may mend.
            ChangedError: the resource changed meanwhile.
            NamespaceGoneError: the namespace is being deleted.
        """
        obj = await self._kube.get(OUTBOX_RELAY, key.namespace, key.name)
        relay = None
        if obj is not None:
            self._seen(obj)
            relay = OutboxRelay.of(obj)
        others = frozenset(self._fleet.update(key, claim_of(relay) if relay else None))
        if relay is None or relay.deleting:
            # The children go by their owner references; one that is written now might come back.
            return Result(exists=False, others=others)
        decision = decide(relay, self._fleet)
        applied, pending = await self._children(relay, decision)
        for live in applied.live.values():
            if live is not None:
                self._seen(live)
        await self._tell(relay, decision, applied, pending)
        refused = applied.verdict is not None
        return Result(exists=True, settled=not refused, others=others)

    async def _children(self, relay: OutboxRelay, decision: Decision) -> tuple[Applied, tuple[Child, ...]]:
        children = expected(relay.key.name, _shards(relay))
        observed: Observed
        if relay.seen_before or not decision.write:
            observed = await observe(self._kube, relay.key.namespace, children)
        else:
            # A new relay's children are most likely absent: creating them without asking saves half the requests, and
            # the server says which of them is there after all.
            observed = dict.fromkeys(children)
        if relay.spec is None:
            return Applied(dict(observed)), ()
        rendered = render(relay, relay.spec, observed, self._defaults, stopped=decision.stopped)
        if decision.write:
            return await make(self._kube, relay, rendered, observed, lambda: self._confirm(relay)), ()
        applied = Applied(dict(observed), verdict=obstacle(relay, observed))
        pending = tuple(child for child, manifest in rendered.items() if differences(manifest, observed[child]))
        return applied, pending if relay.paused else ()

    async def _confirm(self, relay: OutboxRelay) -> None:
        """Look again before something is written: a child that is gone may have gone with its owner.

        Raises:
            ChangedError: the resource is not as it was read.
        """
        if not relay.seen_before:
            return
        now = await self._kube.get(OUTBOX_RELAY, relay.key.namespace, relay.key.name)
        if now is None or "deletionTimestamp" in now["metadata"]:
            raise ChangedError(f"{relay.key} is being deleted")
        if (uid_of(now), now["metadata"]["generation"]) != (relay.uid, relay.generation):
            raise ChangedError(f"{relay.key} has changed")

    async def _tell(self, relay: OutboxRelay, decision: Decision, applied: Applied, pending: tuple[Child, ...]) -> None:
        pods = []
        if relay.seen_before:
            selector = f"{names.LABEL_RELAY}={relay.key.name}"
            pods = await self._kube.select(POD, relay.key.namespace, selector=selector)
            for pod in pods:
                self._seen(pod)
        situation = Situation(
            relay=relay,
            obstacle=decision.verdict or applied.verdict,
            stopped=decision.stopped,
            pending=pending,
            shards=shards_of(relay, _shards(relay), applied.live, pods),
            now=self._now(),
        )
        verdict = trouble(situation)
        wanted = status(situation, verdict)
        patch = status_patch(relay, wanted)
        if patch is not None:
            try:
                written = await self._kube.merge_status(OUTBOX_RELAY, relay.key.namespace, relay.key.name, patch)
                after = OutboxRelay.of(written)
                # Otherwise somebody changed it between our read and our write, and its version is not acted on.
                if (after.generation, after.annotations, after.deleting) == (
                    relay.generation,
                    relay.annotations,
                    False,
                ):
                    self._seen(written)
            except ApiError as error:
                if error.status == 404:
                    return
                raise
        for announcement in announcements(relay, applied, wanted, verdict):
            await self._recorder.record(relay, announcement)


def _shards(relay: OutboxRelay) -> int:
    """How many shards a relay has; of one that cannot be understood, as many as it had."""
    return relay.spec.relay.shards if relay.spec else max(1, len(relay.status.get("shards") or ()))
