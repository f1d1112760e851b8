"""Names that operator, relay, chart and tools share: the API group, labels, annotations, children and files."""

from typing import Final

GROUP: Final = "outboxrelay.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "OutboxRelay"
PLURAL: Final = "outboxrelays"
CRD_NAME: Final = f"{PLURAL}.{GROUP}"

MAX_NAME_LENGTH: Final = 45
"""So that the name of a shard's Deployment, which labels and hostnames carry, stays within a label's 63 characters."""

LABEL_NAME: Final = "app.kubernetes.io/name"
LABEL_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_RELAY: Final = f"{GROUP}/relay"
LABEL_SHARD: Final = f"{GROUP}/shard"
LABEL_WATCHED: Final = f"{GROUP}/watched"
APP_NAME: Final = "outbox-relay"
MANAGER: Final = "outbox-relay-operator"

ANNOTATION_CONFIG_HASH: Final = f"{GROUP}/config-hash"
ANNOTATION_PAUSED: Final = f"{GROUP}/paused"
ANNOTATION_RECONCILE_AT: Final = f"{GROUP}/reconcile-at"
ANNOTATION_POSITION_REQUEST: Final = f"{GROUP}/position-request"
ANNOTATION_POSITION_LOST: Final = f"{GROUP}/position-lost"
"""On a checkpoint that the operator had to create again although status remembers a position: its cluster time."""

CONFIG_KEY: Final = "relay.yaml"
CHECKPOINT_KEY: Final = "checkpoint.json"
REPORT_KEY: Final = "report.json"
CONFIG_MOUNT: Final = "/etc/outbox-relay"
SECRETS_MOUNT: Final = "/etc/outbox-relay-secrets"
HTTP_PORT: Final = 8080


def config(name: str) -> str:
    """Return the name of the ConfigMap that holds the relay's configuration."""
    return f"{name}-outbox-config"


def relay(name: str) -> str:
    """Return the name that the relay's ServiceAccount, Role and RoleBinding share."""
    return f"{name}-outbox-relay"


def deployment(name: str, shard: int) -> str:
    """Return the name of a shard's Deployment."""
    return f"{name}-outbox-{shard}"


def lease(name: str, shard: int) -> str:
    """Return the name of a shard's Lease."""
    return f"{name}-outbox-{shard}-lease"


def checkpoint(name: str, shard: int) -> str:
    """Return the name of a shard's checkpoint ConfigMap (or Secret)."""
    return f"{name}-outbox-{shard}-checkpoint"


def report(name: str, shard: int) -> str:
    """Return the name of a shard's report ConfigMap."""
    return f"{name}-outbox-{shard}-report"
