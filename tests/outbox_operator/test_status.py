"""Status as a pure function of what was seen: one table row a situation, and rules that hold in all of them."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from outbox_api import names
from outbox_api.status import CONDITION_TYPES, OutboxRelayStatus
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.kube.resources import CONFIG_MAP, DEPLOYMENT
from outbox_operator.render.children import Child, Observed
from outbox_operator.status.conditions import trouble
from outbox_operator.status.patch import status_patch
from outbox_operator.status.situation import Situation, shards_of
from outbox_operator.status.summary import status
from outbox_operator.verdict import Verdict

from .cluster import ready_status, relay, waiting_status
from .kstatus import violations

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
HASH = "wanted"
POD = "orders-outbox-0-abc"


def pod(name: str = POD, *, config: str = HASH, created: str = "2026-01-01T11:00:00Z", **fields: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {names.LABEL_SHARD: "0"},
            "annotations": {names.ANNOTATION_CONFIG_HASH: config},
            "creationTimestamp": created,
            **fields.pop("metadata", {}),
        },
        "status": fields.pop("status", ready_status()),
    }


def deployment(*, replicas: int = 1, **fields: Any) -> dict[str, Any]:
    done = {"observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas}
    return {
        "metadata": {"name": "orders-outbox-0", "generation": 1},
        "spec": {
            "replicas": replicas,
            "template": {
                "metadata": {"annotations": {names.ANNOTATION_CONFIG_HASH: HASH}},
                "spec": {"containers": [{"name": "relay", "image": "relay:1"}]},
            },
        },
        "status": fields.get("status", done),
    }


def report(**fields: Any) -> str:
    return json.dumps(
        {
            "state": "Streaming",
            "reason": "Streaming",
            "message": "Events flow.",
            "time": "2026-01-01T11:30:00Z",
            "leader": POD,
            "position": "1767265200.1",
            "lagMilliseconds": 120,
            "pending": 3,
            **fields,
        }
    )


@dataclass
class World:
    """What is there; by default a relay that streams."""

    spec: dict[str, Any] = field(default_factory=dict)
    stored: dict[str, Any] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    deployment: dict[str, Any] | None = field(default_factory=deployment)
    pods: list[dict[str, Any]] = field(default_factory=lambda: [pod()])
    report: str | None = field(default_factory=report)
    obstacle: Verdict | None = None
    pending: tuple[Child, ...] = ()
    stopped: bool = False

    def status(self) -> OutboxRelayStatus:
        obj = relay(**self.spec)
        obj["metadata"] |= {
            "namespace": "shop",
            "uid": "u",
            "generation": 4,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": self.annotations,
        }
        resource = OutboxRelay.of({**obj, "status": self.stored})
        data = {} if self.report is None else {"report.json": self.report}
        children: Observed = {
            Child(DEPLOYMENT, "orders-outbox-0"): self.deployment,
            Child(CONFIG_MAP, "orders-outbox-0-report"): {"data": data},
        }
        situation = Situation(
            relay=resource,
            obstacle=self.obstacle,
            stopped=self.stopped or bool(self.spec.get("suspend")),
            pending=self.pending,
            shards=shards_of(resource, 1, children, list(self.pods)),
            now=NOW,
        )
        found = status(situation, trouble(situation))
        assert violations(found.wire()) == []
        return found


def condition(found: OutboxRelayStatus, kind: str) -> tuple[str, str]:
    return next((c.status, c.reason) for c in found.conditions or () if c.type == kind)


def message(found: OutboxRelayStatus, kind: str = "Ready") -> str:
    return next(c.message for c in found.conditions or () if c.type == kind)


ROLLING = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1}
CASES: dict[str, tuple[World, tuple[str, str], dict[str, str], str]] = {
    "a relay that streams is ready": (
        World(),
        ("True", "Ready"),
        {"Reconciling": "False", "Stalled": "False", "Streaming": "True", "CredentialsResolved": "True"},
        "shop.outbox",
    ),
    "a held topic leaves it ready and says so": (
        World(report=report(reason="TopicHeld", message="topic a is missing")),
        ("True", "TopicHeld"),
        {"Streaming": "True"},
        "topic a is missing",
    ),
    "a held topic that the relay tries again is no other case": (
        World(report=report(state="Retrying", reason="TopicHeld", message="topic a is missing")),
        ("True", "TopicHeld"),
        {"Streaming": "True", "CredentialsResolved": "True"},
        "topic a is missing",
    ),
    "nothing reported yet is unknown": (
        World(report=None),
        ("Unknown", "WaitingForRelay"),
        {"Reconciling": "True", "Streaming": "Unknown", "CredentialsResolved": "Unknown"},
        "not reported yet",
    ),
    "a report that cannot be read is none": (
        World(report="{"),
        ("Unknown", "WaitingForRelay"),
        {"Reconciling": "True"},
        "",
    ),
    "a missing Secret is named by the relay": (
        World(report=report(state="Retrying", reason="SecretMissing", message="Secret orders-mongo has no key uri")),
        ("False", "SecretMissing"),
        {"CredentialsResolved": "False", "Reconciling": "False", "Streaming": "False", "Stalled": "False"},
        "orders-mongo has no key uri",
    ),
    "unreachable brokers leave credentials unknown": (
        World(report=report(state="Retrying", reason="SinkUnreachable", message="kafka:9092 refuses")),
        ("False", "SinkUnreachable"),
        {"CredentialsResolved": "Unknown", "Streaming": "False"},
        "kafka:9092 refuses",
    ),
    "a poison event stalls it": (
        World(report=report(state="Stalled", reason="PoisonEvent", message="document 7")),
        ("False", "PoisonEvent"),
        {"Stalled": "True", "Reconciling": "False", "Streaming": "False"},
        "document 7",
    ),
    "a leader whose pod is gone leads no more": (
        World(pods=[pod("another")]),
        ("False", "NoLeader"),
        {"Reconciling": "True", "Streaming": "Unknown"},
        "",
    ),
    "a report of the configuration before does not count": (
        World(pods=[pod(config="old")], report=report(state="Stalled", reason="PoisonEvent")),
        ("False", "NoLeader"),
        {"Stalled": "False"},
        "",
    ),
    "a report without a leader counts while a pod is there that may have written it": (
        World(report=report(leader=None, state="Retrying", reason="SecretMissing", message="no Secret")),
        ("False", "SecretMissing"),
        {},
        "no Secret",
    ),
    "a report without a leader that is older than all pods does not count": (
        World(
            pods=[pod(created="2026-01-01T11:45:00Z")],
            report=report(leader=None, state="Retrying", reason="SecretMissing"),
        ),
        ("False", "NoLeader"),
        {},
        "",
    ),
    "a rollout that is not over is reconciling": (
        World(deployment=deployment(status=ROLLING)),
        ("False", "RollingOut"),
        {"Reconciling": "True"},
        "orders-outbox-0",
    ),
    "a Deployment that is not acted on yet is reconciling": (
        World(deployment=deployment(status={})),
        ("False", "RollingOut"),
        {"Reconciling": "True"},
        "",
    ),
    "no Deployment yet": (World(deployment=None, pods=[], report=None), ("False", "Progressing"), {}, ""),
    "what the relay says explains a rollout that does not end": (
        World(
            deployment=deployment(status=ROLLING),
            report=report(state="Retrying", reason="SourceUnreachable", message="no MongoDB at db:27017"),
        ),
        ("False", "SourceUnreachable"),
        {"Reconciling": "False"},
        "db:27017",
    ),
    "an image that cannot be pulled": (
        World(pods=[pod(status=waiting_status("ImagePullBackOff", "not found"))], report=None),
        ("False", "ImagePullFailed"),
        {"Stalled": "False"},
        "relay:test",
    ),
    "a crash loop with the relay's last words": (
        World(
            pods=[
                pod(
                    status=waiting_status(
                        "CrashLoopBackOff",
                        "back-off",
                        lastState={
                            "terminated": {"exitCode": 2, "message": 'x\n{"event": "spec.route.key: unknown field"}\n'}
                        },
                    )
                )
            ]
        ),
        ("False", "CrashLoop"),
        {},
        "exit code 2: spec.route.key: unknown field",
    ),
    "out of memory": (
        World(
            pods=[
                pod(
                    status=waiting_status(
                        "CrashLoopBackOff",
                        "back-off",
                        lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                    )
                )
            ]
        ),
        ("False", "OutOfMemory"),
        {},
        "limits.memory",
    ),
    "a single restart is no crash loop": (
        World(
            pods=[
                pod(
                    status=ready_status(
                        ready=False, restartCount=1, lastState={"terminated": {"exitCode": 137, "reason": "Error"}}
                    )
                )
            ],
            deployment=deployment(status=ROLLING),
        ),
        ("False", "RollingOut"),
        {},
        "",
    ),
    "no node for the pod": (
        World(
            pods=[
                pod(
                    status={
                        "conditions": [
                            {
                                "type": "PodScheduled",
                                "status": "False",
                                "reason": "Unschedulable",
                                "message": "0/3 nodes are available.",
                            }
                        ]
                    }
                )
            ]
        ),
        ("False", "Unschedulable"),
        {},
        "0/3 nodes",
    ),
    "a configuration error of the container": (
        World(pods=[pod(status=waiting_status("CreateContainerConfigError", "image will run as root"))]),
        ("False", "CreateContainerConfigError"),
        {},
        "run as root",
    ),
    "a quota that refuses the pods": (
        World(
            pods=[],
            report=None,
            deployment=deployment(
                status={
                    "observedGeneration": 1,
                    "conditions": [
                        {
                            "type": "ReplicaFailure",
                            "status": "True",
                            "message": 'pods "x" is forbidden: exceeded quota: small',
                        }
                    ],
                }
            ),
        ),
        ("False", "QuotaExceeded"),
        {},
        "exceeded quota: small",
    ),
    "another admission rule that refuses the pods": (
        World(
            pods=[],
            deployment=deployment(
                status={"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "violates PodSecurity"}]}
            ),
        ),
        ("False", "RefusedByServer"),
        {},
        "violates PodSecurity",
    ),
    "an obstacle goes before all else": (
        World(obstacle=Verdict.stalled("NameConflict", "ConfigMap x is not ours.")),
        ("False", "NameConflict"),
        {"Stalled": "True"},
        "ConfigMap x",
    ),
    "suspended and stopped is ready": (
        World(spec={"suspend": True}, deployment=deployment(replicas=0), pods=[]),
        ("True", "Suspended"),
        {"Suspended": "True", "Streaming": "False", "Reconciling": "False", "CredentialsResolved": "Unknown"},
        "position is kept",
    ),
    "suspended while pods still run is on its way": (
        World(spec={"suspend": True}),
        ("False", "Progressing"),
        {"Suspended": "True", "Reconciling": "True"},
        "1 pod",
    ),
    "paused says what is pending": (
        World(annotations={"outboxrelay.io/paused": "true"}, pending=(Child(DEPLOYMENT, "orders-outbox-0"),)),
        ("True", "Ready"),
        {"Reconciling": "False"},
        "",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_situation_gives_this_status(case: str) -> None:
    world, ready, others, words = CASES[case]
    found = world.status()
    assert condition(found, "Ready") == ready
    assert {kind: condition(found, kind)[0] for kind in others} == others
    assert words in message(found)


def test_all_conditions_are_always_there_in_their_order() -> None:
    for world, *_ in CASES.values():
        assert tuple(c.type for c in world.status().conditions or ()) == CONDITION_TYPES


def test_the_numbers_come_from_the_report() -> None:
    found = World(report=report(deadLettered=2, lastPublishedTime="2026-01-01T11:29:59Z")).status().wire()
    assert {key: found.get(key) for key in ("leader", "lag", "lagMilliseconds", "pending", "deadLettered")} == {
        "leader": POD,
        "lag": "120ms",
        "lagMilliseconds": 120,
        "pending": 3,
        "deadLettered": 2,
    }
    assert found["shards"] == [
        {"index": 0, "leader": POD, "position": "1767265200.1", "lagMilliseconds": 120, "pending": 3}
    ]
    assert (found["source"], found["image"], found["observedGeneration"]) == ("shop.outbox", "relay:1", 4)


def test_lag_and_leader_are_absent_when_they_are_not_known_and_the_position_is_remembered() -> None:
    found = World(pods=[]).status().wire()
    assert {"lag", "lagMilliseconds", "leader", "pending"} & found.keys() == set()
    assert found["shards"] == [{"index": 0, "position": "1767265200.1"}]
    # Even when the report is gone as well.
    later = World(pods=[], report=None, stored=found).status().wire()
    assert later["shards"] == found["shards"]


def test_a_transition_time_moves_only_when_the_status_of_the_condition_does() -> None:
    before = World().status().wire()
    for entry in before["conditions"]:
        entry["lastTransitionTime"] = "2025-12-31T00:00:00Z"
    after = World(stored=before, report=report(state="Retrying", reason="SinkUnreachable")).status().wire()
    times = {entry["type"]: entry["lastTransitionTime"] for entry in after["conditions"]}
    assert times["Ready"] == times["Streaming"] == "2026-01-01T12:00:00Z"
    assert times["Stalled"] == times["Suspended"] == "2025-12-31T00:00:00Z"


def test_what_is_pending_while_paused_is_named() -> None:
    world, *_ = CASES["paused says what is pending"]
    assert "Deployment orders-outbox-0" in message(world.status(), "Reconciling")


def test_the_reconcile_annotation_is_echoed() -> None:
    found = World(annotations={"outboxrelay.io/reconcile-at": "now"}).status()
    assert found.last_handled_reconcile_at == "now"


def test_the_last_error_of_the_relay_is_shown() -> None:
    error = {"reason": "SinkUnreachable", "message": "kafka", "time": "2026-01-01T11:00:00Z"}
    assert World(report=report(lastError=error)).status().wire()["lastError"] == error


def resource(stored: dict[str, Any]) -> OutboxRelay:
    obj = relay()
    obj["metadata"] |= {"namespace": "shop", "uid": "u", "generation": 4, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return OutboxRelay.of({**obj, "status": stored})


def test_a_status_that_is_there_already_is_not_written() -> None:
    wanted = World().status()
    assert status_patch(resource(wanted.wire()), wanted) is None


def test_a_status_write_removes_what_is_no_longer_known_and_leaves_what_this_version_does_not_know() -> None:
    wanted = World(pods=[]).status()
    patch = status_patch(resource({**World().status().wire(), "ofALaterVersion": 1}), wanted)
    assert patch is not None
    assert patch["metadata"] == {"uid": "u"}
    assert patch["status"]["lag"] is None
    assert patch["status"]["leader"] is None
    assert patch["status"]["observedGeneration"] == 4
    assert "ofALaterVersion" not in patch["status"]
