"""Leader election among operators, by a Lease.

The rule that makes it safe: the leader's right ends by its own monotonic clock, counted from before it sent the last
renewal that succeeded, and earlier than any other may take the Lease. Others count from when they saw the last change.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import structlog

from outbox_operator.kube.client import Kube
from outbox_operator.kube.errors import ApiError, KubeError
from outbox_operator.kube.resources import LEASE, Object, version_of
from outbox_operator.settings import LeaseSettings

#: Seconds by which the leader's right ends before another could have taken the Lease.
MARGIN: Final = 2.0

_log = structlog.get_logger()


class NotLeaderError(Exception):
    """The right to write has ended."""


@dataclass
class _Sight:
    """The Lease's last change that a waiting operator saw, and when by its own clock."""

    version: str
    since: float


class Elector:
    """Takes the Lease, renews it, and says until when this process leads."""

    def __init__(
        self,
        kube: Kube,
        settings: LeaseSettings,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        """An elector that does not lead.

        Args:
            kube: the API server, with a time limit that leaves room for a second try before the deadline.
            settings: which Lease, and its times.
            clock: seconds, monotonic.
            now: the time, for people who read the Lease.
        """
        self._kube = kube
        self._settings = settings
        self._clock = clock
        self._now = now
        self._deadline: float | None = None
        self._live: Object | None = None
        self._sight: _Sight | None = None

    @property
    def deadline(self) -> float | None:
        """The monotonic time at which this process stops to lead; None when it does not."""
        return self._deadline

    def fence(self) -> None:
        """Check the right to write.

        Raises:
            NotLeaderError: this process does not lead, or its deadline has passed.
        """
        if self._deadline is None or self._clock() >= self._deadline:
            raise NotLeaderError(f"Lease {self._settings.namespace}/{self._settings.name} is not held")

    async def acquire(self) -> None:
        """Wait until this process leads."""
        while not await self._try():  # noqa: ASYNC110 - what is waited for is in the cluster
            await asyncio.sleep(self._settings.retry)
        _log.info("Leading", lease=f"{self._settings.namespace}/{self._settings.name}")

    async def hold(self) -> None:
        """Renew until the Lease is lost.

        Raises:
            NotLeaderError: another holds it, or it could not be renewed in time.
        """
        while True:
            await asyncio.sleep(self._settings.renew)
            while not await self._renew():
                self.fence()
                await asyncio.sleep(self._settings.retry)

    async def release(self) -> None:
        """Let others take the Lease at once; no error when that does not work, since it then runs out."""
        if self._live is None or self._deadline is None:
            return
        self._deadline = None
        try:
            await self._kube.replace(self._lease(self._live, holder="", duration=1.0))
        except KubeError as error:
            _log.warning("The Lease could not be released and runs out by itself", error=str(error))

    async def _try(self) -> bool:
        try:
            live = await self._kube.get(LEASE, self._settings.namespace, self._settings.name)
            if live is None:
                return await self._write(None)
            return self._is_free(live) and await self._write(live)
        except KubeError as error:
            _log.warning("The Lease could not be read or taken", error=str(error))
            return False

    def _is_free(self, live: Object) -> bool:
        spec = live.get("spec") or {}
        # A container that restarts has its pod's name, and the process that held it before is gone.
        if spec.get("holderIdentity") in {None, "", self._settings.identity}:
            return True
        if self._sight is None or self._sight.version != version_of(live):
            self._sight = _Sight(version_of(live), self._clock())
        return self._clock() - self._sight.since >= float(spec.get("leaseDurationSeconds") or self._settings.duration)

    async def _renew(self) -> bool:
        try:
            return await self._write(self._live)
        except KubeError as error:
            _log.warning("The Lease could not be renewed", error=str(error))
            return await self._reread()

    async def _reread(self) -> bool:
        """After a failed renewal: a conflict may be one's own write whose answer was lost."""
        try:
            live = await self._kube.get(LEASE, self._settings.namespace, self._settings.name)
        except KubeError:
            return False
        if live is not None and (live.get("spec") or {}).get("holderIdentity") != self._settings.identity:
            self._deadline = None
            raise NotLeaderError("another operator holds the Lease")
        self._live = live
        return False

    async def _write(self, live: Object | None) -> bool:
        start = self._clock()
        try:
            wanted = self._lease(live, self._settings.identity, self._settings.duration)
            self._live = await (self._kube.create(wanted) if live is None else self._kube.replace(wanted))
        except ApiError as error:
            # Another was faster.
            if error.status == 409 and self._deadline is None:
                return False
            raise
        self._deadline = start + self._settings.duration - MARGIN
        return True

    def _lease(self, live: Object | None, holder: str, duration: float) -> dict[str, Any]:
        now = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        before: Any = (live or {}).get("spec") or {}
        changes = before.get("holderIdentity") != holder
        metadata: dict[str, Any] = {"name": self._settings.name, "namespace": self._settings.namespace}
        if live is not None:
            metadata = {**live["metadata"]}
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": metadata,
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": int(duration),
                "acquireTime": now if changes else before.get("acquireTime", now),
                "renewTime": now,
                "leaseTransitions": int(before.get("leaseTransitions") or 0) + (1 if changes and holder else 0),
            },
        }
