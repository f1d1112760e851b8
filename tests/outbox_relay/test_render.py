from typing import Any

import bson
import pytest
from bson import Int64, ObjectId, Timestamp
from bson.datetime_ms import DatetimeMS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outbox_relay.events import Reason, Record, Refusal
from outbox_relay.routing.errors import RouteError

ID = ObjectId("0123456789abcdef01234567")
EVENT: dict[str, Any] = {
    "_id": ID,
    "aggregate": "Order",
    "aggregate_id": "order-1",
    "event_type": "OrderPlaced",
    "payload": {"total": 5},
    "version": Int64(1),
    "occurred_at": DatetimeMS(1_700_000_000_123),
}


def rendered(renderer: Any, **changes: Any) -> Record:
    outcome = renderer.render(bson.encode(EVENT | changes))
    assert isinstance(outcome, Record), outcome
    return outcome


def refused(renderer: Any, document: dict[str, Any]) -> Refusal:
    outcome = renderer.render(bson.encode(document))
    assert isinstance(outcome, Refusal), outcome
    return outcome


def test_by_default_an_event_goes_to_the_topic_of_its_aggregate_keyed_by_its_id(make_renderer: Any) -> None:
    assert rendered(make_renderer()) == Record(
        topic="outbox.event.Order",
        partition=None,
        timestamp=None,
        key=b"order-1",
        value=b'{"total":5}',
        headers=[("id", b"0123456789abcdef01234567"), ("type", b"OrderPlaced")],
        document_id=ID,
    )


def test_the_debezium_preset_reads_debezium_field_names(make_renderer: Any) -> None:
    renderer = make_renderer(fields={"preset": "Debezium"})
    outcome = renderer.render(
        bson.encode({"_id": ID, "aggregatetype": "User", "aggregateid": 7, "type": "UserCreated", "payload": "{}"})
    )
    assert (outcome.topic, outcome.key, outcome.value) == ("outbox.event.User", b"7", b"{}")
    assert outcome.headers[1] == ("type", b"UserCreated")


def test_a_field_can_be_renamed_also_to_a_dotted_path(make_renderer: Any) -> None:
    renderer = make_renderer(fields={"aggregateId": "meta.order.id", "payload": "body", "headers": "meta.headers"})
    record = rendered(
        renderer, meta={"order": {"id": "o-9"}, "headers": {"trace": "t"}}, body=[1], aggregate_id="other"
    )
    assert (record.key, record.value, record.headers[-1]) == (b"o-9", b"[1]", ("trace", b"t"))
    assert renderer.fields == {"_id", "aggregate", "event_type", "meta", "body"}


def test_a_template_mixes_texts_logical_fields_and_document_paths(make_renderer: Any) -> None:
    renderer = make_renderer(
        topic="{tenant.name}.{eventType}",
        key="{payload.order.lines.1.sku}/{aggregateId}!",
        headers=[
            {"name": "fixed", "value": "always"},
            {"name": "n", "value": "v{version}"},
            {"name": "n", "value": "{occurredAt}"},
        ],
    )
    record = rendered(renderer, tenant={"name": "acme"}, payload={"order": {"lines": [{}, {"sku": "A-1"}]}})
    assert record.topic == "acme.OrderPlaced"
    assert record.key == b"A-1/order-1!"
    assert record.headers == [("fixed", b"always"), ("n", b"v1"), ("n", b"2023-11-14T22:13:20.123Z")]
    assert renderer.fields == {
        "_id",
        "tenant",
        "event_type",
        "payload",
        "aggregate_id",
        "version",
        "occurred_at",
        "headers",
    }


def test_topic_and_key_may_be_constant(make_renderer: Any) -> None:
    record = rendered(make_renderer(topic="events", key="all"))
    assert (record.topic, record.key) == ("events", b"all")


def test_a_topic_is_rewritten_after_its_template_is_filled(make_renderer: Any) -> None:
    renderer = make_renderer(topicRewrite={"pattern": r"outbox\.event\.(.*)", "replacement": "shop.$1.v1"})
    assert rendered(renderer).topic == "shop.Order.v1"


@pytest.mark.parametrize(
    "path",
    ["gone", "payload.gone", "payload.total.gone", "lines.5", "lines.x"],
)
def test_a_missing_field_refuses_the_event_and_names_id_field_and_next_step(make_renderer: Any, path: str) -> None:
    outcome = refused(make_renderer(key=f"{{{path}}}"), EVENT | {"lines": [1]})
    assert outcome.reason is Reason.MISSING_FIELD
    assert outcome.field == path
    assert outcome.document_id == ID
    assert outcome.message == (
        f"document _id=0123456789abcdef01234567: field {path} is missing, and route.key needs it; "
        "write it in the event, or change spec.route.key or spec.route.onMissingField"
    )


def test_ignoring_a_missing_field_leaves_out_the_part_that_needs_it(make_renderer: Any) -> None:
    renderer = make_renderer(
        key="{gone}-{aggregateId}",
        headers=[{"name": "a", "value": "{gone}"}, {"name": "b", "value": "{id}"}],
        partitionField="gone",
        timestampField="gone",
        onMissingField="Ignore",
        fields={"payload": "gone"},
    )
    record = rendered(renderer)
    assert record.key is None
    assert [name for name, _ in record.headers] == ["b"]
    assert (record.partition, record.timestamp) == (None, None)
    assert record.value == b"null"


def test_a_null_leaves_the_part_out_without_refusing_the_event(make_renderer: Any) -> None:
    renderer = make_renderer(
        headers=[{"name": "a", "value": "{version}"}], partitionField="version", timestampField="version"
    )
    record = rendered(renderer, aggregate_id=None, version=None, payload=None, headers=None)
    assert record == Record("outbox.event.Order", None, None, None, b"null", [], ID)


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize("aggregate", [{}, {"aggregate": None}])
def test_the_topic_cannot_be_left_out(make_renderer: Any, policy: str, aggregate: dict[str, Any]) -> None:
    document = {name: value for name, value in EVENT.items() if name != "aggregate"} | aggregate
    outcome = refused(make_renderer(onMissingField=policy), document)
    assert outcome.reason is Reason.MISSING_FIELD
    assert outcome.field == "aggregate"
    assert "field aggregate is missing or null, and route.topic needs it" in outcome.message


def test_each_field_of_a_topic_must_have_a_value(make_renderer: Any) -> None:
    outcome = refused(make_renderer(topic="{aggregateType}.{gone}"), EVENT)
    assert (outcome.reason, outcome.field) == (Reason.MISSING_FIELD, "gone")


@pytest.mark.parametrize(("value", "partition"), [(0, 0), (Int64(11), 11), (3.0, 3), (-1, -1)])
def test_a_routed_partition_is_any_whole_number_unchecked(make_renderer: Any, value: Any, partition: int) -> None:
    record = rendered(make_renderer(partitionField="p"), p=value)
    assert record.partition == partition
    assert type(record.partition) is int


@pytest.mark.parametrize(
    ("value", "timestamp"),
    [
        (DatetimeMS(1_700_000_000_123), 1_700_000_000_123),
        (Int64(14_222_264_625_338), 14_222_264_625_338),
        (Timestamp(1_700_000_000, 7), 1_700_000_000_000),
        (1_700_000_000_123.0, 1_700_000_000_123),
        (-5, -5),
    ],
)
def test_a_routed_timestamp_is_a_date_or_milliseconds_unclamped(make_renderer: Any, value: Any, timestamp: int) -> None:
    assert rendered(make_renderer(timestampField="ts"), ts=value).timestamp == timestamp


@pytest.mark.parametrize("part", ["partitionField", "timestampField"])
@pytest.mark.parametrize("value", ["5", True, 1.5, {}])
def test_a_partition_or_timestamp_of_another_type_refuses_the_event(make_renderer: Any, part: str, value: Any) -> None:
    outcome = refused(make_renderer(**{part: "x"}), EVENT | {"x": value})
    assert outcome.reason is Reason.INVALID_FIELD
    assert outcome.field == "x"
    assert f"spec.route.{part}" in outcome.message


def test_headers_that_an_event_brings_follow_those_of_the_route(make_renderer: Any) -> None:
    record = rendered(
        make_renderer(headers=[]), headers={"traceparent": "00-1", "many": ["a", None, 2], "none": None, "raw": b"\xff"}
    )
    assert record.headers == [("traceparent", b"00-1"), ("many", b"a"), ("many", b"2"), ("raw", b"/w==")]


def test_an_event_without_headers_of_its_own_has_those_of_the_route(make_renderer: Any) -> None:
    assert rendered(make_renderer(fields={"headers": "meta.headers"})).headers == rendered(make_renderer()).headers


def test_headers_that_are_no_document_refuse_the_event(make_renderer: Any) -> None:
    outcome = refused(make_renderer(), EVENT | {"headers": "x"})
    assert (outcome.reason, outcome.field) == (Reason.INVALID_FIELD, "headers")


def test_a_document_that_cannot_be_decoded_is_refused_alone(make_renderer: Any) -> None:
    raw = bson.encode(EVENT | {"payload": "xyzzy"}).replace(b"xyzzy", b"xy\xffzy")
    outcome = make_renderer().render(raw)
    assert outcome == Refusal(
        Reason.UNDECODABLE,
        "document _id=0123456789abcdef01234567: field payload is not valid UTF-8; store bytes as BSON binary, "
        "or correct the producer's character set",
        ID,
        "payload",
    )


def test_a_value_nested_beyond_the_encoder_is_refused_alone(make_renderer: Any) -> None:
    nested: Any = 1
    for _ in range(300):
        nested = {"a": nested}
    outcome = make_renderer().render_document(EVENT | {"payload": nested})
    assert isinstance(outcome, Refusal)
    assert outcome.reason is Reason.ENCODING
    assert outcome.document_id == ID


@pytest.mark.parametrize(
    ("route", "path"),
    [
        ({"topic": "a{b"}, "spec.route.topic"),
        ({"key": "{}"}, "spec.route.key"),
        ({"key": "{a..b}"}, "spec.route.key"),
        ({"headers": [{"name": "a", "value": "{id}"}, {"name": "b", "value": "}"}]}, "spec.route.headers[1].value"),
        ({"topicRewrite": {"pattern": "(", "replacement": ""}}, "spec.route.topicRewrite.pattern"),
    ],
)
def test_a_route_that_cannot_be_compiled_is_refused_by_its_place(
    make_renderer: Any, route: dict[str, Any], path: str
) -> None:
    with pytest.raises(RouteError) as error:
        make_renderer(**route)
    assert error.value.path == path


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text("ab.{}é"), st.binary()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("ab$é", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([*EVENT, "headers", "p", "ts"]), anything), st.sampled_from(["Fail", "Ignore"]))
def test_every_document_has_exactly_one_outcome(make_renderer: Any, document: dict[str, Any], policy: str) -> None:
    renderer = make_renderer(onMissingField=policy, partitionField="p", timestampField="ts")
    raw = bson.encode(document)
    outcome = renderer.render(raw)
    assert isinstance(outcome, Record | Refusal)
    assert repr(renderer.render(raw)) == repr(outcome)  # by text: an id that is not a number is not equal to itself
    projected = bson.encode({name: value for name, value in document.items() if name in renderer.fields})
    assert renderer.render(projected) == outcome
