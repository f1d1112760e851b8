"""Whether the watch still hears: a watch can go deaf without an error.

Reconciliations read objects from the server. What they read and the watch has not told of after a while, it missed.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from outbox_api import names
from outbox_operator.kube.resources import Object, uid_of, version_of

#: Seconds in which the watch must have told of what the server has. kopf finds a silently cut connection within 70.
PATIENCE: Final = 120.0
#: How many deleted objects are remembered: one that was read before its deletion may be told of after it.
_GONE: Final = 4096


class Hearing:
    """Compares what the watch tells with what the server has."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        """A hearing that has missed nothing.

        Args:
            clock: seconds, monotonic.
        """
        self._clock = clock
        self._heard: dict[str, int] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._missing: dict[str, float] = {}  # UID → since when the watch owes a newer version

    def heard(self, uid: str, version: str) -> None:
        """The watch told of an object's version; empty when it is gone."""
        self._missing.pop(uid, None)
        if version:
            self._heard[uid] = int(version)
            return
        self._heard.pop(uid, None)
        self._gone[uid] = None
        if len(self._gone) > _GONE:
            self._gone.popitem(last=False)

    def live(self, obj: Object) -> None:
        """The server has, or had a moment ago, this version; of objects that are not watched nothing is concluded."""
        watched = (obj["metadata"].get("labels") or {}).get(names.LABEL_WATCHED) == "true"
        if not watched and obj.get("kind") != names.KIND:
            return
        uid = uid_of(obj)
        # Versions of one object rise, so a lower one was read before the watch told of the next.
        if uid not in self._gone and int(version_of(obj)) > self._heard.get(uid, 0):
            self._missing.setdefault(uid, self._clock())

    @property
    def overdue(self) -> float:
        """Seconds since the oldest version was read that the watch has not told of; 0 when it owes none."""
        return max(0.0, self._clock() - min(self._missing.values())) if self._missing else 0.0
