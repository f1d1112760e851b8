"""docs/reference/bson-types.md, row by row."""

import json

import bson
import pytest
from bson import json_util
from bson.binary import UuidRepresentation
from bson.codec_options import DatetimeConversion

from outbox_dev.paths import repo_root
from outbox_relay.encoding.json_values import json_bytes
from outbox_relay.encoding.scalars import SCALAR_TEXTS
from outbox_relay.encoding.text import text
from outbox_relay.events import CODEC, decode

OPTIONS = json_util.JSONOptions(
    uuid_representation=UuidRepresentation.UNSPECIFIED, datetime_conversion=DatetimeConversion.DATETIME_MS
)


def rows() -> list[list[str]]:
    lines = (repo_root() / "docs/reference/bson-types.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("| BSON type | stored (Extended JSON) | JSON | text |") + 2
    table = lines[start : lines.index("", start)]
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in table]


@pytest.mark.parametrize(("name", "stored", "as_json", "as_text"), rows())
def test_a_type_becomes_what_the_page_says(name: str, stored: str, as_json: str, as_text: str) -> None:
    value = decode(bson.encode(json_util.loads(f'{{"v": {stored}}}', json_options=OPTIONS), codec_options=CODEC))["v"]
    assert (json_bytes(value).decode(), text(value)) == (as_json, as_text)
    json.loads(as_json)


def test_the_page_has_every_type_that_has_a_text_of_its_own() -> None:
    shown = [json_util.loads(f'{{"v": {stored}}}', json_options=OPTIONS) for _, stored, _, _ in rows()]
    types = {type(decode(bson.encode(document, codec_options=CODEC))["v"]) for document in shown}
    assert set(SCALAR_TEXTS) <= types
