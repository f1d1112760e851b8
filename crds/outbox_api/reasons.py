"""Reasons: the CamelCase words by which relay and operator say why, in conditions, events, logs and metrics."""

from enum import StrEnum


class RelayReason(StrEnum):
    """Why a relay is in the state that it reports."""

    STARTING = "Starting"
    STANDBY = "Standby"
    STREAMING = "Streaming"
    SWEEPING = "Sweeping"
    DRAINING = "Draining"
    SECRET_MISSING = "SecretMissing"  # noqa: S105 - a word for users, not a secret
    SOURCE_UNREACHABLE = "SourceUnreachable"
    SOURCE_AUTHENTICATION_FAILED = "SourceAuthenticationFailed"
    SOURCE_NOT_AUTHORIZED = "SourceNotAuthorized"
    SOURCE_URI_INVALID = "SourceURIInvalid"
    CHANGE_STREAM_UNAVAILABLE = "ChangeStreamUnavailable"
    SINK_UNREACHABLE = "SinkUnreachable"
    SINK_AUTHENTICATION_FAILED = "SinkAuthenticationFailed"
    SINK_NOT_AUTHORIZED = "SinkNotAuthorized"
    TOPIC_HELD = "TopicHeld"
    POISON_EVENT = "PoisonEvent"
    HISTORY_LOST = "HistoryLost"
    CHECKPOINT_UNAVAILABLE = "CheckpointUnavailable"
    CHECKPOINT_MISMATCH = "CheckpointMismatch"
    SUPERSEDED = "Superseded"
    NOT_IMPLEMENTED = "NotImplemented"


class ConditionReason(StrEnum):
    """Why a condition has its status, where the relay's own reason does not say it."""

    READY = "Ready"
    SUSPENDED = "Suspended"
    NOT_SUSPENDED = "NotSuspended"
    PAUSED = "Paused"
    PROGRESSING = "Progressing"
    ROLLING_OUT = "RollingOut"
    UP_TO_DATE = "UpToDate"
    WAITING_FOR_DELETION = "WaitingForDeletion"
    WAITING_FOR_RELAY = "WaitingForRelay"
    NO_LEADER = "NoLeader"
    REPORT_STALE = "ReportStale"
    INVALID_SPEC = "InvalidSpec"
    INVALID_TEMPLATE = "InvalidTemplate"
    NOT_IMPLEMENTED = "NotImplemented"
    NAME_CONFLICT = "NameConflict"
    SOURCE_CONFLICT = "SourceConflict"
    SECRET_STORAGE_DISABLED = "SecretStorageDisabled"  # noqa: S105 - a word for users, not a secret
    REFUSED_BY_SERVER = "RefusedByServer"
    QUOTA_EXCEEDED = "QuotaExceeded"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    CRASH_LOOP = "CrashLoop"
    OUT_OF_MEMORY = "OutOfMemory"
    UNSCHEDULABLE = "Unschedulable"
    CREDENTIALS_RESOLVED = "CredentialsResolved"
    MONITORING_DISABLED = "MonitoringDisabled"
    NOT_STALLED = "NotStalled"
