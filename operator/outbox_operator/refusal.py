"""What the server's refusal of a child means for the user."""

from outbox_api.reasons import ConditionReason
from outbox_operator.kube.errors import ApiError
from outbox_operator.kube.resources import DEPLOYMENT
from outbox_operator.render.children import Child
from outbox_operator.verdict import Verdict


def namespace_is_going(error: ApiError) -> bool:
    """Whether the server refuses since the namespace is being deleted: everything goes, and nothing is to be said."""
    return error.status == 403 and "because it is being terminated" in error.message


def refusal(child: Child, error: ApiError) -> Verdict | None:
    """The verdict for a write that the server refused; None when trying again may help."""
    if error.status == 403 and "exceeded quota" in error.message:
        return Verdict.failing(
            ConditionReason.QUOTA_EXCEEDED,
            f"{child} was refused: {error.message}. Raise the quota, or lower spec.relay.resources.",
        )
    if not error.is_final:
        return None
    # Fields of the user's that only the server knows are named in the causes, unknown ones in the message.
    places = [error.message, *(field for field, _ in error.causes)]
    if child.resource == DEPLOYMENT and any("spec.template" in place for place in places):
        return Verdict.stalled(
            ConditionReason.INVALID_TEMPLATE,
            f"{child} was refused: {error.message}. Correct spec.relay.template, resources or image.",
        )
    return Verdict.stalled(ConditionReason.REFUSED_BY_SERVER, f"{child} was refused: {error.message}")
