"""The relay's configuration file and the ConfigMap that carries it."""

from dataclasses import dataclass
from typing import Any

import yaml

from outbox_api import names
from outbox_api.relay_config import Listen, MountedKey, OwnerReference, RelayConfig, Runtime, to_relay_spec
from outbox_api.spec import OutboxRelaySpec
from outbox_api.spec.monitoring import Monitoring
from outbox_api.spec.relay import PodTemplate, Relay
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.render.metadata import digest, labels, metadata


@dataclass(frozen=True)
class Configuration:
    """A relay's configuration.

    Attributes:
        text: the file, YAML.
        hash: changes when a running relay must be replaced to honour the file.
        mounts: the keys of Secrets and ConfigMaps that the file names.
    """

    text: str
    hash: str
    mounts: tuple[MountedKey, ...]


def configuration(relay: OutboxRelay, spec: OutboxRelaySpec) -> Configuration:
    """The configuration of a relay's pods, the same for all shards.

    What only the operator acts on (suspend, the pods' template, monitoring) is left at its default, so that changing it
    restarts no relay for the configuration's sake.
    """
    relay_spec, mounts = to_relay_spec(spec, names.SECRETS_MOUNT)
    relay_spec = relay_spec.model_copy(
        update={
            "suspend": False,
            "relay": Relay(shards=spec.relay.shards, lease=spec.relay.lease, template=_time_to_stop(spec)),
            "monitoring": Monitoring(),
        }
    )
    runtime = Runtime(
        name=relay.key.name,
        namespace=relay.key.namespace,
        uid=relay.uid,
        election="Kubernetes",
        labels=labels(relay, "state", watched=False),
        owner_reference=OwnerReference(
            api_version=names.API_VERSION, kind=names.KIND, name=relay.key.name, uid=relay.uid
        ),
        listen=Listen(host=None, port=names.HTTP_PORT),
    )
    # Without what is at its default: a field that a later version adds then changes no file, and so restarts no relay.
    config = RelayConfig(spec=relay_spec, runtime=runtime)
    wire = config.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    # Here None is a value, every address, and not the default, loopback.
    wire["runtime"]["listen"] = {"host": None}
    return Configuration(yaml.safe_dump(wire, sort_keys=False, allow_unicode=True), digest(wire), tuple(mounts))


def _time_to_stop(spec: OutboxRelaySpec) -> PodTemplate | None:
    """What the relay needs of the pods' template: how long its end may take."""
    grace = spec.relay.template and spec.relay.template.termination_grace_period_seconds
    return PodTemplate(termination_grace_period_seconds=grace) if grace else None


def config_map(relay: OutboxRelay, configuration: Configuration) -> dict[str, Any]:
    """The ConfigMap that the pods mount."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(relay, names.config(relay.key.name), labels(relay, "config")),
        "data": {names.CONFIG_KEY: configuration.text},
    }
