"""No text of a library carries a password out."""

import pytest

from outbox_relay.observe.scrub import scrub


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("mongodb://user:secret@host:27017/?x=1", "mongodb://***@host:27017/?x=1"),
        ("cannot use mongodb+srv://u:p%40ss@cluster.example now", "cannot use mongodb+srv://***@cluster.example now"),
        ("mongodb://user:p@ss@host/db", "mongodb://***@host/db"),
        ("mongodb://host:27017 refused", "mongodb://host:27017 refused"),
        ("mail to someone@example.org", "mail to someone@example.org"),
    ],
)
def test_the_user_part_of_a_uri_is_masked(text: str, scrubbed: str) -> None:
    assert scrub(text) == scrubbed
