"""Positions and resume tokens, between the checkpoint's texts and the driver's values."""

from collections.abc import Mapping
from typing import Any

import bson
from bson import Timestamp, json_util
from bson.raw_bson import RawBSONDocument

from outbox_api.checkpoint import ClusterTime, Position
from outbox_relay.source.change_events import ChangeEvents


def position_of(events: ChangeEvents, index: int) -> Position:
    """Return the position just after an event."""
    return Position(cluster_time=str(ClusterTime(*events.cluster_times[index])), token=token_text(events.token(index)))


def token_text(token: RawBSONDocument | Mapping[str, Any]) -> str:
    """Return a resume token as Extended JSON."""
    document = bson.decode(bytes(token.raw)) if isinstance(token, RawBSONDocument) else token
    return json_util.dumps(document, json_options=json_util.CANONICAL_JSON_OPTIONS)


def resume_token(position: Position) -> dict[str, Any] | None:
    """Return the token to resume after; None if the position is a cluster time alone."""
    if position.token is None:
        return None
    token: dict[str, Any] = json_util.loads(position.token)
    return token


def to_cluster_time(timestamp: Timestamp) -> ClusterTime:
    """Return the driver's timestamp as a cluster time."""
    return ClusterTime(timestamp.time, timestamp.inc)


def start_after(position: Position) -> Timestamp:
    """Return the operation time to open the stream at, for a position without a token.

    The stream's start is inclusive, and what happened at the position's cluster time is settled.
    """
    time = ClusterTime.parse(position.cluster_time)
    return Timestamp(time.seconds, time.increment + 1)


def token_time(token: RawBSONDocument | Mapping[str, Any]) -> ClusterTime | None:
    """Return the cluster time that a token begins with; None if it has another form.

    A token's `_data` is the hexadecimal of a sort key whose first value is the cluster time: the type byte 0x82,
    then seconds and increment, big-endian (MongoDB 4.2 to 8.0; checked at run time, never assumed).
    """
    data = token.get("_data")
    if not isinstance(data, str) or not data.startswith("82") or len(data) < 18:
        return None
    try:
        return ClusterTime(int(data[2:10], 16), int(data[10:18], 16))
    except ValueError:
        return None
