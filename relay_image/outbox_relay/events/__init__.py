"""One event: from the raw document of the outbox to the record it becomes, or to the reason why it becomes none."""

from outbox_relay.events.decode import CODEC, Document, decode
from outbox_relay.events.record import EventRefusedError, Reason, Record, Refusal

__all__ = ["CODEC", "Document", "EventRefusedError", "Reason", "Record", "Refusal", "decode"]
