"""The base of every model of the contract, and the shapes of text that Kubernetes names, times and sizes take."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema
from pydantic.alias_generators import to_camel

from outbox_api.quantities import DURATION_PATTERN, SIZE_PATTERN


class Model(BaseModel):
    """A part of the contract: camelCase on the wire, snake_case in Python, immutable, and closed to unknown fields."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    def wire(self) -> dict[str, Any]:
        """Return the JSON form: camelCase keys, absent optional fields left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def rules(*rules: tuple[str, str]) -> dict[str, Any]:
    """Return the schema extension that carries CEL rules, given as (rule, message) pairs.

    A message names the field it is about, because the API server shows no path for a rule at the root.
    """
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in rules]}


def closed_model(**extra: Any) -> ConfigDict:
    """Return the model configuration that adds `extra` to the JSON schema of the model."""
    return ConfigDict(json_schema_extra=extra)


def section(model: type[Model], description: str) -> Any:
    """Return a field whose inner defaults apply when the user leaves the object out.

    The CRD's default is `{}`, which the server fills in. Where the object has CEL rules it is spelled out: the server
    checks the rules on the bare default, when it accepts the CRD.
    """
    default = model().wire() if "json_schema_extra" in model.model_config else {}
    return Field(default_factory=model, description=description, json_schema_extra={"default": default})


def _text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


ShortText = Annotated[str, StringConstraints(min_length=1, max_length=253)]
LabelValue = Annotated[str, StringConstraints(max_length=63)]
LongText = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Duration = Annotated[
    str,
    StringConstraints(pattern=DURATION_PATTERN, max_length=32),
    Field(json_schema_extra={"format": "duration"}),
]
Size = Annotated[str, StringConstraints(pattern=SIZE_PATTERN, max_length=16)]
ObjectName = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", min_length=1, max_length=253),
]
DataKey = Annotated[str, StringConstraints(pattern=r"^[-._a-zA-Z0-9]+$", min_length=1, max_length=253)]
DateTime = Annotated[str, StringConstraints(max_length=64), Field(json_schema_extra={"format": "date-time"})]
Quantity = Annotated[str, BeforeValidator(_text), WithJsonSchema({"x-kubernetes-int-or-string": True})]
OpaqueObject = Annotated[
    Mapping[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
]
