from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from outbox_api.crd import custom_resource_definition, openapi_schema
from outbox_api.schema import UnsupportedSchemaError, structural_schema


class Inner(BaseModel):
    """Inner."""

    only: Literal["a"] = "a"


class Outer(BaseModel):
    """Outer."""

    maybe: Inner | None = Field(default=None, description="its own description")
    labels: dict[str, str] | None = None
    with_default: int = 3
    optional_with_default: int | None = 3


def test_an_optional_reference_is_inlined_and_its_null_default_dropped() -> None:
    schema = structural_schema(Outer)
    assert schema["properties"]["maybe"] == {
        "description": "its own description",
        "properties": {"only": {"default": "a", "enum": ["a"], "type": "string"}},
        "type": "object",
    }
    assert schema["properties"]["labels"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert schema["properties"]["with_default"] == {"default": 3, "type": "integer"}
    assert schema["properties"]["optional_with_default"] == {"default": 3, "type": "integer"}


class WithUnion(BaseModel):
    field: int | str


class WithExclusiveBound(BaseModel):
    field: Annotated[int, Field(gt=0)]


class WithOpenObject(BaseModel):
    field: dict[str, Any]


@pytest.mark.parametrize("model", [WithUnion, WithExclusiveBound, WithOpenObject])
def test_a_construct_that_the_server_refuses_is_refused_here_with_its_path(model: type[BaseModel]) -> None:
    with pytest.raises(UnsupportedSchemaError, match=rf"{model.__name__}\.field"):
        structural_schema(model)


def _fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from _fields(field, f"{path}.{name}")
        yield from _fields(field.get("items", {}), f"{path}.{name}[]")


def test_every_field_of_spec_and_status_has_a_description() -> None:
    schema = openapi_schema()["properties"]
    bare = [
        path
        for section in ("spec", "status")
        for path, field in _fields(schema[section], section)
        if not field.get("description")
    ]
    assert bare == []


def test_every_text_and_list_of_the_spec_is_bounded_so_that_rules_stay_within_their_cost() -> None:
    unbounded = [
        path
        for path, field in _fields(openapi_schema()["properties"]["spec"], "spec")
        if (field.get("type") == "string" and not {"enum", "maxLength"} & set(field))
        or (field.get("type") == "array" and "maxItems" not in field)
    ]
    assert unbounded == []


def test_every_rule_says_which_field_it_is_about() -> None:
    def rules(schema: dict[str, Any]) -> Iterator[str]:
        for rule in schema.get("x-kubernetes-validations", ()):
            yield rule["message"]
        for value in (*schema.get("properties", {}).values(), schema.get("items", {})):
            if value:
                yield from rules(value)

    assert [message for message in rules(openapi_schema()) if not message.startswith(("spec.", "metadata."))] == []


def test_no_value_of_the_definition_is_empty_for_the_server_would_drop_it() -> None:
    def empties(value: Any, path: str) -> Iterator[str]:
        if isinstance(value, dict):
            for key, inner in value.items():
                if inner in (None, "", []) and key != "default":
                    yield f"{path}.{key}"
                yield from empties(inner, f"{path}.{key}")
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                yield from empties(inner, f"{path}[{index}]")

    assert list(empties(custom_resource_definition(), "")) == []
