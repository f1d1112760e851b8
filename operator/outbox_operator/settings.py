"""What the operator's flags and environment say."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RelayDefaults:
    """What a relay gets where its resource does not say otherwise.

    Attributes:
        image: the relay's image, with tag or digest.
        pull_policy: `Always`, `IfNotPresent` or `Never`; None for the cluster's default.
        pull_secrets: names of image pull secrets, which must exist in the relays' namespaces.
    """

    image: str
    pull_policy: str | None = None
    pull_secrets: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeaseSettings:
    """The Lease by which operators agree on one that works.

    Attributes:
        namespace: where it is.
        name: its name.
        identity: who this process is, such as its pod's name.
        duration: seconds after its last renewal at which others may take it.
        renew: seconds between two renewals.
        retry: seconds between two looks of an operator that waits.
    """

    namespace: str
    name: str
    identity: str
    duration: float = 15.0
    renew: float = 5.0
    retry: float = 0.5


@dataclass(frozen=True)
class Settings:
    """The operator's settings.

    Attributes:
        namespaces: the namespaces it serves; empty for all.
        relay: defaults of the relays.
        lease: leader election; None to work at once, for one process on a laptop.
        resync: seconds after which each resource is looked at again, changed or not.
        concurrency: how many resources are in work at once.
        port: of `/livez`, `/readyz` and `/metrics`; 0 for any free one.
    """

    namespaces: tuple[str, ...]
    relay: RelayDefaults
    lease: LeaseSettings | None = None
    resync: float = 600.0
    concurrency: int = 8
    port: int = 8080
