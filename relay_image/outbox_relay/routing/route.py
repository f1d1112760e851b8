"""A route, compiled once into functions of a document."""

from dataclasses import dataclass

from outbox_api.spec import FieldNames
from outbox_api.spec.route import Route
from outbox_relay.encoding.payload import json_payload
from outbox_relay.encoding.text import key_bytes, text_bytes
from outbox_relay.events.decode import Document
from outbox_relay.events.fields import FieldPaths, top_level
from outbox_relay.routing.parts import HeadersOf, IntOf, event_headers, partition_field, timestamp_field
from outbox_relay.routing.rewrite import topic_rewrite
from outbox_relay.routing.template import BytesOf, Template, TextOf, bytes_template, lookup, text_template


@dataclass(frozen=True, slots=True)
class CompiledRoute:
    """What of a record comes from where.

    Attributes:
        headers: the route's own headers, in order; `event_headers` follow them.
        partition, timestamp: None where the route names no field for them.
        fields: top-level fields of the document that the functions read, `_id` included.
    """

    topic: TextOf
    key: BytesOf
    value: BytesOf
    headers: list[tuple[str, BytesOf]]
    event_headers: HeadersOf
    partition: IntOf | None
    timestamp: IntOf | None
    fields: frozenset[str]


def compile_route(route: Route, names: FieldNames) -> CompiledRoute:
    """Compile a route for documents whose logical fields have these `names`.

    Raises:
        RouteError: a template, pattern or replacement is malformed.
    """
    paths = FieldPaths(names)
    ignore = route.on_missing_field == "Ignore"
    return CompiledRoute(
        topic=_topic(route, paths),
        key=bytes_template(route.key, paths, part="route.key", ignore_missing=ignore, single=key_bytes),
        value=_payload(names.payload, ignore_missing=ignore),
        headers=[
            (
                header.name,
                bytes_template(
                    header.value,
                    paths,
                    part=f"route.headers[{index}].value",
                    ignore_missing=ignore,
                    single=text_bytes,
                ),
            )
            for index, header in enumerate(route.headers)
        ],
        event_headers=event_headers(names.headers),
        partition=None
        if route.partition_field is None
        else partition_field(route.partition_field, paths, ignore_missing=ignore),
        timestamp=None
        if route.timestamp_field is None
        else timestamp_field(route.timestamp_field, paths, ignore_missing=ignore),
        fields=_fields_read(route, names, paths),
    )


def _topic(route: Route, paths: FieldPaths) -> TextOf:
    fill = text_template(route.topic, paths, part="route.topic")
    if route.topic_rewrite is None:
        return fill
    rewrite = topic_rewrite(route.topic_rewrite.pattern, route.topic_rewrite.replacement)
    return lambda document: rewrite(fill(document))


def _payload(path: str, *, ignore_missing: bool) -> BytesOf:
    look_up = lookup(path, part="source.fields.payload", ignore_missing=ignore_missing)

    def encode(document: Document) -> bytes:
        return json_payload(look_up(document))

    return encode


def _fields_read(route: Route, names: FieldNames, paths: FieldPaths) -> frozenset[str]:
    templates = [route.topic, route.key, *(header.value for header in route.headers)]
    named = [name for source in templates for name in Template.parse(source, part="route").fields]
    named += [name for name in (route.partition_field, route.timestamp_field) if name is not None]
    return top_level(["_id", names.payload, names.headers, *map(paths.path, named)])
