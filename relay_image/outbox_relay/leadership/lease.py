"""Leadership by a Kubernetes Lease.

A Lease may be taken once its record has not changed for its duration, measured on the taker's own monotonic clock
from when it first saw that record: no two clocks are ever compared.
"""

import asyncio
import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from outbox_api import names
from outbox_api.quantities import parse_duration
from outbox_api.relay_config import Runtime
from outbox_api.spec.relay import Lease as LeaseSpec
from outbox_relay.kube.client import CALL_SECONDS, ApiError, KubeClient, Object, lease_path
from outbox_relay.kube.objects import FIELD_MANAGER, bare_object
from outbox_relay.leadership.deadline import Clock, Deadline
from outbox_relay.problems import LeadershipLostError

log = structlog.get_logger(__name__)

_POLL_SECONDS = 0.5
"""How often a standby looks: a planned handover leaves less than a second without a leader."""

_RETRY_SECONDS = 1.0
_CONFLICT = 409
_NOT_FOUND = 404


def safety_margin(duration: float) -> float:
    """Return how long before the Lease's end a leader stops: a tenth, for clocks that run at different speeds."""
    return max(0.5, duration / 10)


@dataclass
class _Seen:
    """The record of the Lease as last seen, and when it was first seen so."""

    record: tuple[object, ...]
    since: float


class LeaseElector:
    """Holds the Lease of a shard, which the operator creates."""

    def __init__(
        self,
        client: KubeClient,
        runtime: Runtime,
        shard: int,
        spec: LeaseSpec,
        *,
        identity: str,
        clock: Clock = time.monotonic,
    ) -> None:
        """Prepare it.

        Args:
            client: the API server.
            runtime: names of the Lease and of the namespace.
            shard: whose leader to be.
            spec: duration and renewal of the Lease.
            identity: our name as its holder; a process that comes back under it takes its own Lease at once.
            clock: monotonic seconds.
        """
        self._client = client
        self._runtime = runtime
        self._name = names.lease(runtime.name, shard)
        self._path = lease_path(runtime.namespace, self._name)
        self._duration = parse_duration(spec.duration).total_seconds()
        self._renew = parse_duration(spec.renew).total_seconds()
        self._identity = identity
        self._clock = clock
        self._seen: _Seen | None = None
        self._held: Object | None = None

    async def acquire(self) -> Deadline:
        """Wait until this process holds the Lease; see `Elector`."""
        waiting_for = ""
        while True:
            try:
                lease = await self._get_or_create()
                holder = self._holder(lease)
                if self._may_take(lease):
                    asked_at = self._clock()
                    self._held = await self._client.replace(self._path, self._record(lease))
                    log.info("leading", lease=self._name, identity=self._identity, before=holder)
                    return Deadline(self._until(asked_at), self._clock)
                if holder != waiting_for:
                    waiting_for = holder
                    log.info("standing by", lease=self._name, leader=holder)
                await asyncio.sleep(_POLL_SECONDS)
            except ApiError as error:
                if error.status != _CONFLICT:
                    log.warning("the lease cannot be used", lease=self._name, error=str(error))
                await asyncio.sleep(_RETRY_SECONDS)

    async def keep(self, deadline: Deadline) -> None:
        """Renew the Lease; see `Elector`."""
        try:
            await self._renew_for_ever(deadline)
        except LeadershipLostError:
            deadline.revoke()  # nothing may be sent any more, however long it takes to end what is running
            raise

    async def _renew_for_ever(self, deadline: Deadline) -> None:
        pause = self._renew
        while True:
            await asyncio.sleep(min(pause, deadline.remaining))
            deadline.check()
            pause = self._renew
            try:
                asked_at = self._clock()
                await self._renew_once(min(CALL_SECONDS, deadline.remaining))
                deadline.extend(self._until(asked_at))
            except ApiError as error:
                log.warning("the lease was not renewed", lease=self._name, error=str(error))
                pause = min(_RETRY_SECONDS, self._renew / 4)

    async def release(self) -> None:
        """Clear the holder; see `Elector`."""
        if self._held is None:
            return
        held, self._held = self._held, None
        body = {**held, "spec": {**held["spec"], "holderIdentity": "", "renewTime": _now(), "leaseDurationSeconds": 1}}
        try:
            await self._client.replace(self._path, body, limit=1.0)
        except ApiError as error:
            log.warning("the lease was not released; it ends by itself", lease=self._name, error=str(error))

    async def _renew_once(self, limit: float) -> None:
        assert self._held is not None  # noqa: S101 - acquire set it
        try:
            self._held = await self._client.replace(self._path, self._record(self._held), limit)
        except ApiError as error:
            if error.status not in {_CONFLICT, _NOT_FOUND}:
                raise
            # Somebody edited it (the operator its labels), deleted it, or took it.
            lease = await self._get_or_create()
            if self._holder(lease) not in {self._identity, ""}:
                raise LeadershipLostError(f"Lease {self._name} was taken by {self._holder(lease)}") from None
            self._held = await self._client.replace(self._path, self._record(lease), limit)

    async def _get_or_create(self) -> Object:
        try:
            return await self._client.get(self._path)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
        # Without a spec: who holds it is decided by a replace with its resourceVersion, as ever. The role allows to
        # create by apply only, since a name can be granted for that.
        return await self._client.apply(
            self._path, bare_object("coordination.k8s.io/v1", "Lease", self._name, self._runtime), FIELD_MANAGER
        )

    def _may_take(self, lease: Object) -> bool:
        spec = lease.get("spec") or {}
        holder = self._holder(lease)
        record = (holder, spec.get("renewTime"), spec.get("leaseTransitions"), lease["metadata"].get("uid"))
        if self._seen is None or self._seen.record != record:
            self._seen = _Seen(record, self._clock())
        if holder in {"", self._identity}:
            return True
        duration = float(spec.get("leaseDurationSeconds") or self._duration)
        return self._clock() - self._seen.since >= duration

    def _record(self, lease: Object) -> Object:
        """Return the Lease with ourselves as its holder, renewed now."""
        spec = lease.get("spec") or {}
        now = _now()
        ours = self._holder(lease) == self._identity
        return {
            **lease,
            "spec": {
                **spec,
                "holderIdentity": self._identity,
                "leaseDurationSeconds": math.ceil(self._duration),
                "acquireTime": spec.get("acquireTime", now) if ours else now,
                "renewTime": now,
                "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (0 if ours else 1),
            },
        }

    def _until(self, asked_at: float) -> float:
        return asked_at + self._duration - safety_margin(self._duration)

    def _holder(self, lease: Object) -> str:
        return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _now() -> str:
    # A time for people to read; nothing is decided by it.
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
