"""What an error of MongoDB means for a relay."""

from typing import Final

from pymongo.errors import ConfigurationError, OperationFailure, PyMongoError, ServerSelectionTimeoutError

from outbox_api.reasons import RelayReason
from outbox_relay.observe.scrub import scrub
from outbox_relay.problems import Problem

_LONGEST_TEXT = 300
_AUTHENTICATION: Final = frozenset({18, 8000})  # AuthenticationFailed; 8000 is a hosted service's own
_NOT_AUTHORIZED: Final = frozenset({13})
_NO_CHANGE_STREAMS: Final = frozenset({40573, 40324, 115, 303})
"""Only on replica sets; unrecognized stage; command not supported; API feature removed."""
_HISTORY_LOST: Final = frozenset({286, 280, 260})
"""ChangeStreamHistoryLost; ChangeStreamFatalError and InvalidResumeToken (the token is not, or no longer, known)."""
_SNAPSHOT_GONE: Final = frozenset({239, 246})
"""SnapshotTooOld, SnapshotUnavailable (the collection was made or dropped meanwhile)."""


def describe(error: BaseException, namespace: str) -> Problem:
    """Return the problem that an error of the driver is, for the report."""
    text = _text(error)
    if isinstance(error, OperationFailure):
        if error.code in _AUTHENTICATION:
            return Problem(
                RelayReason.SOURCE_AUTHENTICATION_FAILED,
                f"MongoDB refused user name or password ({text}); correct the connection string in its secret",
            )
        if error.code in _NOT_AUTHORIZED:
            return Problem(
                RelayReason.SOURCE_NOT_AUTHORIZED,
                f"MongoDB does not let the relay's user do this on {namespace} ({text}); grant it find, changeStream "
                "and, unless afterPublish is Keep, update or remove",
            )
        if error.code in _NO_CHANGE_STREAMS:
            return no_change_streams(namespace, text)
    if isinstance(error, ConfigurationError):
        return Problem(RelayReason.SOURCE_URI_INVALID, f"the connection string cannot be used: {text}")
    if isinstance(error, TimeoutError):
        text = "no answer in time"
    if isinstance(error, ServerSelectionTimeoutError):
        text = f"no server to talk to: {text}"
    return Problem(
        RelayReason.SOURCE_UNREACHABLE,
        f"MongoDB does not answer for {namespace} ({text}); the relay keeps trying",
    )


def no_change_streams(namespace: str, text: str) -> Problem:
    """Return the problem of a server that has no change streams."""
    return Problem(
        RelayReason.CHANGE_STREAM_UNAVAILABLE,
        f"this MongoDB offers no change streams for {namespace} ({text}); run it as a replica set (one node is "
        "enough), or set spec.source.mode to Polling",
    )


def is_history_lost(error: PyMongoError) -> bool:
    """Say whether the stream's position cannot be resumed from."""
    return isinstance(error, OperationFailure) and error.code in _HISTORY_LOST


def is_snapshot_gone(error: PyMongoError) -> bool:
    """Say whether a snapshot read has to be taken anew at a later time."""
    return isinstance(error, OperationFailure) and error.code in _SNAPSHOT_GONE


def needs_new_client(error: PyMongoError) -> bool:
    """Say whether only a new client, from the URI file as it is now, can help: user or rights changed."""
    return isinstance(error, OperationFailure) and error.code in _AUTHENTICATION | _NOT_AUTHORIZED


def is_permanent(error: PyMongoError) -> bool:
    """Say whether trying again is of no use until the user changes something of the server."""
    return isinstance(error, OperationFailure) and error.code in _NO_CHANGE_STREAMS


def _text(error: BaseException) -> str:
    details = error.details if isinstance(error, OperationFailure) else None
    text = details["errmsg"] if details and "errmsg" in details else str(error)
    # A selection timeout lists the whole topology; its beginning says what is wrong.
    return scrub(str(text).split(", Timeout:")[0])[:_LONGEST_TEXT]
