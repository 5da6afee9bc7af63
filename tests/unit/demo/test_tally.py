"""What was received, counted pair by pair."""

import numpy as np
import pytest

from tocsin.demo.tally import Tally, quantiles_ms


def row(id, report, *backends):
    return {"id": id, "position": "p", "backends": list(backends), "payload": {"report_id": report}}


def ten_each(backends, position):
    return 10 * len(backends)


def test_a_row_is_a_match_a_backend_and_a_notification_a_subscription():
    tally = Tally()
    tally.add([row("a", "r1", 1, 2, 3), row("b", "r2", 1)], 5.0, ten_each)
    assert (tally.rows, tally.matches, tally.notifications, tally.doubled) == (2, 4, 40, 0)
    assert tally.pairs == {("r1", 1), ("r1", 2), ("r1", 3), ("r2", 1)}


@pytest.mark.parametrize(
    ("again", "doubled"),
    [
        (row("a", "r1", 1, 2), 2),
        (row("other", "r1", 2, 3), 1),
        (row("a", "r9", 7), 1),
    ],
    ids=["the same row twice", "a pair in another row", "an id for something else"],
)
def test_what_comes_again_is_doubled(again, doubled):
    tally = Tally()
    tally.add([row("a", "r1", 1, 2)], 0.0, ten_each)
    tally.add([again], 1.0, ten_each)
    assert tally.doubled == doubled


def test_latency_runs_from_the_receipt_and_leaves_out_what_has_none():
    tally = Tally()
    tally.add([row("a", "warm", 1)], 1.0, ten_each)
    tally.add([row("b", "r1", 1), row("c", "r2", 1)], 10.0, ten_each)
    accepted = {"r1": 7.5, "r2": 10.5}
    assert tally.latencies_s(accepted).tolist() == [2.5, 0.0]
    assert tally.latencies_s(accepted, last=1).tolist() == [0.0]


def test_quantiles_are_milliseconds_and_nothing_without_rows():
    assert quantiles_ms(np.array([])) is None
    assert quantiles_ms(np.linspace(0.0, 1.0, 101)) == (500.0, 990.0)
