"""The spec of an OutboxRelay: what a user asks for."""

from outbox_api.spec.root import CommonSpec, OutboxRelaySpec
from outbox_api.spec.source import FieldNames, Source, field_names, order_field

__all__ = ["CommonSpec", "FieldNames", "OutboxRelaySpec", "Source", "field_names", "order_field"]
