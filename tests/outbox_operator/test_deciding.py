"""The pure decisions: may children be written, whose is an object, what does a refusal mean, is the schema old."""

import copy
from typing import Any

import pytest

from outbox_api.crd import openapi_schema
from outbox_operator.belonging import Belonging, belonging, obstacle
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.decision import decide
from outbox_operator.fleet import Fleet, claim_of, source_conflict
from outbox_operator.keys import Key
from outbox_operator.kube.errors import ApiError
from outbox_operator.kube.resources import CONFIG_MAP, DEPLOYMENT, ROLE, resource_of
from outbox_operator.ownership import upgraded
from outbox_operator.refusal import namespace_is_going, refusal
from outbox_operator.render.children import Child
from outbox_operator.schema_check import missing_fields, published_schema
from outbox_operator.verdict import Outlook

from .cluster import relay

CONFIG = Child(CONFIG_MAP, "orders-outbox-config")


def resource(name: str = "orders", *, created: str = "2026-01-01T00:00:00Z", **fields: Any) -> OutboxRelay:
    source = {"uriSecretRef": {"name": "mongo", "key": "uri"}, "database": "shop", "collection": "outbox"}
    obj = relay(name, annotations=fields.pop("annotations", None), **{"source": source, **fields.pop("spec", {})})
    obj["metadata"] |= {"namespace": "shop", "uid": f"uid-{name}", "generation": 1, "creationTimestamp": created}
    obj["metadata"] |= fields.pop("metadata", {})
    return OutboxRelay.of({**obj, **fields})


def child(**metadata: Any) -> dict[str, Any]:
    owner = {
        "apiVersion": "outboxrelay.io/v1alpha1",
        "kind": "OutboxRelay",
        "name": "orders",
        "uid": "uid-orders",
        "controller": True,
    }
    return {"metadata": {"ownerReferences": [{**owner, **metadata.pop("owner", {})}], **metadata}}


@pytest.mark.parametrize(
    ("obj", "whose"),
    [
        (child(), Belonging.OWN),
        (child(owner={"apiVersion": "outboxrelay.io/v1beta1"}), Belonging.OWN),
        (child(owner={"uid": "uid-earlier"}), Belonging.LEAVING),
        (child(deletionTimestamp="2026-01-01T00:00:00Z"), Belonging.LEAVING),
        (child(owner={"name": "another"}), Belonging.FOREIGN),
        (child(owner={"apiVersion": "example.com/v1"}), Belonging.FOREIGN),
        (child(owner={"kind": "Deployment"}), Belonging.FOREIGN),
        (child(owner={"controller": False}), Belonging.FOREIGN),
        ({"metadata": {}}, Belonging.FOREIGN),
    ],
)
def test_whose_an_object_is_is_told_by_its_controller(obj: dict[str, Any], whose: Belonging) -> None:
    assert belonging(resource(), obj) is whose


def test_nothing_stands_in_the_way_of_own_and_absent_children() -> None:
    assert obstacle(resource(), {CONFIG: child(), Child(ROLE, "orders-outbox-relay"): None}) is None


def test_a_foreign_object_is_named_before_one_that_is_leaving() -> None:
    found = obstacle(
        resource(), {CONFIG: child(owner={"uid": "earlier"}), Child(ROLE, "orders-outbox-relay"): {"metadata": {}}}
    )
    assert found is not None
    assert (found.outlook, found.reason) == (Outlook.STALLED, "NameConflict")
    assert "Role orders-outbox-relay" in found.message


def test_what_holds_a_leaving_object_is_named() -> None:
    found = obstacle(resource(), {CONFIG: child(owner={"uid": "earlier"}, finalizers=["example.com/hold"])})
    assert found is not None
    assert found.reason == "WaitingForDeletion"
    assert "example.com/hold" in found.message


@pytest.mark.parametrize(
    ("fields", "write", "stopped", "reason"),
    [
        ({}, True, False, None),
        ({"spec": {"suspend": True}}, True, True, None),
        ({"annotations": {"outboxrelay.io/paused": "true"}}, False, False, None),
        ({"spec": {"sink": {"bootstrapServers": ["k:1"], "tls": {}}}}, False, False, "NotImplemented"),
        ({"spec": {"suspend": True, "sink": {"bootstrapServers": ["k:1"], "tls": {}}}}, True, True, "NotImplemented"),
        ({"spec": {"unknown": 1}}, False, False, "InvalidSpec"),
    ],
)
def test_what_is_done_about_a_relay(fields: dict[str, Any], write: bool, stopped: bool, reason: str | None) -> None:
    decision = decide(resource(**fields), Fleet())
    assert (decision.write, decision.stopped) == (write, stopped)
    assert (decision.verdict.reason if decision.verdict else None) == reason


def test_an_invalid_spec_names_the_places_and_not_the_values() -> None:
    found = resource(spec={"source": {"uriSecretRef": "mongodb://user:secret@host"}, **{f"x{n}": 1 for n in range(8)}})
    assert found.spec is None
    assert "spec.source.uriSecretRef" in found.invalid
    assert "secret@" not in found.invalid
    assert found.invalid.count("; ") == 5
    assert found.invalid.endswith(" more")


OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("older", "younger", "conflict"),
    [
        ({}, {}, True),
        ({"afterPublish": "Delete"}, {"afterPublish": "Keep"}, True),
        ({"afterPublish": "Keep"}, {"afterPublish": "Delete"}, True),
        ({"afterPublish": "Keep"}, {"afterPublish": "Mark"}, False),
        ({"afterPublish": "Keep"}, {"afterPublish": "Keep"}, False),
    ],
)
def test_two_relays_of_one_outbox(older: dict[str, Any], younger: dict[str, Any], conflict: bool) -> None:
    one = claim_of(resource("one", created=OLD, spec=older))
    two = claim_of(resource("two", created=NEW, spec=younger))
    assert one is not None
    assert two is not None
    assert (source_conflict(two, [one, two]) is not None) is conflict
    assert source_conflict(one, [one, two]) is None, "the older one goes on"


def test_relays_that_mark_different_fields_or_read_other_outboxes_do_not_meet() -> None:
    one = claim_of(resource("one", created=OLD))
    source = {"uriSecretRef": {"name": "mongo", "key": "uri"}, "database": "shop", "collection": "outbox"}
    other_mark = claim_of(
        resource("two", created=NEW, spec={"source": {**source, "fields": {"publishedAt": "sent_at"}}})
    )
    other_collection = claim_of(resource("three", created=NEW, spec={"source": {**source, "collection": "outbox2"}}))
    for claim in (other_mark, other_collection):
        assert claim is not None
        assert one is not None
        assert source_conflict(claim, [one, claim]) is None


def test_the_fleet_names_the_relays_that_a_change_concerns_and_forgets_who_is_gone() -> None:
    fleet = Fleet()
    one, two, three = (claim_of(resource(name)) for name in ("one", "two", "three"))
    assert one is not None
    assert fleet.update(Key("shop", "one"), one) == set()
    assert fleet.update(Key("shop", "two"), two) == {Key("shop", "one")}
    assert fleet.update(Key("shop", "two"), two) == set(), "nothing changed"
    fleet.update(Key("shop", "three"), three)
    assert fleet.update(Key("shop", "one"), None) == {Key("shop", "two"), Key("shop", "three")}
    assert {claim.key.name for claim in fleet.rivals(one)} == {"two", "three"}
    fleet.update(Key("shop", "two"), None)
    fleet.update(Key("shop", "three"), None)
    assert fleet.rivals(one) == []
    assert claim_of(resource(metadata={"deletionTimestamp": NEW})) is None


@pytest.mark.parametrize(
    ("child", "error", "reason"),
    [
        (CONFIG, ApiError("x", status=403, message="exceeded quota: small"), "QuotaExceeded"),
        (CONFIG, ApiError("x", status=403, message="is forbidden: no rights"), "RefusedByServer"),
        (CONFIG, ApiError("x", status=422, message="invalid"), "RefusedByServer"),
        (
            Child(DEPLOYMENT, "d"),
            ApiError("x", status=422, causes=(("spec.template.spec.affinity", "bad"),)),
            "InvalidTemplate",
        ),
        (
            Child(DEPLOYMENT, "d"),
            ApiError("x", status=400, message='strict decoding error: unknown field "spec.template.spec.x"'),
            "InvalidTemplate",
        ),
        (
            Child(DEPLOYMENT, "d"),
            ApiError("x", status=500, message=".spec.template.spec.x: field not declared in schema"),
            "InvalidTemplate",
        ),
        (CONFIG, ApiError("x", status=500, message="etcd has no leader"), None),
        (CONFIG, ApiError("x", status=409, reason="Conflict"), None),
        (CONFIG, ApiError("x", status=503), None),
    ],
)
def test_what_a_refusal_means(child: Child, error: ApiError, reason: str | None) -> None:
    found = refusal(child, error)
    assert (found.reason if found else None) == reason


def test_a_namespace_that_is_being_deleted_is_recognised() -> None:
    message = "forbidden: unable to create new content in namespace shop because it is being terminated"
    assert namespace_is_going(ApiError("x", status=403, message=message))
    assert not namespace_is_going(ApiError("x", status=403, message="no rights"))


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        (
            {},
            b'{"reason":"Conflict","message":"m","details":{"causes":[{"field":"f","message":"w"}]}}',
            ("Conflict", None),
        ),
        ({"Retry-After": "7"}, b"not json", ("", 7.0)),
        ({}, b'{"details":{"retryAfterSeconds":3}}', ("", 3.0)),
        ({}, b'"text"', ("", None)),
    ],
)
def test_any_answer_of_the_server_becomes_an_error_with_its_words(
    headers: dict[str, str], body: bytes, expected: tuple[str, float | None]
) -> None:
    found = ApiError.of("get x", 409, headers, body)
    assert (found.reason, found.retry_after) == expected


def test_an_object_made_by_post_becomes_the_operators_by_apply_before_the_first_apply() -> None:
    theirs = {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:x": {}}}
    entries = [
        {"manager": "outbox-operator", "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}}}},
        {"manager": "outbox-operator", "operation": "Apply", "fieldsV1": {"f:spec": {"f:b": {}}}},
        theirs,
    ]
    found = upgraded({"metadata": {"managedFields": entries}})
    assert found == [
        theirs,
        {"manager": "outbox-operator", "operation": "Apply", "fieldsV1": {"f:spec": {"f:a": {}, "f:b": {}}}},
    ]
    assert upgraded({"metadata": {"managedFields": found}}) is None


def test_a_schema_with_all_that_the_model_has_and_more_is_fine() -> None:
    newer = copy.deepcopy(openapi_schema())
    newer["properties"]["spec"]["properties"]["later"] = {"type": "string"}
    assert missing_fields(newer, openapi_schema()) == []


def test_a_schema_that_lacks_a_section_or_a_value_is_older() -> None:
    older = copy.deepcopy(openapi_schema())
    spec = older["properties"]["spec"]["properties"]
    del spec["failure"]
    spec["afterPublish"]["enum"].remove("Keep")
    del older["properties"]["status"]["properties"]["shards"]["items"]["properties"]["pending"]
    assert set(missing_fields(older, openapi_schema())) == {
        "spec.failure",
        "spec.afterPublish=Keep",
        "status.shards[].pending",
    }


def test_a_document_without_the_kind_has_no_schema() -> None:
    assert published_schema({}) == {}
    assert "spec" in missing_fields({}, openapi_schema())


def test_an_object_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(KeyError):
        resource_of({"apiVersion": "v1", "kind": "Secret"})
