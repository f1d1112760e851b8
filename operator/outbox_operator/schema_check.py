"""Whether the cluster's CRD has all that this operator knows: with an older one, new fields vanish without a word."""

from collections.abc import Iterator, Mapping
from typing import Any

from outbox_api import names
from outbox_api.crd import openapi_schema
from outbox_operator.kube.client import Kube
from outbox_operator.kube.errors import ApiError

_HOW = (
    "Install the CRD of this version: helm upgrade with crds.enabled=true, or kubectl apply -f crds/outboxrelays.yaml"
)


class SchemaError(Exception):
    """The CRD is absent or older than this operator; the message says what to do."""


async def check_schema(kube: Kube) -> None:
    """Compare the schema that the API server publishes with the model.

    Raises:
        SchemaError: it is absent or older.
        KubeError: the server did not say.
    """
    try:
        document = await kube.read(f"/openapi/v3/apis/{names.GROUP}/{names.VERSION}")
    except ApiError as error:
        if error.status == 404:
            raise SchemaError(f"The API server does not know {names.CRD_NAME}. {_HOW}.") from error
        raise
    missing = missing_fields(published_schema(document), openapi_schema())
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise SchemaError(f"The CRD in the cluster is older than this operator; it lacks {shown}. {_HOW}.")


def published_schema(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of the kind in an OpenAPI v3 document of its group and version; empty when it is not in it."""
    for schema in document.get("components", {}).get("schemas", {}).values():
        kinds = schema.get("x-kubernetes-group-version-kind") or ()
        if any((kind.get("group"), kind.get("kind")) == (names.GROUP, names.KIND) for kind in kinds):
            return dict(schema)
    return {}


def missing_fields(published: Mapping[str, Any], model: Mapping[str, Any]) -> list[str]:
    """The fields and enum values of spec and status that the model has and the published schema has not."""
    known = set(_paths(published, ""))
    # Whose parents are missing too is left out: one line a new section is enough.
    missing = [path for path in _paths(model, "") if path not in known and path.startswith((".spec", ".status"))]
    gone = set(missing)
    return [path.lstrip(".") for path in missing if path.rpartition(".")[0] not in gone]


def _paths(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for value in schema.get("enum") or ():
        yield f"{path}={value}"
    for name, below in (schema.get("properties") or {}).items():
        yield f"{path}.{name}"
        yield from _paths(below, f"{path}.{name}")
    if isinstance(schema.get("items"), Mapping):
        yield from _paths(schema["items"], f"{path}[]")
