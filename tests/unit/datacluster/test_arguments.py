from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.datacluster.arguments import bind_arguments, canonical_key, values_of
from tocsin.errors import BadArgument
from tocsin.model.catalog import ChannelSpec, Parameter
from tocsin.model.types import SqlType

SPEC = ChannelSpec(
    "C",
    (
        Parameter("kind", SqlType("STRING")),
        Parameter("radius", SqlType("DOUBLE")),
        Parameter("ids", SqlType("BIGINT", is_array=True)),
    ),
    "SELECT 1",
)


def test_the_same_values_by_place_and_by_name_are_one_subscription() -> None:
    by_place = canonical_key(SPEC, bind_arguments(SPEC, ["fire", 500, [1, "2"]]))
    by_name = canonical_key(SPEC, bind_arguments(SPEC, {"RADIUS": 500.0, "ids": ["1", 2], "kind": "fire"}))
    assert by_place == by_name == '["fire",500.0,["1","2"]]'


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["fire"], "expected 3", id="too few"),
        pytest.param({"kind": "fire", "radius": 1}, "a value for ids", id="one is missing"),
        pytest.param({"kind": "x", "radius": 1, "idz": []}, "did you mean 'ids'", id="a misspelt name"),
        pytest.param(["fire", "far", []], "radius: expected DOUBLE", id="a wrong type"),
        pytest.param(["fire", float("nan"), []], "finite", id="not a number"),
        pytest.param(["\ud800", 1, []], "valid Unicode", id="half a surrogate pair"),
    ],
)
def test_what_does_not_fit_is_named(arguments: object, expected: str) -> None:
    with pytest.raises(BadArgument, match=expected):
        bind_arguments(SPEC, arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param(SqlType("DECIMAL", 38, 0), "9" * 38, id="as many digits as there are"),
        pytest.param(SqlType("DECIMAL", 38, 10), f"-{'1' * 28}.{'2' * 10}", id="with decimals"),
    ],
)
def test_a_decimal_keeps_every_digit(kind: SqlType, text: str) -> None:
    assert str(kind.parse(text, "d")) == text
    with pytest.raises(BadArgument, match="DECIMAL"):
        kind.parse(f"1{text.removeprefix('-')}", "d")


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.integers(-(2**63), 2**63 - 1)),
)
def test_values_come_back_from_their_key(kind: str, radius: float, ids: list[int]) -> None:
    values = bind_arguments(SPEC, [kind, radius, ids])
    assert values_of(SPEC, canonical_key(SPEC, values)) == values
