"""Templates such as `outbox.event.{aggregateType}`, compiled once into functions of a document.

What a template needs and a document lacks decides the outcome. A null leaves the part out (no key, no header); a field
that is not there refuses the event, or with `onMissingField: Ignore` leaves the part out as well. The topic cannot be
left out: without a value for it the event is refused, always.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from outbox_relay.encoding.text import text
from outbox_relay.events.decode import Document
from outbox_relay.events.fields import FieldPaths, getter, optional
from outbox_relay.events.record import EventRefusedError, Reason
from outbox_relay.routing.errors import RouteError

Lookup = Callable[[Document], Any]
"""Returns the value at a path; None where it is null, or absent and that is ignored; raises EventRefusedError else."""

BytesOf = Callable[[Document], bytes | None]
TextOf = Callable[[Document], str]

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_FIELD_PATH = re.compile(r"[^.$ {}]+(\.[^.$ {}]+)*")


@dataclass(frozen=True)
class Template:
    """A template taken apart.

    Attributes:
        literals: the texts around the fields, one more than fields.
        fields: the names between braces, in order: logical fields or document paths.
    """

    literals: tuple[str, ...]
    fields: tuple[str, ...]

    @classmethod
    def parse(cls, source: str, *, part: str) -> "Template":
        """Take a template apart; `part` is where it stands in the spec.

        Raises:
            RouteError: a brace without its other half, or what is between braces is no field path.
        """
        pieces = _PLACEHOLDER.split(source)
        literals, names = tuple(pieces[0::2]), tuple(pieces[1::2])
        if any("{" in literal or "}" in literal for literal in literals):
            raise RouteError(f"spec.{part}", f"{source!r} has a brace without its other half; write fields as {{name}}")
        for name in names:
            if not _FIELD_PATH.fullmatch(name):
                raise RouteError(
                    f"spec.{part}", f"{source!r} has {{{name}}}, which is no field; write a name or a dotted path"
                )
        return cls(literals, names)


def lookup(path: str, *, part: str, ignore_missing: bool) -> Lookup:
    """Return a lookup that applies the policy on absent fields; `part` is what of the route needs the field."""
    if ignore_missing:
        return optional(path)
    get = getter(path)

    def look_up(document: Document) -> Any:
        try:
            return get(document)
        except KeyError:
            raise EventRefusedError(
                Reason.MISSING_FIELD,
                f"field {path} is missing, and {part} needs it; write it in the event, or change spec.{part}"
                " or spec.route.onMissingField",
                field=path,
            ) from None

    return look_up


def text_template(source: str, paths: FieldPaths, *, part: str) -> TextOf:
    """Compile a template that every event must fill: null and absent fields both refuse the event."""
    template = Template.parse(source, part=part)
    if not template.fields:
        return lambda _: source
    names = [paths.path(name) for name in template.fields]
    lookups = [optional(path) for path in names]

    def refused(path: str) -> EventRefusedError:
        return EventRefusedError(
            Reason.MISSING_FIELD,
            f"field {path} is missing or null, and {part} needs it; set it in the event, or change spec.{part}",
            field=path,
        )

    if len(lookups) == 1:
        (look_up,), (before, after) = lookups, template.literals

        def fill_one(document: Document) -> str:
            value = look_up(document)
            if value is None:
                raise refused(names[0])
            return f"{before}{value if type(value) is str else text(value)}{after}"

        return fill_one

    def fill(document: Document) -> str:
        values = [look_up(document) for look_up in lookups]
        if None in values:
            raise refused(names[values.index(None)])
        return _joined(template, values)

    return fill


def bytes_template(
    source: str, paths: FieldPaths, *, part: str, ignore_missing: bool, single: Callable[[Any], bytes]
) -> BytesOf:
    """Compile a template for bytes; `single` encodes the value where the template is one field and nothing else."""
    template = Template.parse(source, part=part)
    if not template.fields:
        constant = source.encode()
        return lambda _: constant
    lookups = [lookup(paths.path(name), part=part, ignore_missing=ignore_missing) for name in template.fields]
    if template.literals == ("", ""):
        (look_up,) = lookups

        def encode_one(document: Document) -> bytes | None:
            value = look_up(document)
            return None if value is None else single(value)

        return encode_one

    def fill(document: Document) -> bytes | None:
        values = [look_up(document) for look_up in lookups]
        return None if None in values else _joined(template, values).encode()

    return fill


def _joined(template: Template, values: list[Any]) -> str:
    pieces = [template.literals[0]]
    for value, literal in zip(values, template.literals[1:], strict=True):
        pieces += (text(value), literal)
    return "".join(pieces)
