"""Whose fault an error of Kafka is, and how it is told."""

import pytest
from aiokafka import errors

from outbox_api.reasons import RelayReason
from outbox_relay.sink.verdict import Verdict, describe, judge


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (errors.MessageSizeTooLargeError(), Verdict.REFUSED),
        (errors.RecordListTooLargeError(), Verdict.REFUSED),
        (errors.InvalidTimestampError(), Verdict.REFUSED),
        (errors.PolicyViolationError(), Verdict.REFUSED),
        (errors.for_code(87)(), Verdict.SUSPECT),
        (errors.OutOfOrderSequenceNumber(), Verdict.SINK),
        (errors.TopicAuthorizationFailedError("t"), Verdict.SINK),
        (errors.NotEnoughReplicasError(), Verdict.SINK),
        (errors.KafkaError(), Verdict.SINK),
        (TimeoutError(), Verdict.SINK),
    ],
)
def test_only_what_the_broker_says_of_a_record_counts_against_it(error: Exception, verdict: Verdict) -> None:
    assert judge(error) is verdict


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (errors.TopicAuthorizationFailedError("t"), RelayReason.SINK_NOT_AUTHORIZED),
        (errors.SaslAuthenticationFailed(), RelayReason.SINK_AUTHENTICATION_FAILED),
        (errors.UnknownTopicOrPartitionError(), RelayReason.TOPIC_HELD),
        (errors.KafkaConnectionError("gone"), RelayReason.SINK_UNREACHABLE),
        (TimeoutError(), RelayReason.SINK_UNREACHABLE),
    ],
)
def test_each_kind_of_trouble_has_its_reason_and_names_where(error: Exception, reason: RelayReason) -> None:
    problem = describe(error, ["kafka:9092"], "orders")
    assert problem.reason is reason
    assert "orders" in problem.message
