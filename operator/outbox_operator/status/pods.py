"""What keeps pods from running, in words that name the pod and the next step."""

import json
from typing import Any

from outbox_api.reasons import ConditionReason
from outbox_operator.kube.resources import Object
from outbox_operator.verdict import Verdict

_IMAGE_REASONS = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
_CONFIG_REASONS = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
#: Restarts of a container that is not ready from which it counts as a crash loop, whatever it does at the moment.
_RESTARTS = 3
_LAST_WORDS = 400


def pod_trouble(pods: tuple[Object, ...]) -> Verdict | None:
    """Why a pod does not run; None when each does, or may soon.

    The newest pod is asked first: in a rollout it is the one that matters.
    """
    for pod in reversed(pods):
        verdict = _unschedulable(pod) or _container_trouble(pod)
        if verdict is not None:
            return verdict
    return None


def _unschedulable(pod: Object) -> Verdict | None:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return Verdict.failing(
                ConditionReason.UNSCHEDULABLE,
                f"Pod {_name(pod)} finds no node: {condition.get('message', '')} "
                "Free or add a node, or change spec.relay.resources or spec.relay.template.",
            )
    return None


def _container_trouble(pod: Object) -> Verdict | None:
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if status.get("name") != "relay" or status.get("ready"):
            continue
        waiting = (status.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason", "")
        if reason in _IMAGE_REASONS:
            return Verdict.failing(
                ConditionReason.IMAGE_PULL_FAILED,
                f"Pod {_name(pod)} cannot pull {status.get('image')}: {waiting.get('message', reason)} "
                "Check spec.relay.image or the operator's relay image, and the pull secrets.",
            )
        if reason in _CONFIG_REASONS:
            return Verdict.failing(reason, f"Pod {_name(pod)} cannot start: {waiting.get('message', reason)}")
        return _crash(pod, status, reason)
    return None


def _crash(pod: Object, status: dict[str, Any], waiting: str) -> Verdict | None:
    ended = (status.get("state") or {}).get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
    if ended.get("reason") == "OOMKilled":
        return Verdict.failing(
            ConditionReason.OUT_OF_MEMORY,
            f"Pod {_name(pod)} was killed for using more memory than its limit. "
            "Raise spec.relay.resources.limits.memory.",
        )
    if waiting == "CrashLoopBackOff" or status.get("restartCount", 0) >= _RESTARTS:
        return Verdict.failing(
            ConditionReason.CRASH_LOOP,
            f"Pod {_name(pod)} ends again and again, last with exit code {ended.get('exitCode', 'unknown')}"
            f"{_last_words(ended)}. See kubectl logs {_name(pod)} --previous.",
        )
    return None


def _last_words(ended: dict[str, Any]) -> str:
    """What the relay said last: its termination message, or the last line of its log."""
    lines = (ended.get("message") or "").strip().splitlines()
    if not lines:
        return ""
    words = lines[-1]
    try:
        record = json.loads(words)
    except ValueError:
        record = None
    if isinstance(record, dict):
        words = str(record.get("message") or record.get("event") or words)
    return f": {words[:_LAST_WORDS]}"


def _name(pod: Object) -> str:
    return str(pod["metadata"]["name"])
