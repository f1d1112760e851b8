"""Decode one raw BSON document by itself, so that a document that cannot be decoded costs only itself.

The codec keeps what the driver's default refuses or guesses: dates outside the years 1 to 9999 stay
milliseconds (`DatetimeMS`), and UUIDs of both subtypes stay `Binary`.
"""

from collections.abc import Iterator
from typing import Any

import bson
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.dbref import DBRef
from bson.errors import BSONError

from outbox_relay.events.record import EventRefusedError, Reason

Document = dict[str, Any]

CODEC: CodecOptions[Document] = CodecOptions(
    document_class=dict,
    uuid_representation=UuidRepresentation.UNSPECIFIED,
    datetime_conversion=DatetimeConversion.DATETIME_MS,
)
_LENIENT = CODEC.with_options(unicode_decode_error_handler="surrogateescape")


def decode(raw: bytes) -> Document:
    """Return the fields of one BSON document.

    Raises:
        EventRefusedError: `UNDECODABLE`, with the document's id and the field where they can be told.
    """
    try:
        return bson.decode(raw, CODEC)
    except BSONError as error:
        raise _refused(raw, error) from error


def _refused(raw: bytes, error: BSONError) -> EventRefusedError:
    """Say what is wrong: decoding again leniently shows whether it is a text, and which one."""
    try:
        document = bson.decode(raw, _LENIENT)
    except BSONError:
        return EventRefusedError(Reason.UNDECODABLE, f"the document is not valid BSON ({error}); write it anew")
    path = next(_invalid_texts(document, ""), None)
    return EventRefusedError(
        Reason.UNDECODABLE,
        f"field {path} is not valid UTF-8; store bytes as BSON binary, or correct the producer's character set",
        field=path,
        document_id=document.get("_id"),
    )


def _invalid_texts(value: object, path: str) -> Iterator[str]:
    """Yield the paths of names and texts that hold bytes which are not UTF-8 (kept as lone surrogates)."""
    if isinstance(value, DBRef):
        value = value.as_doc()
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _invalid_texts(name, f"{path}{_readable(name)}")
            yield from _invalid_texts(inner, f"{path}{_readable(name)}.")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _invalid_texts(inner, f"{path}{index}.")
    elif isinstance(value, str) and _readable(value) != value:
        yield path.removesuffix(".")


def _readable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
