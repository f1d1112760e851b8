"""What a Deployment tells of its pods: refused ones, and whether the wanted ones run."""

from collections.abc import Mapping
from typing import Any

from outbox_api.reasons import ConditionReason
from outbox_operator.kube.resources import Object
from outbox_operator.verdict import Verdict


def refused_pods(deployment: Object | None) -> Verdict | None:
    """Why the cluster refuses to create the pods: a quota or another admission rule; None when it does not."""
    for condition in _status(deployment).get("conditions") or ():
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            message = condition.get("message", "")
            if "exceeded quota" in message:
                return Verdict.failing(
                    ConditionReason.QUOTA_EXCEEDED, f"{message}. Raise the quota, or lower spec.relay.resources."
                )
            return Verdict.failing(ConditionReason.REFUSED_BY_SERVER, f"Pods are refused: {message}.")
    return None


def rollout(deployment: Object | None) -> Verdict | None:
    """What is missing until all wanted pods run with the wanted template and are ready; None when nothing is."""
    if deployment is None:
        return Verdict.progressing(ConditionReason.PROGRESSING, "The Deployment is not there yet.")
    name, wanted, status = deployment["metadata"]["name"], deployment["spec"]["replicas"], _status(deployment)
    if status.get("observedGeneration", 0) < deployment["metadata"]["generation"]:
        return Verdict.progressing(ConditionReason.ROLLING_OUT, f"Deployment {name} is not acted on yet.")
    if status.get("updatedReplicas", 0) < wanted:
        return Verdict.progressing(ConditionReason.ROLLING_OUT, f"Deployment {name} is starting new pods.")
    if status.get("replicas", 0) > wanted:
        return Verdict.progressing(ConditionReason.ROLLING_OUT, f"Deployment {name} is ending old pods.")
    if status.get("availableReplicas", 0) < wanted:
        return Verdict.progressing(ConditionReason.ROLLING_OUT, f"Deployment {name} waits for its pods to be ready.")
    return None


def image(deployment: Object | None) -> str | None:
    """The image that the Deployment's pods run; None when there is no Deployment."""
    if deployment is None:
        return None
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return next((str(container["image"]) for container in containers if container["name"] == "relay"), None)


def _status(deployment: Object | None) -> Mapping[str, Any]:
    return (deployment or {}).get("status") or {}
