"""What an error of Kafka means for a relay: the record's own fault, or the sink's."""

from enum import StrEnum

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    InvalidRequestError,
    InvalidTimestampError,
    InvalidTopicError,
    KafkaError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    RecordListTooLargeError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownTopicOrPartitionError,
)

from outbox_api.reasons import RelayReason
from outbox_relay.problems import Problem

_DEFINITE: tuple[type[KafkaError], ...] = (
    InvalidRequestError,
    InvalidTimestampError,
    InvalidTopicError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    RecordListTooLargeError,
)


class Verdict(StrEnum):
    """Whose fault an error is."""

    REFUSED = "refused"
    """The broker refuses what the batch holds: sending it again is of no use."""
    SUSPECT = "suspect"
    """The broker gave a code that aiokafka does not know, such as INVALID_RECORD (87): perhaps the batch's fault."""
    SINK = "sink"
    """The sink's: the same batch may pass later."""


def judge(error: BaseException) -> Verdict:
    """Say whose fault an error is that ended a batch."""
    if isinstance(error, _DEFINITE):
        return Verdict.REFUSED
    return Verdict.SUSPECT if type(error) is UnknownError else Verdict.SINK


def describe(error: BaseException, servers: list[str], topic: str | None = None) -> Problem:
    """Return the problem that an error of the producer is, for the report."""
    name = type(error).__name__
    where = f"topic {topic}" if topic else ", ".join(servers)
    if isinstance(
        error, TopicAuthorizationFailedError | ClusterAuthorizationFailedError | GroupAuthorizationFailedError
    ):
        return Problem(
            RelayReason.SINK_NOT_AUTHORIZED,
            f"Kafka does not let the relay write to {where} ({name}); grant it Write and Describe on the topic",
        )
    if isinstance(error, SaslAuthenticationFailed):
        return Problem(
            RelayReason.SINK_AUTHENTICATION_FAILED,
            f"Kafka refused the relay's credentials at {where} ({name}); correct spec.sink.sasl's secret",
        )
    if isinstance(error, UnknownTopicOrPartitionError):
        return missing_topic(topic or "?")
    text = str(error) or name
    if isinstance(error, TimeoutError):
        text = "no answer in time"
    return Problem(
        RelayReason.SINK_UNREACHABLE,
        f"Kafka does not take events at {where} ({text[:300]}); the relay keeps trying and nothing is lost",
    )


def missing_topic(topic: str) -> Problem:
    """Return the problem of a topic that does not exist."""
    return Problem(
        RelayReason.TOPIC_HELD,
        f"topic {topic} does not exist (UnknownTopic); create it, or correct spec.route.topic: its events wait",
    )
