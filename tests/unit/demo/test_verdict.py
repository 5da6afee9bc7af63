"""Every way in which a delivery can be wrong has its sentence."""

from dataclasses import replace

import pytest

from tocsin.demo.counters import Counted
from tocsin.demo.expected import Foretold
from tocsin.demo.tally import Tally
from tocsin.demo.verdict import problems_of

GOOD = Counted(executions=2, rows=2, matched=3)
TOLD = {"ByKind": 2}
EXPECTED = Foretold(frozenset({("r1", 1), ("r1", 2), ("r2", 1)}))


def received(*rows):
    tally = Tally()
    made = [{"id": i, "position": "p", "backends": b, "payload": {"report_id": r}} for i, r, b in rows]
    tally.add(made, 0.0, lambda backends, position: 7)
    return tally


ALL = (("a", "r1", [1, 2]), ("b", "r2", [1]))


def judge(tally, counted=GOOD, foretold=EXPECTED, told=TOLD):
    return list(problems_of("ByKind", tally, counted, foretold, told))


def test_exactly_once_is_no_problem():
    assert judge(received(*ALL)) == []


def test_nothing_expected_and_nothing_received_is_no_problem():
    assert judge(Tally(), Counted(), Foretold(frozenset()), {}) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            lambda: judge(received(*ALL, ALL[1]), replace(GOOD, rows=3, matched=4)),
            "1 matches came more than once",
        ),
        (lambda: judge(received(*ALL), replace(GOOD, matched=5)), "3 matches came, and the cluster found 5"),
        (lambda: judge(received(*ALL), replace(GOOD, rows=9)), "2 result rows came, and the cluster stored 9"),
        (lambda: judge(received(*ALL), told={}), "the broker was told of none"),
        (lambda: judge(received(ALL[0]), Counted(1, 0, 1, 2)), "1 matches are missing, such as r2"),
        (lambda: judge(received(*ALL), foretold=Foretold(frozenset({("r1", 1)}))), "2 matches should not be"),
    ],
    ids=["doubled", "not what matched", "not what was stored", "never told", "missing", "strange"],
)
def test_each_deviation_is_told_by_itself(found, said):
    problems = found()
    assert len(problems) == 1
    assert problems[0].startswith("ByKind: ")
    assert said in problems[0]


def test_a_gap_is_told():
    tally = received(*ALL)
    tally.gaps.append("results after 1 were no longer kept (retention)")
    assert judge(tally) == ["ByKind: results after 1 were no longer kept (retention)"]


def test_a_pair_on_the_edge_is_welcome_and_not_missed():
    possible = Foretold(frozenset({("r1", 1), ("r1", 2)}), frozenset({("r2", 1), ("r3", 1)}))
    assert judge(received(*ALL), foretold=possible) == []
