"""What the decider tells of plans that are not carried out."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tocsin.coordinator.choices import BalancingChoice, PolicyChoice
from tocsin.coordinator.deciding import Decider
from tocsin.coordinator.metrics import Metrics
from tocsin.coordinator.sight import Sight

PAIRS = {"a": {"s": ("A",), "t": ("A",), "u": ("B",)}, "b": {"v": ("C",), "w": ("C",), "x": ("D",)}}
NOBODY = {"a": frozenset[str](), "b": frozenset[str]()}
RATES = {"A": 9.0, "B": 1.0, "C": 9.0, "D": 1.2}  # GSH tears those apart who want the same
SIGHT = Sight(0.0, {"a": 1.0, "b": 1.0}, PAIRS, NOBODY, (RATES,), {}, {}, {}, ())


def test_a_comparison_says_which_plan_would_not_be_carried_out():
    trials = (
        Decider(100, Random(0))
        .compare(BalancingChoice(), [PolicyChoice("gsh"), PolicyChoice("ldm")], SIGHT, 0.0)
        .trials
    )
    shuffle, migration = trials.trials
    assert (shuffle.status, shuffle.reason) == ("discarded", "would raise the maximum")
    assert shuffle.after.maximum > trials.now.maximum
    assert migration.status != "discarded"


def test_a_discarded_plan_says_what_would_have_come_of_it():
    decided = Decider(100, Random(0)).ask(BalancingChoice(), PolicyChoice("gsh"), SIGHT, 0.0).decided
    [discarded] = decided.decision.discarded
    assert (discarded.policy, discarded.reason) == ("gsh", "would raise the maximum")
    assert discarded.after.maximum > 29.4, "of the second broker, as it is"
    assert not decided.moves


@pytest.mark.parametrize(("rest_s", "pinned"), [("10", 0), ("3600", 1)])
def test_who_rests_is_as_the_choice_in_force_says_before_the_first_check_too(rest_s: str, pinned: int):
    choice, moved = BalancingChoice(options={"rest_s": rest_s}), replace(SIGHT, at=1000.0, tried_at={"s": 900.0})
    decider = Decider(100, Random(0))
    assert decider.compare(choice, [PolicyChoice("ldm")], moved, 0.0).trials.pinned == pinned
    assert decider.ask(choice, PolicyChoice("ldm"), moved, 0.0).trials.pinned == pinned


def test_refusals_are_counted_by_their_reasons():
    metrics = Metrics()
    metrics.refused({"would not pay": 3}, [("gsh", "would raise the maximum")])
    text = metrics.render().decode()
    assert 'tocsin_coordinator_rejected_moves_total{reason="would not pay"} 3.0' in text
    assert 'tocsin_coordinator_discarded_plans_total{policy="gsh",reason="would raise the maximum"} 1.0' in text
