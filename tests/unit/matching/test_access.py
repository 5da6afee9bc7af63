from __future__ import annotations

import pytest

from tocsin.errors import BadArgument, InvalidQuery
from tocsin.matching.access import Access, check_spec, choose_access
from tocsin.matching.spec import Compare, Equal, HasWord, IndexSpec, Member, Metric, Near, Op, Predicate
from tocsin.matching.spec_json import spec_from_json, spec_to_json
from tocsin.model.types import SqlType

TYPES = {
    "text": SqlType("STRING"),
    "number": SqlType("DOUBLE"),
    "flag": SqlType("BOOLEAN"),
    "list": SqlType("STRING", is_array=True),
    "wide": SqlType("DECIMAL", 38, 0),
    "fine": SqlType("DECIMAL", 38, 20),
}
EQUAL, WORD = Equal("text", "text"), HasWord("text", "text")
MEMBER, BELOW = Member("text", "list"), Compare("number", Op.LT, "number")
CIRCLE = Near(Metric.PLANAR, "number", "number", "number", "number", False, radius_const=5.0)
BROUGHT = Near(Metric.SPHERE, "number", "number", "number", "number", True, radius_probe="number")


def spec(*predicates: Predicate, cell: float = 500.0) -> IndexSpec:
    return IndexSpec(predicates, tuple(TYPES.items()), tuple(TYPES.items()), cell)


@pytest.mark.parametrize(
    ("predicates", "access"),
    [
        pytest.param((), Access((), None, (), ()), id="nothing to decide"),
        pytest.param((EQUAL, EQUAL), Access((0, 1), None, (), ()), id="every equality is in the key"),
        pytest.param((WORD, MEMBER, CIRCLE, EQUAL), Access((3,), 2, (), (0, 1)), id="a circle is spread first"),
        pytest.param((BROUGHT, CIRCLE), Access((), 1, (), (0,)), id="a stored radius before a brought one"),
        pytest.param((BROUGHT,), Access((), 0, (), (0,)), id="a brought radius is tested again"),
        pytest.param((MEMBER, WORD), Access((), 1, (), (0,)), id="a word before a list"),
        pytest.param((BELOW,), Access((), None, (0,), ()), id="one range needs no test"),
        pytest.param((EQUAL, BELOW, BELOW), Access((0,), None, (1, 2), (1, 2)), id="two ranges are tested"),
        pytest.param((BELOW, WORD), Access((), 1, (), (0,)), id="beside a word a range is tested"),
        pytest.param((Compare("wide", Op.LT, "wide"),), Access((), None, (0,), (0,)), id="wide decimals are tested"),
    ],
)
def test_choose_access(predicates: tuple[Predicate, ...], access: Access) -> None:
    check_spec(spec(*predicates))
    assert choose_access(spec(*predicates)) == access


@pytest.mark.parametrize(
    ("predicate", "error", "says"),
    [
        pytest.param(Equal("text", "number"), InvalidQuery, "STRING with DOUBLE", id="text beside a number"),
        pytest.param(Equal("text", "list"), InvalidQuery, "ARRAY<STRING>", id="text beside a list"),
        pytest.param(Member("text", "text"), InvalidQuery, "STRING with STRING", id="a list that is none"),
        pytest.param(Compare("text", Op.LT, "text"), InvalidQuery, "numbers, timestamps or dates", id="order of texts"),
        pytest.param(Compare("flag", Op.LT, "flag"), InvalidQuery, "numbers, timestamps or dates", id="order of flags"),
        pytest.param(HasWord("number", "number"), InvalidQuery, "expected STRING", id="words of numbers"),
        pytest.param(Equal("wide", "fine"), InvalidQuery, "58 digits", id="decimals too wide together"),
        pytest.param(Equal("gone", "text"), BadArgument, "'gone'", id="a column of unknown type"),
        pytest.param(
            Near(Metric.PLANAR, "text", "number", "number", "number", False, radius_const=1.0),
            InvalidQuery,
            "expected numbers",
            id="a place in words",
        ),
        pytest.param(
            Near(Metric.PLANAR, "number", "number", "number", "number", False),
            InvalidQuery,
            "exactly one",
            id="a circle without a radius",
        ),
    ],
)
def test_check_spec_refuses(predicate: Predicate, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        check_spec(spec(predicate))


def test_check_spec_refuses_a_cell_of_no_size() -> None:
    with pytest.raises(BadArgument, match="cell: expected a size above 0"):
        check_spec(spec(cell=0.0))


def test_a_spec_survives_json() -> None:
    whole = spec(EQUAL, WORD, MEMBER, BELOW, CIRCLE, BROUGHT, cell=12.5)
    assert spec_from_json(spec_to_json(whole)) == whole
