"""What BSON values become: as text in topics, keys and headers, and as JSON in the record's value."""

from outbox_relay.encoding.json_values import json_bytes
from outbox_relay.encoding.text import key_bytes, text

__all__ = ["json_bytes", "key_bytes", "text"]
