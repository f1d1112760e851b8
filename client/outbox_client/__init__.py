"""What an application uses around its outbox: events in its own transaction, and consumers that act once.

`Outbox`/`AsyncOutbox` write events; `Inbox`/`AsyncInbox` make an effect happen once for each event id; `consume`
(in `outbox_client.consumer`, which needs aiokafka) joins an inbox and a Kafka consumer.
"""

from outbox_client.event import DEBEZIUM_FIELDS, OUTBOX_FIELDS, Event, Fields
from outbox_client.inbox import AsyncInbox, Inbox
from outbox_client.outbox import AsyncOutbox, NotInTransactionError, Outbox

__all__ = [
    "DEBEZIUM_FIELDS",
    "OUTBOX_FIELDS",
    "AsyncInbox",
    "AsyncOutbox",
    "Event",
    "Fields",
    "Inbox",
    "NotInTransactionError",
    "Outbox",
]
