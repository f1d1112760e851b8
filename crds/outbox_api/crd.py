"""The CustomResourceDefinition of OutboxRelay, made from the models."""

from typing import Any, Final

from pydantic import Field

from outbox_api.base import Model, closed_model, rules
from outbox_api.names import CRD_NAME, GROUP, KIND, MAX_NAME_LENGTH, PLURAL, VERSION
from outbox_api.schema import structural_schema
from outbox_api.spec.root import OutboxRelaySpec
from outbox_api.status import OutboxRelayStatus

SHORT_NAME: Final = "obr"
CATEGORY: Final = "outbox"


class OutboxRelay(Model):
    """A relay that moves committed events from a MongoDB outbox collection to Kafka, in order and without loss."""

    model_config = closed_model(
        **rules(
            (
                f"size(self.metadata.name) <= {MAX_NAME_LENGTH}",
                f"metadata.name must have at most {MAX_NAME_LENGTH} characters",
            ),
            (
                "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
                "metadata.name must be a DNS label: lower-case letters, digits and '-', without '.'",
            ),
        )
    )

    spec: OutboxRelaySpec = Field(description="What is asked for.")
    status: OutboxRelayStatus | None = Field(default=None, description="What the operator tells.")


def _column(name: str, path: str, description: str, *, type_: str = "string", wide: bool = False) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": type_, "jsonPath": path, "description": description}
    return {**column, "priority": 1} if wide else column


def _ready(field: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{field}'


_COLUMNS = [
    _column("Ready", _ready("status"), "Whether the relay works."),
    _column("Reason", _ready("reason"), "Why."),
    _column("Source", ".status.source", "Database and collection."),
    _column("Leader", ".status.leader", "Pod that leads."),
    _column("Lag", ".status.lag", "Age of the oldest event that is not settled."),
    _column("Pending", ".status.pending", "Unpublished events.", type_="integer"),
    _column("Dead", ".status.deadLettered", "Dead letters.", type_="integer"),
    _column("Age", ".metadata.creationTimestamp", "Age of the resource.", type_="date"),
    _column("Message", _ready("message"), "What happened, and the next step.", wide=True),
    _column("Generation", ".status.observedGeneration", "Observed generation.", type_="integer", wide=True),
    _column("Image", ".status.image", "Image of the relay.", wide=True),
]


def openapi_schema() -> dict[str, Any]:
    """Return the schema of the whole resource, as the API server serves it."""
    schema = structural_schema(OutboxRelay)
    properties = schema["properties"]
    schema["properties"] = {
        "apiVersion": {
            "type": "string",
            "description": "Version of the API, outboxrelay.io/v1alpha1.",
        },
        "kind": {"type": "string", "description": "Kind of the resource, OutboxRelay."},
        "metadata": {"type": "object"},
        **properties,
    }
    return schema


def custom_resource_definition() -> dict[str, Any]:
    """Return the CRD, complete with what the server would add, so that it reads back equal."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD_NAME},
        "spec": {
            "conversion": {"strategy": "None"},
            "group": GROUP,
            "names": {
                "categories": [CATEGORY],
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "shortNames": [SHORT_NAME],
                "singular": KIND.lower(),
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "additionalPrinterColumns": _COLUMNS,
                    "name": VERSION,
                    "schema": {"openAPIV3Schema": openapi_schema()},
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                }
            ],
        },
    }
