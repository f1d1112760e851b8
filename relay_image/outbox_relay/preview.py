"""What `outbox-relay preview` prints: the record that each document becomes, without MongoDB or Kafka."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import bson
import orjson
from bson import json_util
from bson.binary import UuidRepresentation
from bson.codec_options import DatetimeConversion
from bson.errors import BSONError

from outbox_relay.events.decode import CODEC
from outbox_relay.events.record import Record, Refusal
from outbox_relay.render import Renderer

_EXTENDED_JSON: json_util.JSONOptions = json_util.JSONOptions(
    uuid_representation=UuidRepresentation.UNSPECIFIED, datetime_conversion=DatetimeConversion.DATETIME_MS
)


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no document; `number` counts from 1."""

    number: int
    problem: str


def preview(lines: Iterable[bytes], renderer: Renderer) -> Iterator[bytes | BadLine]:
    """Yield, for each line that is not blank, one JSON object without a line end, or what is wrong with the line."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            raw = _bson(line)
        except ValueError as error:
            yield BadLine(number, str(error))
        else:
            yield orjson.dumps(shown(renderer.render(raw)))


def shown(outcome: Record | Refusal) -> dict[str, Any]:
    """Return the JSON form of an outcome. Bytes that are UTF-8 are shown as text, others in base64."""
    if isinstance(outcome, Refusal):
        return {"deadLetter": {"reason": outcome.reason, "message": outcome.message}}
    return {
        "topic": outcome.topic,
        "partition": outcome.partition,
        "timestamp": outcome.timestamp,
        **_bytes("key", outcome.key),
        "headers": [[name, value.decode()] for name, value in outcome.headers],
        **_bytes("value", outcome.value),
    }


def _bytes(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}


def _bson(line: bytes) -> bytes:
    """Return the BSON of a document in Extended JSON.

    Raises:
        ValueError: the line is no JSON object in UTF-8, or a value in it has no BSON form.
    """
    try:
        document = json_util.loads(line.decode(), json_options=_EXTENDED_JSON)
    except UnicodeDecodeError as error:
        raise ValueError("not valid UTF-8") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error.msg} at column {error.colno}") from error
    except (TypeError, ValueError, ArithmeticError, BSONError) as error:
        raise ValueError(f"not valid Extended JSON: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(f"a document is a JSON object, and this is {type(document).__name__}")  # noqa: TRY004
    try:
        return bson.encode(document, codec_options=CODEC)
    except (BSONError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"cannot be stored in MongoDB: {error}") from error
