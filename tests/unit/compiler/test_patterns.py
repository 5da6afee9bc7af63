"""Which regular expressions a query may have."""

from __future__ import annotations

import pytest

from support.city_catalog import compiled
from tocsin.compiler.patterns import may_explode
from tocsin.errors import InvalidQuery


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+b", "(a|a)*b", "(a|aa)+$", "(.*a){12}", r"(\w+\s?)*x", "((a+))*", "(?:a*)*", "(?i:a+)+", "(?<n>a+)+",
     "([a-z]+)*", "(a?){20}", "(?=(a+)+b)", "(a+)*?", r"\Q[\E(a+)+b", r"\\Q(a+)+b", r"[\]](a+)+b", "(?x)#[\n(a+)+b",
     "(?:(?>a)a+)+b", "(((a+){4}){4})b", r"\c[(a+)+b", r"(a+\c)?)+b"],
)  # fmt: skip
def test_a_repeated_group_that_matches_in_several_ways_may_explode(pattern: str) -> None:
    assert may_explode(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["a+b*", r"(\d+\.){3}\d+", "([0-9A-F]{2}:){5}", "(?:a++)*", "(a+)++", "(?>a+)*", "[(a+)+]*", r"\(a+\)+",
     r"\Q(a+)+\E", ".*foo.*", "(foo|bar)", "(?:ab)+", "(a+)?", "((a+){2}b){2}", "(?i)abc+", "x{2,3}", ")", "((", "[",
     "", "\\"],
)  # fmt: skip
def test_others_do_not(pattern: str) -> None:
    assert not may_explode(pattern)


@pytest.mark.parametrize(
    "call",
    ["text RLIKE '{}'", "regexp_replace(text, '{}', 'x') = 'x'", "regexp_extract(text, '{}', 1) = 'x'",
     "regexp_count(text, '{}') > 1", "size(regexp_extract_all(text, '{}', 1)) > 1", "size(split(text, '{}')) > 1",
     "regexp_instr(text, '{}') > 1", "regexp_substr(text, '{}') = 'x'"],
)  # fmt: skip
def test_every_function_with_a_pattern_is_held_to_it(call: str) -> None:
    compiled(f"SELECT id FROM Reports WHERE {call.format('a+')}", "k INT")
    with pytest.raises(InvalidQuery, match="may take for ever"):
        compiled(f"SELECT id FROM Reports WHERE {call.format('(a+)+b')}", "k INT")


@pytest.mark.parametrize("pattern", ["id", ":k", "concat('(a+', ')+b')"])
def test_a_pattern_must_be_written(pattern: str) -> None:
    with pytest.raises(InvalidQuery, match="written as one text"):
        compiled(f"SELECT id FROM Reports WHERE text RLIKE {pattern}", "k STRING")
