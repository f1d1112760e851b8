"""Turns a pydantic model into a structural schema of the Kubernetes API (apiextensions.k8s.io/v1).

The API server refuses much of JSON Schema. What this converter does not know, it refuses too, so that a model that the
server would refuse fails in a test and not in a user's cluster.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

_KEPT = {
    "type",
    "description",
    "default",
    "enum",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "maxProperties",
    "required",
    "x-kubernetes-validations",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
}
_DROPPED = {"title"}
_HANDLED = {"$ref", "$defs", "anyOf", "const", "properties", "items", "additionalProperties"}


class UnsupportedSchemaError(ValueError):
    """A model uses a construct that a structural schema cannot hold."""


def structural_schema(model: type[BaseModel]) -> Schema:
    """Return the structural schema of `model`, by alias.

    Raises:
        UnsupportedSchemaError: the model uses a construct that the API server would refuse.
    """
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(schema, schema.get("$defs", {}), model.__name__)


def _convert(schema: Mapping[str, Any], definitions: Mapping[str, Schema], path: str) -> Schema:
    schema = _resolve(schema, definitions, path)
    unknown = set(schema) - _KEPT - _DROPPED - _HANDLED
    if unknown:
        raise UnsupportedSchemaError(f"{path}: {', '.join(sorted(unknown))} cannot stand in a structural schema")
    result: Schema = {key: value for key, value in schema.items() if key in _KEPT}
    if "const" in schema:
        result["enum"] = [schema["const"]]
    if "properties" in schema:
        result["properties"] = {
            name: _convert(property_, definitions, f"{path}.{name}") for name, property_ in schema["properties"].items()
        }
    if "items" in schema:
        result["items"] = _convert(schema["items"], definitions, f"{path}[]")
    values = schema.get("additionalProperties", False)
    if isinstance(values, Mapping):
        result["additionalProperties"] = _convert(values, definitions, f"{path}[*]")
    elif values is True and "x-kubernetes-preserve-unknown-fields" not in schema:
        raise UnsupportedSchemaError(f"{path}: an open object needs x-kubernetes-preserve-unknown-fields")
    return result


def _resolve(schema: Mapping[str, Any], definitions: Mapping[str, Schema], path: str) -> Schema:
    """Inline references and fold `X or null`; what stands beside a reference wins over what it refers to."""
    merged = dict(schema)
    while "$ref" in merged or "anyOf" in merged:
        if "anyOf" in merged:
            options = [option for option in merged.pop("anyOf") if option != {"type": "null"}]
            if len(options) != 1:
                raise UnsupportedSchemaError(f"{path}: a union of types cannot stand in a structural schema")
            inner = options[0]
            if merged.get("default", ...) is None:
                del merged["default"]
        else:
            inner = definitions[merged.pop("$ref").removeprefix("#/$defs/")]
        merged = {**inner, **merged}
    return merged
