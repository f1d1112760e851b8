"""How a document is named in messages."""

from typing import Any

from outbox_relay.encoding.json_values import EncodingError
from outbox_relay.encoding.text import text

_LONGEST = 120


def describe_id(document_id: Any) -> str:
    """Return `_id=<text>`, shortened; a document whose id is null, absent or unreadable says so."""
    if document_id is None:
        return "without an _id that can be read"
    try:
        shown = text(document_id)
    except EncodingError:
        return "with an _id that has no text form"
    return f"_id={shown if len(shown) <= _LONGEST else shown[:_LONGEST] + '…'}"
