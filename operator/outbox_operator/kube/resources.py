"""The API resources the operator reads and writes, and their paths."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outbox_api import names

#: A Kubernetes object as JSON. Never changed in place once it came from the server.
Object = Mapping[str, Any]


@dataclass(frozen=True)
class Resource:
    """One namespaced kind of the API.

    Attributes:
        group: its API group; empty for the core group.
        version: its version.
        plural: its name in paths and in RBAC rules.
        kind: its `kind`.
    """

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """What stands in `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The path of the collection, or of one object.

        Args:
            namespace: its namespace; None for the collection over all namespaces.
            name: the object; None for the collection.
            subresource: such as `status`.
        """
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [base]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name is not None:
            parts.append(name)
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)


OUTBOX_RELAY = Resource(names.GROUP, names.VERSION, names.PLURAL, names.KIND)
SERVICE_ACCOUNT = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
POD = Resource("", "v1", "pods", "Pod")
EVENT = Resource("", "v1", "events", "Event")
ROLE = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDING = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
LEASE = Resource("coordination.k8s.io", "v1", "leases", "Lease")
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")

_BY_KIND = {
    (resource.api_version, resource.kind): resource
    for resource in (
        OUTBOX_RELAY,
        SERVICE_ACCOUNT,
        CONFIG_MAP,
        POD,
        EVENT,
        ROLE,
        ROLE_BINDING,
        LEASE,
        DEPLOYMENT,
    )
}


def resource_of(obj: Object) -> Resource:
    """The resource of an object that states its `apiVersion` and `kind`.

    Raises:
        KeyError: it is of a kind the operator does not know.
    """
    return _BY_KIND[obj["apiVersion"], obj["kind"]]


def uid_of(obj: Object) -> str:
    """The object's UID."""
    return str(obj["metadata"]["uid"])


def version_of(obj: Object) -> str:
    """The object's `resourceVersion`."""
    return str(obj["metadata"]["resourceVersion"])
