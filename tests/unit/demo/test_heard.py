"""What came to clients, held against what the cluster's results say."""

import pytest

from tocsin.demo.heard import Heard, compare
from tocsin.demo.tally import Tally


def tallied():
    tally = Tally()
    rows = [("a", "r1", "p1", [1, 2]), ("b", "r2", "p2", [1]), ("c", "r3", "p3", [1, 2])]
    results = [{"id": i, "position": p, "backends": b, "payload": {"report_id": r}} for i, r, p, b in rows]
    tally.add(results, 0.0, lambda backends, position: 0)
    return {"ByKind": tally}


def heard(*reports, backend=1, position="p0", **options):
    return Heard("u1", "ByKind", backend, position, list(reports), **options)


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(heard("r1", "r2", "r3"), id="everything"),
        pytest.param(heard("r3", position="p2"), id="what came after it subscribed"),
        pytest.param(heard("r1", "r3", backend=2), id="what its parameters ask for"),
        pytest.param(heard(backend=9), id="nothing, where there is nothing"),
    ],
)
def test_what_had_to_come_and_came_is_no_problem(one):
    assert compare([one], tallied()).problems == []


@pytest.mark.parametrize(
    ("one", "words", "counts"),
    [
        pytest.param(heard("r1", "r3"), "1 notifications are missing at the client, such as r2", (1, 0, 0), id="lost"),
        pytest.param(heard("r1", "r1", "r2", "r3"), "more than once", (0, 1, 0), id="doubled"),
        pytest.param(heard("r1", "r2", "r3", out_of_order=2), "out of order", (0, 0, 2), id="out of order"),
        pytest.param(heard("r1", "r2", "r3", backend=2), "should not be, such as r2", (0, 0, 0), id="for others"),
        pytest.param(heard("r1", "r2", "r3", gaps=["a gap was told"]), "a gap was told", (0, 0, 0), id="a gap"),
        pytest.param(heard(backend=None), "not answered", (0, 0, 0), id="unanswered"),
        pytest.param(heard(backend=None, problem="no login"), "no login", (0, 0, 0), id="a problem of its own"),
    ],
)
def test_everything_else_is_told(one, words, counts):
    found = compare([heard("r1", "r2", "r3"), one], tallied())
    assert len(found.problems) == 1
    assert words in found.problems[0]
    assert found.problems[0].startswith("u1, ByKind: ")
    assert (found.missing, found.doubled, found.out_of_order) == counts
