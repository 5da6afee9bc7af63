import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadArgument
from tocsin.units import counted, format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("10s", 10.0, id="a number and a unit"),
        pytest.param("500 ms", 0.5, id="milliseconds, with a space"),
        pytest.param("1.5h", 5400.0, id="a fraction"),
        pytest.param("1h 30m", 5400.0, id="pairs are summed"),
        pytest.param("1h30m", 5400.0, id="pairs need no space"),
        pytest.param("2 Days", 172_800.0, id="words in any case"),
        pytest.param("0s", 0.0, id="zero"),
    ],
)
def test_a_duration_is_read(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "-1s", "s", "10 parsecs", "1s,", "1e3s", "1" * 70 + "s", 10, None, "٣s"])
def test_what_is_no_duration_is_refused_with_an_example(text):
    with pytest.raises(BadArgument, match=r"period: expected a duration such as '500ms'"):
        parse_duration(text, "period")


@pytest.mark.parametrize(
    ("text", "size"),
    [("64 MB", 64_000_000), ("1GiB", 1 << 30), ("512 B", 512), ("1.5 kb", 1500), ("0 B", 0), ("2 TB", 2 * 10**12)],
)
def test_a_size_is_read(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["64", "64 MB 2 kB", "1.5 B", "-1 MB", "MB", "", 64])
def test_what_is_no_size_is_refused_with_an_example(text):
    with pytest.raises(BadArgument, match=r"a size such as '512 B'"):
        parse_size(text)


@given(st.integers(0, 10**12))
def test_a_printed_size_parses_to_itself(size):
    assert parse_size(format_size(size)) == size


@given(st.integers(0, 10**10))
def test_a_printed_duration_parses_to_itself(milliseconds):
    assert parse_duration(format_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000, abs=1e-6)


@pytest.mark.parametrize(("size", "text"), [(10**9, "1 GB"), (1 << 20, "1 MiB"), (0, "0 B"), (1001, "1001 B")])
def test_a_size_is_printed_in_its_largest_exact_unit(size, text):
    assert format_size(size) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 rows"), (1, "1 row"), (2_000, "2,000 rows")])
def test_counted(number, text):
    assert counted(number, "row") == text
