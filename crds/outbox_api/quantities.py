"""Durations and sizes as the custom resource writes them; the schema's patterns accept what these parsers accept."""

import re
from datetime import timedelta

DURATION_PATTERN = r"^([0-9]{1,5}(d|h|m|s|ms))+$"
SIZE_PATTERN = r"^[0-9]{1,12}(Ki|Mi|Gi)?$"

_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_FACTORS = {None: 1, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}


def parse_duration(text: str) -> timedelta:
    """Return the duration that `text` (such as `1m30s`) names.

    Raises:
        ValueError: `text` is not a duration of the resource's form.
    """
    if re.fullmatch(DURATION_PATTERN, text) is None:
        raise ValueError(f"{text!r} is not a duration: write for example 500ms, 30s, 1m30s or 7d")
    parts = re.findall(r"([0-9]+)(ms|[dhms])", text)
    return timedelta(milliseconds=sum(int(number) * _UNITS[unit] for number, unit in parts))


def format_duration(milliseconds: int) -> str:
    """Return the shortest text that names a duration of `milliseconds`, which is how status shows one."""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    seconds, rest = divmod(milliseconds, 1000)
    if seconds < 60:
        return f"{seconds}.{rest // 100}s" if rest >= 100 else f"{seconds}s"
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])


def parse_size(text: str) -> int:
    """Return the number of bytes that `text` (such as `32Mi`) names.

    Raises:
        ValueError: `text` is not a size of the resource's form.
    """
    match = re.fullmatch(r"([0-9]{1,12})(Ki|Mi|Gi)?", text)
    if match is None:
        raise ValueError(f"{text!r} is not a size: write a number of bytes, or one with Ki, Mi or Gi")
    return int(match[1]) * _FACTORS[match[2]]
