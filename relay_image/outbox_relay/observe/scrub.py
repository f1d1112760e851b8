"""Texts of others, without the secrets that they may quote."""

import re

# Greedy up to the last @ before the path: a password that is not percent-encoded may hold one itself.
_CREDENTIALS = re.compile(r"(mongodb(?:\+srv)?://)[^\s/]*@")


def scrub(text: str) -> str:
    """Return `text` with the user part of every MongoDB URI masked."""
    return _CREDENTIALS.sub(r"\1***@", text)
