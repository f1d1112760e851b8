"""The field reference: one table row a field, made from the schema that the API server gets."""

import json
from collections.abc import Iterator
from typing import Any

_HEAD = """# OutboxRelay: every field

Generated from the models by `make generate`; do not edit. `kubectl explain outboxrelay.spec --recursive` shows the same
in a cluster. A field without a default may be left out; a required one is marked with `*`.
"""


def field_reference(schema: dict[str, Any]) -> str:
    """Return the reference page in Markdown for the schema of the whole resource."""
    parts = [_HEAD]
    for section in ("spec", "status"):
        parts.append(f"## {section}\n\n| field | type | default | meaning |\n|---|---|---|---|")
        parts.extend(_rows(schema["properties"][section], section))
        parts.append("")
        rules = list(_rules(schema["properties"][section], section))
        if rules:
            parts.append(f"Rules that the API server enforces on {section}:\n")
            parts.extend(f"- {message}" for message in rules)
            parts.append("")
    return "\n".join(parts)


def _rows(schema: dict[str, Any], path: str) -> Iterator[str]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        child = f"{path}.{name}"
        mark = "*" if name in required else ""
        default = f"`{json.dumps(field['default'])}`" if field.get("default", {}) != {} else ""
        meaning = field.get("description", "").replace("|", "\\|")
        yield f"| `{child}`{mark} | {_type(field)} | {default} | {meaning} |"
        yield from _rows(field, child)
        yield from _rows(field.get("items", {}), f"{child}[]")


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return " \\| ".join(str(value) for value in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    if field.get("format"):
        return str(field["format"])
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if "additionalProperties" in field:
        return f"map of {_type(field['additionalProperties'])}"
    return str(field.get("type", ""))


def _rules(schema: dict[str, Any], path: str) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield rule["message"]
    for name, field in schema.get("properties", {}).items():
        yield from _rules(field, f"{path}.{name}")
        yield from _rules(field.get("items", {}), f"{path}.{name}[]")
