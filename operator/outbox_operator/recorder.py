"""Writes Kubernetes Events: one object a resource and reason, with a growing count."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog

from outbox_api import names
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.kube.client import FIELD_MANAGER, Kube
from outbox_operator.kube.errors import ApiError, KubeError
from outbox_operator.kube.resources import EVENT
from outbox_operator.render.metadata import digest
from outbox_operator.status.announcements import Announcement

#: Between two writes of one Event; what happens in between is counted.
INTERVAL: Final = timedelta(seconds=10)
#: The server stores at most this many characters of a message.
_MESSAGE = 1024
_REMEMBERED = 4096

_log = structlog.get_logger()


@dataclass
class _Known:
    count: int
    written: datetime


class Recorder:
    """Records announcements. An Event that cannot be written is logged and never stops the work it tells of."""

    def __init__(self, kube: Kube, *, now: Callable[[], datetime]) -> None:
        """A recorder that remembers the counts of some thousand Events, and reads the others' again.

        Args:
            kube: the API server.
            now: the time, with zone.
        """
        self._kube = kube
        self._now = now
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def record(self, relay: OutboxRelay, announcement: Announcement) -> None:
        """Write one Event, or count it when it was written just now."""
        name = f"{relay.key.name}.{digest([relay.uid, announcement.reason])}"
        try:
            await self._record(relay, announcement, name)
        except KubeError as error:
            _log.warning(
                "An Event could not be written", relay=str(relay.key), reason=announcement.reason, error=str(error)
            )
            self._known.pop(name, None)

    async def _record(self, relay: OutboxRelay, announcement: Announcement, name: str) -> None:
        now = self._now()
        known = self._known.get(name)
        if known is None:
            known = await self._first(relay, announcement, name, now)
        else:
            known.count += 1
        if now - known.written >= INTERVAL:
            await self._update(relay, announcement, name, known, _text(now))
            known.written = now
        self._known[name] = known
        self._known.move_to_end(name)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    async def _first(self, relay: OutboxRelay, announcement: Announcement, name: str, now: datetime) -> _Known:
        """Create the Event; of one that an earlier process wrote, go on counting."""
        try:
            await self._create(relay, announcement, name, _text(now))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            stored = await self._kube.get(EVENT, relay.key.namespace, name)
            # Written never, as far as this process goes: so it is written at once.
            return _Known(int((stored or {}).get("count") or 0) + 1, datetime.fromtimestamp(0, UTC))
        return _Known(1, now)

    async def _create(self, relay: OutboxRelay, announcement: Announcement, name: str, now: str) -> None:
        event: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": relay.key.namespace},
            "involvedObject": {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "name": relay.key.name,
                "namespace": relay.key.namespace,
                "uid": relay.uid,
            },
            "reason": announcement.reason,
            "message": announcement.message[:_MESSAGE],
            "type": announcement.type,
            "source": {"component": FIELD_MANAGER},
            "reportingComponent": FIELD_MANAGER,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self._kube.create(event)

    async def _update(self, relay: OutboxRelay, announcement: Announcement, name: str, known: _Known, now: str) -> None:
        patch = {"count": known.count, "lastTimestamp": now, "message": announcement.message[:_MESSAGE]}
        try:
            await self._kube.merge(EVENT, relay.key.namespace, name, patch)
        except ApiError as error:
            if error.status != 404:
                raise
            # Events are deleted by the server after an hour without a write.
            known.count = 1
            await self._create(relay, announcement, name, now)


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
