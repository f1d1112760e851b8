"""Whether a relay's children may be written, and whether its pods may run."""

from dataclasses import dataclass

from outbox_api.reasons import ConditionReason
from outbox_api.unimplemented import not_implemented
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.fleet import Fleet, claim_of, source_conflict
from outbox_operator.verdict import Verdict


@dataclass(frozen=True)
class Decision:
    """What to do about a relay.

    Attributes:
        write: whether its children are written; what runs otherwise goes on as it was.
        stopped: whether no pod is to run.
        verdict: why not all of the spec is acted on; None when it is.
    """

    write: bool
    stopped: bool
    verdict: Verdict | None = None


def decide(relay: OutboxRelay, fleet: Fleet) -> Decision:
    """What to do about a relay whose deletion has not begun.

    A spec that cannot be carried out changes nothing that runs: what was accepted last goes on, and the condition says
    so. Suspending works all the same. A relay that would disturb another's events is stopped.
    """
    decision = _decide(relay, fleet)
    if relay.paused:
        return Decision(write=False, stopped=decision.stopped, verdict=decision.verdict)
    return decision


def _decide(relay: OutboxRelay, fleet: Fleet) -> Decision:
    spec = relay.spec
    if spec is None:
        return Decision(
            write=False,
            stopped=False,
            verdict=Verdict.stalled(
                ConditionReason.INVALID_SPEC,
                f"The spec cannot be understood: {relay.invalid}. What was accepted last goes on; correct the spec.",
            ),
        )
    fields = not_implemented(spec, spec.source, spec.sink)
    if fields:
        return Decision(
            write=spec.suspend,
            stopped=spec.suspend,
            verdict=Verdict.stalled(
                ConditionReason.NOT_IMPLEMENTED,
                f"Not implemented in this version: {', '.join(fields)}. "
                "What was accepted last goes on; remove these fields or set them to their defaults.",
            ),
        )
    claim = claim_of(relay)
    conflict = source_conflict(claim, fleet.rivals(claim)) if claim else None
    return Decision(write=True, stopped=spec.suspend or conflict is not None, verdict=conflict)
