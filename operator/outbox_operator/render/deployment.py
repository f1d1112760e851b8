"""The Deployment that runs a shard's pods."""

from typing import Any

from outbox_api import names
from outbox_api.spec import OutboxRelaySpec
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.render.config import Configuration
from outbox_operator.render.metadata import labels, metadata, selector
from outbox_operator.render.template import container_fields, pod_fields, pod_metadata
from outbox_operator.render.volumes import volume_mounts, volumes
from outbox_operator.settings import RelayDefaults


def deployment(
    relay: OutboxRelay,
    spec: OutboxRelaySpec,
    configuration: Configuration,
    defaults: RelayDefaults,
    *,
    shard: int,
    stopped: bool,
) -> dict[str, Any]:
    """A shard's Deployment.

    Args:
        relay: the owner.
        spec: what it asks for.
        configuration: what its pods read.
        defaults: image and pull settings where the resource does not say.
        shard: the shard.
        stopped: whether no pod is to run.
    """
    own = labels(relay, "relay", shard=shard)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(relay, names.deployment(relay.key.name, shard), own),
        "spec": {
            "replicas": 0 if stopped else 1 + spec.relay.standbys,
            # Lease and epoch make two pods at once safe, and the new one can lead before the old one stops.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": selector(relay, shard)},
            "template": {
                "metadata": pod_metadata(spec, own, {names.ANNOTATION_CONFIG_HASH: configuration.hash}),
                "spec": {
                    "serviceAccountName": names.relay(relay.key.name),
                    "automountServiceAccountToken": True,
                    "enableServiceLinks": False,
                    # No runAsUser and no fsGroup: the image has a numeric user, and OpenShift assigns its own.
                    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                    **pod_fields(spec, defaults),
                    "containers": [_container(spec, configuration, defaults, shard)],
                    "volumes": volumes(relay, configuration),
                },
            },
        },
    }


def _container(
    spec: OutboxRelaySpec, configuration: Configuration, defaults: RelayDefaults, shard: int
) -> dict[str, Any]:
    return {
        "name": "relay",
        **container_fields(spec, defaults),
        "command": ["outbox-relay"],
        "args": ["run", "--config", f"{names.CONFIG_MOUNT}/{names.CONFIG_KEY}", "--shard", str(shard)],
        "ports": [{"name": "http", "containerPort": names.HTTP_PORT, "protocol": "TCP"}],
        "startupProbe": _probe("/livez", period=1, failures=60),
        "livenessProbe": _probe("/livez", period=10, failures=3),
        "readinessProbe": _probe("/readyz", period=2, failures=3),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # The last words of a relay that ends with an error are shown in the status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": volume_mounts(configuration),
    }


def _probe(path: str, *, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": 2,
        "failureThreshold": failures,
    }
