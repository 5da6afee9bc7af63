from __future__ import annotations

import pyarrow as pa
import pytest

from tocsin.matching.fingerprint import string_lanes
from tocsin.matching.words import param_lanes, word_lanes, words

SEED = (1, 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Fire at 5th-Avenue!", ["fire", "at", "5th", "avenue"], id="punctuation parts words"),
        pytest.param("snake_case", ["snake", "case"], id="the underscore is no letter"),
        pytest.param("  ", [], id="blanks hold no word"),
        pytest.param("", [], id="nor does nothing"),
        pytest.param("ÉCLAIR naïve", ["éclair", "naïve"], id="accented letters are letters"),
        pytest.param("火事 123 ٣", ["火事", "123", "٣"], id="letters and digits of every script"),
        pytest.param("x²½", ["x²½"], id="other numbers count as digits"),
        pytest.param("ΟΔΟΣ", ["οδος"], id="the last sigma is final"),
        pytest.param("İx", ["i", "x"], id="a combining dot ends a word"),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_word_lanes_are_those_of_the_distinct_words_in_order() -> None:
    texts = ["a B a", None, "é A", "", "b", "x" * 20 + " b"]
    expected = [(0, "a"), (0, "b"), (2, "é"), (2, "a"), (4, "b"), (5, "x" * 20), (5, "b")]
    row, lanes = word_lanes(pa.array(texts), SEED, "text")
    wanted = string_lanes(pa.array([word for _, word in expected]), SEED, "text")
    assert row.tolist() == [i for i, _ in expected]
    assert [a.tolist() for a in lanes] == [a.tolist() for a in wanted]


def test_word_lanes_of_a_slice_and_of_other_string_types_are_the_same() -> None:
    texts = pa.array(["skip", "fire here", "Élan vital", "end"])
    wanted = word_lanes(pa.array(["fire here", "Élan vital"]), SEED, "text")
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        row, lanes = word_lanes(texts.cast(kind)[1:3], SEED, "text")
        assert row.tolist() == wanted[0].tolist()
        assert [a.tolist() for a in lanes] == [a.tolist() for a in wanted[1]]


def test_a_parameter_must_be_exactly_one_word() -> None:
    is_word, lanes = param_lanes(pa.array(["Fire", "two words", "", None, "É", "-x", "İ", "a_b"]), SEED, "word")
    assert is_word.tolist() == [True, False, False, False, True, False, False, False]
    wanted = string_lanes(pa.array(["fire", "é"]), SEED, "word")
    assert [lanes[0][0], lanes[0][4]] == wanted[0].tolist()
