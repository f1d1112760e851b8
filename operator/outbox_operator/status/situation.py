"""Everything a relay's status is made from, as it was seen at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from outbox_api import names
from outbox_api.reasons import RelayReason
from outbox_api.report import Report
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.kube.resources import CONFIG_MAP, DEPLOYMENT, Object
from outbox_operator.render.children import Child, Observed
from outbox_operator.verdict import Verdict


@dataclass(frozen=True)
class Shard:
    """One shard's part.

    Attributes:
        index: its number.
        deployment: its Deployment; None when it is not there.
        pods: its pods that are not being deleted, the oldest first.
        report: what its leader, or a pod on its way to lead, says of now; None when nothing is known of now.
        last_report: the last report, which may be of a pod that is gone; None when there is none that can be read.
    """

    index: int
    deployment: Object | None
    pods: tuple[Object, ...]
    report: Report | None
    last_report: Report | None


@dataclass(frozen=True)
class Situation:
    """One relay's.

    Attributes:
        relay: the resource.
        obstacle: what kept its children from being as rendered; None when nothing did.
        stopped: whether no pod is to run.
        pending: with the operator's hands off, the children that would be written.
        shards: each shard's part.
        now: the time.
    """

    relay: OutboxRelay
    obstacle: Verdict | None
    stopped: bool
    pending: tuple[Child, ...]
    shards: tuple[Shard, ...]
    now: datetime


def shards_of(relay: OutboxRelay, count: int, children: Observed, pods: list[Object]) -> tuple[Shard, ...]:
    """Sort what was seen by shard.

    Args:
        relay: the resource.
        count: how many shards it has.
        children: its children as they are.
        pods: its pods.
    """
    return tuple(_shard(relay, index, children, pods) for index in range(count))


def streams(report: Report) -> bool:
    """Whether a report says that events flow. A held topic keeps only its own events waiting."""
    return report.state == "Streaming" or (report.state == "Retrying" and report.reason == RelayReason.TOPIC_HELD)


def _shard(relay: OutboxRelay, index: int, children: Observed, pods: list[Object]) -> Shard:
    deployment = children.get(Child(DEPLOYMENT, names.deployment(relay.key.name, index)))
    own = [
        pod
        for pod in pods
        if pod["metadata"]["labels"].get(names.LABEL_SHARD) == str(index) and "deletionTimestamp" not in pod["metadata"]
    ]
    own.sort(key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))
    last = _report(children.get(Child(CONFIG_MAP, names.report(relay.key.name, index))))
    current = last if last is not None and _is_of_now(last, deployment, own) else None
    return Shard(index, deployment, tuple(own), current, last)


def _report(config_map: Object | None) -> Report | None:
    text = ((config_map or {}).get("data") or {}).get(names.REPORT_KEY)
    if text is None:
        return None
    try:
        return Report.model_validate_json(text)
    except ValidationError:
        # Of another version, or edited by hand; the relay writes a new one at its next change of state.
        return None


def _is_of_now(report: Report, deployment: Object | None, pods: list[Object]) -> bool:
    """Whether a report speaks of a pod that is there and reads the configuration that is wanted now.

    A report outlives its pod. One that names a leader is that pod's; one that names none was written by some pod
    on its way to lead, so by none that was created later.
    """
    wanted = config_hash(deployment)
    current = [pod for pod in pods if config_hash(pod) == wanted]
    if report.leader is not None:
        return any(pod["metadata"]["name"] == report.leader for pod in current)
    written = datetime.fromisoformat(report.time)
    return any(datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) <= written for pod in current)


def config_hash(obj: Object | None) -> str | None:
    """The hash of the configuration that a pod, or the pods of a Deployment, read."""
    spec: Mapping[str, Any] = (obj or {}).get("spec") or {}
    metadata = spec["template"]["metadata"] if "template" in spec else (obj or {}).get("metadata") or {}
    found = (metadata.get("annotations") or {}).get(names.ANNOTATION_CONFIG_HASH)
    return str(found) if found else None
