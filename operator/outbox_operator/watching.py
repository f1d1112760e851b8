"""kopf as a watch: its handlers see each change and enqueue the relay concerned; kopf itself writes nothing.

The reason of each setting stands beside it; all were measured.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, cast

import kopf

from outbox_api import names
from outbox_operator.keys import Key
from outbox_operator.kube.resources import (
    CONFIG_MAP,
    DEPLOYMENT,
    OUTBOX_RELAY,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
)

#: The kinds of children that are watched, and their pods. Leases and checkpoints change too often, Secrets and Events
#: are none of the operator's business.
CHILD_KINDS: Final = (CONFIG_MAP, DEPLOYMENT, POD, ROLE, ROLE_BINDING, SERVICE_ACCOUNT)
_SELECTOR: Final = f"{names.LABEL_WATCHED}=true"


def registry(
    on_event: Callable[[Key, str, str], None], login: Callable[[], Awaitable[kopf.ConnectionInfo]]
) -> kopf.OperatorRegistry:
    """The handlers.

    Args:
        on_event: told of each event of a relay, and of each child and pod with the relay it belongs to: the relay,
            the object's UID, and its version, which is empty when it was deleted.
        login: makes kopf's `ConnectionInfo`; called at start and whenever the server refuses the credentials.
    """
    found = kopf.OperatorRegistry()

    # Coroutines, since kopf would run plain functions in threads.
    async def relay_event(name: str | None, event: Mapping[str, Any], **_: Any) -> None:
        _pass_on(str(name), event)

    async def child_event(labels: Mapping[str, str], event: Mapping[str, Any], **_: Any) -> None:
        owner = labels.get(names.LABEL_RELAY)
        if owner is not None:
            _pass_on(owner, event)

    def _pass_on(relay: str, event: Mapping[str, Any]) -> None:
        metadata = event["object"]["metadata"]
        deleted = event["type"] == "DELETED"
        on_event(Key(metadata["namespace"], relay), metadata["uid"], "" if deleted else metadata["resourceVersion"])

    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        return await login()

    kopf.on.login(registry=found)(log_in)
    kopf.on.event(OUTBOX_RELAY.group, OUTBOX_RELAY.version, OUTBOX_RELAY.plural, registry=found)(relay_event)
    for resource in CHILD_KINDS:
        group, version, plural = resource.group, resource.version, resource.plural
        kopf.on.event(group, version, plural, registry=found, id=plural)(child_event)
    return found


def settings() -> kopf.OperatorSettings:
    """The settings under which kopf only watches."""
    found = kopf.OperatorSettings()
    found.peering.standalone = True
    found.posting.enabled = False
    # Otherwise it lists namespaces and CRDs, and without the right to do so it handles nothing for most of a minute.
    found.scanning.disabled = True
    # On the server: a decorator's `labels=` filters in the client, which would list all ConfigMaps of the cluster.
    for resource in CHILD_KINDS:
        found.watching.label_selectors[resource.group, resource.version, resource.plural] = _SELECTOR
    found.watching.chunk_size = 500
    found.watching.server_timeout = 300
    found.watching.client_timeout = 330
    found.watching.connect_timeout = 5
    # A worker a changed object lives this long; handlers return at once, so there is nothing to wait for. No limit to
    # the number of workers: with one, an idle worker blocks the next object for its idle time.
    found.queueing.idle_timeout = 0.01
    # Never used, since no handler here needs a finalizer; kopf's default one might be another operator's.
    found.persistence.finalizer = f"{names.GROUP}/unused-finalizer"
    # Each event of each object is logged otherwise.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    return found


class Watch:
    """kopf in a thread of its own.

    Not in the operator's own event loop: kopf takes over the signals, and cancels every task of its loop when it ends.
    """

    def __init__(self, registry: kopf.OperatorRegistry, namespaces: Collection[str]) -> None:
        """A watch that has not begun.

        Args:
            registry: the handlers; they are called in the watch's thread.
            namespaces: where to watch; empty for the whole cluster.
        """
        self._registry = registry
        self._namespaces = namespaces
        self._ready = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def ready(self) -> bool:
        """Whether it has begun to watch."""
        return self._ready.is_set()

    @property
    def problem(self) -> str | None:
        """Why it no longer watches; None while it does."""
        if self._thread.is_alive() or self._stop.is_set():
            return None
        return f"the watch ended: {self._failure or 'without an error'}"

    def stop(self, seconds: float) -> None:
        """End it, and wait at most so long."""
        self._stop.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            asyncio.run(
                kopf.operator(
                    registry=self._registry,
                    settings=settings(),
                    clusterwide=not self._namespaces,
                    namespaces=self._namespaces,
                    ready_flag=self._ready,
                    stop_flag=self._stop,
                    standalone=True,
                    # For peering alone, which is off; without it kopf asks the system for a user name, and the user
                    # of a container has none. Its type is one that kopf does not export.
                    identity=cast("Any", names.MANAGER),
                )
            )
        except BaseException as error:
            # The operator looks at `problem` and ends; an exception in a thread would end nothing.
            self._failure = error
            raise
