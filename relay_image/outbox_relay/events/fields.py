"""Where things are in a document: logical fields, dotted paths, and functions that look them up."""

from collections.abc import Callable, Iterable
from dataclasses import fields as dataclass_fields
from operator import itemgetter
from typing import Any

from pydantic.alias_generators import to_camel

from outbox_api.spec import FieldNames
from outbox_relay.events.decode import Document

Getter = Callable[[Document], Any]
"""Returns the value at a path, None where the document says null, and raises KeyError where there is nothing."""


class FieldPaths:
    """Translates what a route says into paths of the document.

    A route names a logical field (`aggregateId`) or a dotted document path. The first segment of a path is a
    logical field if it is one, else a field of the document.
    """

    def __init__(self, names: FieldNames) -> None:
        self._paths: dict[str, str] = {
            to_camel(field.name): getattr(names, field.name) for field in dataclass_fields(names)
        }

    def path(self, name: str) -> str:
        """Return the document path of a logical field, or of a path that may start with one."""
        first, dot, rest = name.partition(".")
        return f"{self._paths.get(first, first)}{dot}{rest}"


def getter(path: str) -> Getter:
    """Return the function that looks a dotted path up; a number is the index into an array."""
    segments = path.split(".")
    if len(segments) == 1:
        return itemgetter(path)

    def look_up(document: Document) -> Any:
        value: Any = document
        for segment in segments:
            if isinstance(value, dict):
                value = value[segment]
            elif isinstance(value, list) and segment.isdecimal() and int(segment) < len(value):
                value = value[int(segment)]
            else:
                raise KeyError(path)
        return value

    return look_up


def optional(path: str) -> Callable[[Document], Any]:
    """Return the function that looks a dotted path up and gives None where there is nothing."""
    get = getter(path)

    def look_up(document: Document) -> Any:
        try:
            return get(document)
        except KeyError:
            return None

    return look_up if "." in path else lambda document: document.get(path)


def top_level(paths: Iterable[str]) -> frozenset[str]:
    """Return the top-level fields that hold the paths: what a projection must let through."""
    return frozenset(path.partition(".")[0] for path in paths)
