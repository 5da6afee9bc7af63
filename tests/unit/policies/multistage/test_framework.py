"""The framework: nothing, migrate or shuffle, and why."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from balancing_world import world
from tocsin.errors import ConfigError
from tocsin.policies.multistage.framework import Action, Framework
from tocsin.policies.multistage.gsh import Gsh
from tocsin.policies.multistage.ldm import Ldm
from tocsin.policies.multistage.memory import Memory
from tocsin.policies.multistage.plan import Reason, Status
from tocsin.policies.multistage.snapshot import Snapshot
from tocsin.policies.registry import balancing_framework

SLIGHT = world("a: s=A t=B u=C | b: v=D w=E", A=2, B=2, C=2, D=2, E=1)  # loads 12 and 6: cov 1/3
EXTREME = world("a: s=A t=B u=C v=D | b:", A=2, B=2, C=2, D=2)  # loads 16 and 0: cov 1
SHARING = world("a: s=A t=A u=B | b: v=C w=C x=D", A=9, B=1, C=9, D=1.2)  # GSH tears the pairs apart
PAPER = Framework(Ldm(0.15), Gsh(), alpha=0.15, gamma=0.5, window_s=60, cooldown_s=100, rest_s=300)


def decided(framework: Framework, snapshot: Snapshot, now: float = 0.0, memory: Memory | None = None, **measured):
    return framework.decide(snapshot, memory or Memory(), Random(0), now, **measured)


def with_(**changed: object) -> Framework:
    fields = {name: getattr(PAPER, name) for name in PAPER.__dataclass_fields__}
    return Framework(**(fields | changed))


@pytest.mark.parametrize(
    ("framework", "snapshot", "action", "reason"),
    [
        pytest.param(PAPER, SLIGHT, Action.MIGRATE, Reason.REACHED, id="migrates above alpha"),
        pytest.param(PAPER, EXTREME, Action.SHUFFLE, Reason.FILLED, id="shuffles above gamma"),
        pytest.param(with_(alpha=0.4), SLIGHT, Action.NOTHING, Reason.LOW_COV, id="leaves what is balanced enough"),
        pytest.param(with_(beta=9.0), SLIGHT, Action.NOTHING, Reason.LOW_LOAD, id="leaves what is idle enough"),
        pytest.param(with_(theta=8.0), EXTREME, Action.MIGRATE, Reason.REACHED, id="too idle for a shuffle migrates"),
        pytest.param(with_(shuffle=None), EXTREME, Action.MIGRATE, Reason.REACHED, id="without a shuffle migrates"),
        pytest.param(with_(migrate=None), SLIGHT, Action.NOTHING, Reason.LOW_COV, id="without migration leaves it"),
        pytest.param(PAPER, world("a: s=A", A=1), Action.NOTHING, Reason.ONE_BROKER, id="one broker"),
    ],
)
def test_what_is_done_and_why(framework: Framework, snapshot: Snapshot, action: Action, reason: Reason):
    verdict, _ = decided(framework, snapshot)
    assert (verdict.action, verdict.reason) == (action, reason)
    assert (verdict.plan is None) == (action is Action.NOTHING)


def test_a_shuffle_that_would_raise_the_maximum_is_discarded():
    verdict, memory = decided(with_(alpha=0.001, gamma=0.001, migrate=Ldm(0.0001)), SHARING)
    shuffle = verdict.discarded[0]
    assert (shuffle.policy, shuffle.status, shuffle.reason) == ("gsh", Status.DISCARDED, Reason.RAISES_MAXIMUM)
    assert shuffle.after.maximum > shuffle.before.maximum
    assert verdict.plan is None
    assert memory.planned_at is None


def test_what_was_rejected_is_told_also_where_nobody_moves():
    """One subscriber that no broker can take without reaching the level of the first."""
    verdict, _ = decided(with_(shuffle=None), world("a: s=A | b:", A=2))
    assert (verdict.action, verdict.reason, verdict.plan) == (Action.NOTHING, Reason.NO_VALID_MOVE, None)
    assert dict(verdict.rejected) == {Reason.OVER_SOURCE: 1}


def test_after_a_plan_the_system_cools_down():
    first, memory = decided(PAPER, SLIGHT)
    assert first.action is Action.MIGRATE
    verdict, memory = decided(PAPER, SLIGHT, 99.0, memory)
    assert (verdict.action, verdict.reason) == (Action.NOTHING, Reason.COOLING_DOWN)
    verdict, memory = decided(PAPER, SLIGHT, 100.0, memory)
    assert verdict.reason is not Reason.COOLING_DOWN


def test_whoever_rests_stays():
    first, _ = decided(PAPER, SLIGHT)
    moved = first.plan.order
    resting = np.isin(np.arange(SLIGHT.n), moved)
    second, _ = decided(PAPER, replace(SLIGHT, pinned=resting))
    assert len(moved)
    assert not set(moved) & set(second.plan.order)


def test_loads_are_averaged_over_the_window():
    even, skewed = np.array([9.0, 9.0]), np.array([18.0, 0.0])
    calm = with_(alpha=0.6, gamma=9.0)
    verdict, memory = decided(calm, SLIGHT, 0.0, measured=even)
    verdict, memory = decided(calm, SLIGHT, 30.0, memory, measured=skewed)
    assert verdict.cov == pytest.approx(0.5)
    verdict, memory = decided(calm, SLIGHT, 60.0, memory, measured=skewed)
    assert verdict.cov == pytest.approx(1.0)


def test_averages_of_other_brokers_are_forgotten():
    _, memory = decided(with_(alpha=9.0, gamma=9.0), SLIGHT)
    verdict, _ = decided(with_(alpha=9.0, gamma=9.0), world("a: s=A | c: t=B", A=2, B=2), 10.0, memory)
    assert verdict.cov == 0.0


def test_thresholds_may_be_fractions_of_the_usual_mean():
    relative = with_(relative=True, beta=0.5, shuffle=None)
    usual = Memory(usual_mean=20.0)
    assert decided(relative, SLIGHT, memory=usual)[0].reason is Reason.LOW_LOAD
    assert decided(relative, SLIGHT)[0].action is Action.MIGRATE


def test_the_usual_mean_follows_slowly():
    quiet = with_(alpha=9.0, gamma=9.0, trend_s=100.0)
    _, memory = decided(quiet, SLIGHT, 0.0, measured=np.array([10.0, 10.0]))
    _, memory = decided(quiet, SLIGHT, 50.0, memory, measured=np.array([20.0, 20.0]))
    assert memory.usual_mean == pytest.approx(10 + 10 * (1 - np.exp(-0.5)))


def test_options_are_the_thresholds_as_written():
    made = balancing_framework(Ldm(0.1), None, {"alpha": "0.2", "relative": "true", "rest_s": "60"})
    assert made == Framework(Ldm(0.1), None, alpha=0.2, relative=True, rest_s=60.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({"alfa": "0.2"}, "did you mean 'alpha'?", id="a misspelt threshold"),
        pytest.param({"migrate": "ldm"}, "options are alpha", id="what is no option"),
        pytest.param({"alpha": "much"}, "balancing: ", id="a value of another type"),
        pytest.param({"alpha": "0.01"}, "at most alpha", id="thresholds that contradict"),
    ],
)
def test_options_that_are_not_known_are_refused(options: dict, said: str):
    with pytest.raises(ConfigError, match="balancing") as caught:
        balancing_framework(Ldm(0.1), Gsh(), options)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({"alpha": -0.1}, "alpha: expected at least 0", id="a threshold below zero"),
        pytest.param({"alpha": 0.1}, "expected at most alpha", id="migration that would stop before it starts"),
        pytest.param({"trend_s": 0}, "trend_s: expected above 0", id="no time at all"),
        pytest.param({"window_s": 1e300}, "window_s: expected 0 to 86400", id="a window without end"),
        pytest.param({"least_gain": 2.0}, "least_gain: expected 0 to 1", id="a gain that nothing has"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(options: dict, said: str):
    with pytest.raises(ValueError, match=said):
        with_(**options)
