"""Every way in which a delivery can be wrong has its sentence, and what others are subscribed to changes none."""

from dataclasses import replace

import pytest

from tocsin.demo.counters import Counted
from tocsin.demo.expected import Foretold
from tocsin.demo.tally import Tally
from tocsin.demo.told import Told
from tocsin.demo.verdict import problems_of

GOOD = Counted(executions=2, rows=2, matched=3)
EXPECTED = Foretold(frozenset({("r1", 1), ("r1", 2), ("r2", 1)}))


def told(**owed):
    made = Told()
    made.add({"through": "1", "backends": [[int(name[1:]), count] for name, count in owed.items()]})
    return made


TOLD = told(b1=2, b2=1)


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
    assert judge(Tally(), Counted(), Foretold(frozenset()), Told()) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            lambda: judge(received(*ALL, ALL[1]), replace(GOOD, rows=3, matched=4), told=told(b1=3, b2=1)),
            "1 matches came more than once",
        ),
        (lambda: judge(received(*ALL), replace(GOOD, matched=2)), "3 matches came, and the cluster found 2"),
        (lambda: judge(received(*ALL), replace(GOOD, rows=1)), "2 result rows came, and the cluster stored 1"),
        (
            lambda: judge(received(*ALL), told=told(b1=1)),
            "2 matches came of which the broker was not told, such as 1 for subscription 1",
        ),
        (
            lambda: judge(received(ALL[0]), foretold=None),
            "1 matches did not come of which the broker was told, such as 1 for subscription 1",
        ),
        (lambda: judge(received(ALL[0]), told=told(b1=1, b2=1)), "1 matches are missing, such as r2"),
        (lambda: judge(received(*ALL), foretold=Foretold(frozenset({("r1", 1)}))), "2 matches should not be"),
    ],
    ids=["doubled", "more than matched", "more than was stored", "never told", "lost", "missing", "strange"],
)
def test_each_deviation_is_told_by_itself(found, said):
    problems = found()
    assert len(problems) == 1
    assert problems[0].startswith("ByKind: ")
    assert said in problems[0]


VISITED = replace(GOOD, rows=40, matched=90)  # others are subscribed, too


def test_what_others_get_is_no_problem():
    assert judge(received(*ALL), VISITED) == []


@pytest.mark.parametrize(
    "foretold", [EXPECTED, None], ids=["a channel that is foretold", "one that nobody can foretell"]
)
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param(ALL[:1], "1 matches did not come of which the broker was told", id="a row lost"),
        pytest.param(
            (("a", "r1", [1]), ALL[1]), "such as 1 for subscription 2", id="one of a row's subscriptions lost"
        ),
        pytest.param((*ALL, ALL[0]), "2 matches came more than once", id="a row doubled"),
        pytest.param((*ALL, ("c", "r2", [1])), "1 matches came more than once", id="a match doubled in another row"),
        pytest.param((ALL[0], ALL[0]), "2 matches came more than once", id="one doubled in place of one lost"),
    ],
)
def test_however_many_others_there_are_what_is_lost_or_doubled_for_ours_is_told(rows, said, foretold):
    assert any(said in problem for problem in judge(received(*rows), VISITED, foretold))


def test_where_a_notice_had_too_much_to_list_the_counters_must_be_met():
    unlisted = Told()
    unlisted.add({"through": "1", "backends": None})
    assert judge(received(*ALL), told=unlisted) == []
    problems = judge(received(*ALL), VISITED, told=unlisted)
    assert [problem.partition(", and ")[2] for problem in problems] == ["the cluster found 90", "the cluster stored 40"]


def test_a_gap_is_told():
    tally = received(*ALL)
    tally.gaps.append("results after 1 were no longer kept (retention)")
    assert judge(tally) == ["ByKind: results after 1 were no longer kept (retention)"]


def test_a_pair_on_the_edge_is_welcome_and_not_missed():
    possible = Foretold(frozenset({("r1", 1), ("r1", 2)}), frozenset({("r2", 1), ("r3", 1)}))
    assert judge(received(*ALL), foretold=possible) == []
