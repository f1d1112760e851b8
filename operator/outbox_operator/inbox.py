"""Which events of the watch are news.

Most events that reach the operator are echoes: of its own writes, or of what it had read when the event arrived.
An event is news when the object's version is not the last one that a reconciliation has seen; a deletion always is.
"""

from collections import OrderedDict
from typing import Final

from outbox_operator.hearing import Hearing
from outbox_operator.keys import Key
from outbox_operator.kube.resources import Object, uid_of, version_of
from outbox_operator.queue import KeyedQueue

#: Objects whose versions are remembered: some five thousand relays with their children and pods.
REMEMBERED: Final = 65_536


class Inbox:
    """Takes events, and adds a key to the queue when one of them is news."""

    def __init__(self, queue: KeyedQueue[Key], hearing: Hearing) -> None:
        """An inbox that has seen nothing, so that every event is news.

        Args:
            queue: where keys go.
            hearing: is told of all versions, heard and seen.
        """
        self._hearing = hearing
        self._queue = queue
        self._seen: OrderedDict[str, str] = OrderedDict()
        self._held: dict[Key, list[tuple[str, str]]] = {}

    def event(self, key: Key, uid: str, version: str) -> None:
        """Something happened to a relay, or to an object of it.

        Args:
            key: the relay.
            uid: of the object.
            version: its `resourceVersion`; empty when it was deleted.
        """
        self._hearing.heard(uid, version)
        if key in self._held:
            # The reconciliation in work may be about to see it.
            self._held[key].append((uid, version))
        elif self._is_news(uid, version):
            self._queue.add(key)

    def seen(self, obj: Object) -> None:
        """A reconciliation has read or written this version of the object and acts on it."""
        self._hearing.live(obj)
        uid = uid_of(obj)
        self._seen[uid] = version_of(obj)
        self._seen.move_to_end(uid)
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)

    def begin(self, key: Key) -> None:
        """A reconciliation of the key begins; its events are held until it ends."""
        self._held[key] = []

    def end(self, key: Key) -> None:
        """It ended: if an event that came meanwhile is news, the key's turn comes again."""
        if any(self._is_news(uid, version) for uid, version in self._held.pop(key)):
            self._queue.add(key)

    def _is_news(self, uid: str, version: str) -> bool:
        return not version or self._seen.get(uid) != version
