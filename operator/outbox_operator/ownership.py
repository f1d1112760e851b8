"""Which fields are the operator's: what server-side apply needs to know about objects that were created by POST.

An absent child is created by POST, because an apply would silently take over an object that someone else created in
between. The server then notes the operator as owner by *update*, and an apply never removes fields owned so. Before the
first apply the owner's entry is therefore rewritten as one by *apply*, as client-go's `csaupgrade` does.
"""

from collections.abc import Mapping
from typing import Any

from outbox_operator.kube.client import FIELD_MANAGER
from outbox_operator.kube.resources import Object


def upgraded(live: Object) -> list[dict[str, Any]] | None:
    """The object's `managedFields` with the operator's fields owned by apply; None when they are already.

    Args:
        live: the object, with its `managedFields`.
    """
    entries = list(live["metadata"].get("managedFields") or ())
    mine = [entry for entry in entries if entry.get("manager") == FIELD_MANAGER and not entry.get("subresource")]
    if not any(entry["operation"] == "Update" for entry in mine):
        return None
    fields: dict[str, Any] = {}
    for entry in mine:
        fields = _union(fields, entry.get("fieldsV1") or {})
    merged = {**mine[-1], "operation": "Apply", "fieldsV1": fields}
    return [entry for entry in entries if entry not in mine] + [merged]


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Both field sets together; a set is a tree of maps."""
    found = dict(one)
    for name, below in other.items():
        found[name] = _union(found.get(name, {}), below)
    return found
