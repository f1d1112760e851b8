"""The write that brings the stored status to the wanted one, or none when it is there already."""

from typing import Any

from outbox_api import names
from outbox_api.status import OutboxRelayStatus
from outbox_operator.custom_resource import OutboxRelay


def status_patch(relay: OutboxRelay, wanted: OutboxRelayStatus) -> dict[str, Any] | None:
    """A JSON merge patch of the status subresource; None when nothing changes.

    It names the resource's UID, so that it never lands on another resource of the same name. Fields that this operator
    does not know are left as they are: a newer one may have written them.
    """
    wire = wanted.wire()
    fields = [field.alias or name for name, field in OutboxRelayStatus.model_fields.items()]
    changed = {name: wire.get(name) for name in fields if wire.get(name) != relay.status.get(name)}
    if not changed:
        return None
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"uid": relay.uid},
        "status": {**changed, "observedGeneration": relay.generation},
    }
