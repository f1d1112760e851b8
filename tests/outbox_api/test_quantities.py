import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox_api.quantities import DURATION_PATTERN, SIZE_PATTERN, format_duration, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("5s", 5), ("1m30s", 90), ("10m", 600), ("1h", 3600), ("7d", 604_800), ("1s500ms", 1.5)],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "1.5s", "5 s", "123456s", "5s\n"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="1m30s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("1024", 1024), ("1Ki", 1024), ("32Mi", 33_554_432), ("1Gi", 2**30)]
)
def test_a_size_counts_in_powers_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "Mi", "1.5Mi", "1M", "-1", "1mi", "1Mi\n"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_size(text)


@given(st.from_regex(DURATION_PATTERN, fullmatch=True))
def test_every_duration_that_the_schema_accepts_is_parsed(text: str) -> None:
    assert parse_duration(text) >= timedelta(0)


@given(st.from_regex(SIZE_PATTERN, fullmatch=True))
def test_every_size_that_the_schema_accepts_is_parsed(text: str) -> None:
    assert parse_size(text) >= 0


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0ms"),
        (120, "120ms"),
        (999, "999ms"),
        (1_000, "1s"),
        (1_540, "1.5s"),
        (59_900, "59.9s"),
        (60_000, "1m"),
        (61_000, "1m1s"),
        (3_661_000, "1h1m"),
        (90_000_000, "1d1h"),
        (86_400_000 * 12, "12d"),
    ],
)
def test_status_shows_a_duration_as_short_as_it_can(milliseconds: int, text: str) -> None:
    assert format_duration(milliseconds) == text


@given(st.integers(min_value=0, max_value=10**12))
def test_the_text_of_a_lag_never_holds_more_than_two_units(milliseconds: int) -> None:
    assert len(re.findall(r"ms|[dhms]", format_duration(milliseconds))) in (1, 2)
