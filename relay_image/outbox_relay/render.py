"""One event, from raw BSON to the record that Kafka gets or to the refusal that says why not. No I/O, no clock."""

from typing import Any, Protocol

from outbox_api.spec import field_names
from outbox_api.spec.route import Route
from outbox_api.spec.source import CommonSource
from outbox_relay.encoding.json_values import EncodingError
from outbox_relay.events.decode import Document, decode
from outbox_relay.events.describe import describe_id
from outbox_relay.events.record import EventRefusedError, Reason, Record, Refusal
from outbox_relay.routing.route import CompiledRoute, compile_route


class RoutedSpec(Protocol):
    """What a renderer needs of a spec: the resource's own and the relay's configuration both have it."""

    @property
    def source(self) -> CommonSource:
        """Where events come from: the layout of the documents is read from it."""

    @property
    def route(self) -> Route:
        """What record an event becomes."""


class Renderer:
    """Renders events as one spec says. Built once; pure, and safe to call from any thread.

    Attributes:
        fields: top-level fields of the documents that rendering reads, `_id` included: what a projection of the
            change stream or of a query has to let through.
    """

    def __init__(self, route: CompiledRoute) -> None:
        self._route = route
        self.fields = route.fields

    @classmethod
    def from_spec(cls, spec: RoutedSpec) -> "Renderer":
        """Build the renderer of a spec.

        Raises:
            RouteError: a template, pattern or replacement is malformed.
        """
        return cls(compile_route(spec.route, field_names(spec.source.fields)))

    def render(self, raw: bytes) -> Record | Refusal:
        """Return what becomes of one document, given as BSON. Never raises for what a document holds.

        Topic, partition and timestamp are as routed: hold them against Kafka with `routing.sendable` before sending.
        """
        try:
            document = decode(raw)
        except EventRefusedError as refused:
            return _refusal(refused, refused.document_id)
        return self.render_document(document)

    def render_document(self, document: Document) -> Record | Refusal:
        """Return what becomes of one document that was decoded with `events.CODEC`, as `render` does for raw BSON."""
        try:
            return self._record(document)
        except EventRefusedError as refused:
            return _refusal(refused, document.get("_id"))
        except EncodingError as error:
            unusable = EventRefusedError(Reason.ENCODING, f"a value cannot be encoded ({error}); simplify it")
            return _refusal(unusable, document.get("_id"))

    def _record(self, document: Document) -> Record:
        route = self._route
        topic = route.topic(document)  # first, so that a document of another kind is refused for what it lacks most
        headers = [(name, value) for name, fill in route.headers if (value := fill(document)) is not None]
        own = route.event_headers(document)
        return Record(
            topic=topic,
            partition=None if route.partition is None else route.partition(document),
            timestamp=None if route.timestamp is None else route.timestamp(document),
            key=route.key(document),
            value=route.value(document),
            headers=headers + own if own else headers,
            document_id=document.get("_id"),
        )


def _refusal(refused: EventRefusedError, document_id: Any) -> Refusal:
    message = f"document {describe_id(document_id)}: {refused.problem}"
    return Refusal(refused.reason, message, document_id, refused.field)
