"""Makes the children as rendered: created when absent, applied when different, left alone when neither."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from outbox_operator.belonging import Belonging, belonging, name_conflict, obstacle
from outbox_operator.compare import differences
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.kube.client import Kube
from outbox_operator.kube.errors import ApiError
from outbox_operator.kube.resources import Object, uid_of, version_of
from outbox_operator.ownership import upgraded
from outbox_operator.refusal import namespace_is_going, refusal
from outbox_operator.render.children import Child, Observed
from outbox_operator.verdict import Verdict


class NamespaceGoneError(Exception):
    """The namespace is being deleted, so nothing can be created in it, nor need be."""


class ChangedError(Exception):
    """The resource changed, or its deletion began, after it was read: what was rendered is no longer wanted."""


@dataclass
class Applied:
    """What came of the children.

    Attributes:
        live: each child as it now is, None when it is not there.
        verdict: what kept some from being made; None when all are as rendered.
        created: those created.
        changed: those applied, and the fields that differed.
    """

    live: dict[Child, Object | None]
    verdict: Verdict | None = None
    created: list[Child] = field(default_factory=list)
    changed: dict[Child, list[str]] = field(default_factory=dict)


async def observe(kube: Kube, namespace: str, children: list[Child]) -> dict[Child, Object | None]:
    """Each child as the server has it now, None when it is not there."""
    found = await asyncio.gather(*(kube.get(child.resource, namespace, child.name) for child in children))
    return dict(zip(children, found, strict=True))


async def make(
    kube: Kube,
    relay: OutboxRelay,
    rendered: Mapping[Child, Mapping[str, Any]],
    observed: Observed,
    confirm: Callable[[], Awaitable[None]],
) -> Applied:
    """Make the children as rendered, in their order, up to the first that cannot be made.

    Args:
        kube: the API server.
        relay: their owner, whose deletion has not begun.
        rendered: the wanted manifests.
        observed: the children as they are.
        confirm: called before the first write.

    Raises:
        ChangedError: from `confirm`.
        KubeError: no answer, or one that another try may change.
        NamespaceGoneError: the namespace is being deleted.
    """
    applied = Applied(dict(observed), verdict=obstacle(relay, observed))
    if applied.verdict is not None:
        return applied
    outdated = {
        child: manifest
        for child, manifest in rendered.items()
        if (live := observed.get(child)) is None or differences(manifest, live)
    }
    if outdated:
        await confirm()
    for child, manifest in outdated.items():
        try:
            applied.verdict = await _make_one(kube, relay, child, manifest, applied)
        except ApiError as error:
            if namespace_is_going(error):
                raise NamespaceGoneError(str(error)) from error
            applied.verdict = refusal(child, error)
            if applied.verdict is None:
                raise
        if applied.verdict is not None:
            break
    return applied


async def _make_one(
    kube: Kube, relay: OutboxRelay, child: Child, manifest: Mapping[str, Any], applied: Applied
) -> Verdict | None:
    live = applied.live.get(child)
    if live is None:
        try:
            applied.live[child] = await kube.create(manifest)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        else:
            applied.created.append(child)
            return None
        live = await kube.get(child.resource, relay.key.namespace, child.name)
        if live is None:
            raise ApiError(f"create {child}", status=409, reason="Conflict", message="it came and went")
        applied.live[child] = live
        if belonging(relay, live) is Belonging.FOREIGN:
            return name_conflict([child])
        if belonging(relay, live) is Belonging.LEAVING:
            return obstacle(relay, {child: live})
    found = differences(manifest, live)
    if found:
        await _take_over_fields(kube, child, relay.key.namespace, live)
        applied.live[child] = await kube.apply(manifest, uid=uid_of(live))
        applied.changed[child] = found
    return None


async def _take_over_fields(kube: Kube, child: Child, namespace: str, live: Object) -> None:
    entries = upgraded(live)
    if entries is not None:
        patch = {"metadata": {"resourceVersion": version_of(live), "managedFields": entries}}
        await kube.merge(child.resource, namespace, child.name, patch)
