"""The files of a relay's pod: configuration, the user's Secrets and certificate authorities, a scratch folder."""

from typing import Any

from outbox_api import names
from outbox_api.relay_config import MountedKey
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.render.config import Configuration
from outbox_operator.render.metadata import digest


def volumes(relay: OutboxRelay, configuration: Configuration) -> list[dict[str, Any]]:
    """The pod's volumes.

    The user's objects are optional: a pod whose Secret is missing starts and says which one it misses, where a pod that
    waits for its volume says so only to who looks at its events. Only the keys in use are mounted.
    """
    found: list[dict[str, Any]] = [
        {"name": "config", "configMap": {"name": names.config(relay.key.name)}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
    ]
    for (kind, name), keys in _by_object(configuration).items():
        items = [{"key": key.key, "path": key.key} for key in keys]
        source: dict[str, Any]
        if kind == "Secret":
            source = {"secret": {"secretName": name, "items": items, "optional": True}}
        else:
            source = {"configMap": {"name": name, "items": items, "optional": True}}
        found.append({"name": _volume_name(keys[0]), **source})
    return found


def volume_mounts(configuration: Configuration) -> list[dict[str, Any]]:
    """Where the container sees them. Folders, not single files, so that a changed Secret arrives without a restart."""
    return [
        {"name": "config", "mountPath": names.CONFIG_MOUNT, "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the pod's own, empty at each start
        *(
            {
                "name": _volume_name(keys[0]),
                "mountPath": f"{names.SECRETS_MOUNT}/{keys[0].directory}",
                "readOnly": True,
            }
            for keys in _by_object(configuration).values()
        ),
    ]


def _by_object(configuration: Configuration) -> dict[tuple[str, str], list[MountedKey]]:
    found: dict[tuple[str, str], list[MountedKey]] = {}
    for key in configuration.mounts:
        found.setdefault((key.kind, key.name), []).append(key)
    return found


def _volume_name(key: MountedKey) -> str:
    # An object's name may be longer than a volume's may be, and hold dots.
    return f"{key.kind.lower()}-{digest([key.kind, key.name])[:10]}"
