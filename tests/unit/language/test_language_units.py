"""Durations in ISO 8601 beside the plain ones."""

import pytest

from tocsin.errors import BadArgument
from tocsin.language.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("10s", 10, id="seconds"),
        pytest.param("500ms", 0.5, id="milliseconds"),
        pytest.param("5 minutes", 300, id="a word with a space"),
        pytest.param("7 DAYS", 604_800, id="upper case"),
        pytest.param("PT10S", 10, id="ISO seconds"),
        pytest.param("PT0.25S", 0.25, id="ISO fraction"),
        pytest.param("P1DT2H30M", 95_400, id="ISO day and time"),
        pytest.param("P2W", 1_209_600, id="ISO weeks"),
        pytest.param(" pt5m ", 300, id="ISO in lower case with space around"),
    ],
)
def test_reads_a_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "P1Y", "P1M", "10", "-5s", "PT-5S", "soon", "10s later"])
def test_refuses_what_is_no_duration(text: str) -> None:
    with pytest.raises(BadArgument, match="period: expected a duration"):
        parse_duration(text, "period")


def test_formats_what_it_reads() -> None:
    assert parse_duration(format_duration(parse_duration("PT1H30M"))) == 5400
    assert parse_size(format_size(parse_size("512 MB"))) == 512_000_000
