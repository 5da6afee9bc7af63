from __future__ import annotations

import numpy as np
import pytest

from tocsin.errors import BadArgument
from tocsin.lab.debs19.simulation import KB
from tocsin.live import run
from tocsin.live.experiment import Experiment
from tocsin.live.notes import Notes, Sample
from tocsin.policies.multistage.framework import Action

EXPERIMENT = Experiment(speed=30.0)


def _sample(t: float, at: float, progress: float, load: float) -> Sample:
    told = {"online": 4, "load": {"model_in_per_s": load, "model_out_per_s": 2 * load}}
    return Sample.of(t, at, progress, [told, told])


def _move(plan: str, state: str, ended_at: float | None) -> dict[str, object]:
    return {"plan": plan, "state": state, "created_at": 1000.0, "ended_at": ended_at}


def _notes() -> Notes:
    """A run of a minute that a busy machine stretched to two."""
    samples = [_sample(t, 1000.0 + 2 * t, 0.5, 1500 * KB) for t in (0.0, 20.0, 60.0)]
    figures = {"cov": 0.5, "maximum": 30.0}
    decided = {"at": 1060.0, "reason": "balance reached", "moves": 2, "before": figures, "after": figures}
    decisions = [decided | {"action": "migrate", "plan": "p1", "discarded": []}]
    decisions += [{"at": 1050.0, "action": "nothing", "reason": "cooling down", "plan": None}]
    moves = [_move("p1", "done", 1080.0), _move("p1", "superseded", 1081.0), _move("p1", "planned", None)]
    users = [{"user": "a", "broker": "b1", "streams": ["s", "t"]}, {"user": "b", "broker": "b2", "streams": ["s"]}]
    return Notes("NR LDM", ["b1", "b2"], 1000.0, samples, decisions, moves, {"users": users}, [], 7)


def test_loads_are_told_by_second_of_the_city_however_slow_the_machine_was() -> None:
    trace = _notes().trace(EXPERIMENT)
    assert trace.received.shape == (1800, 2)
    assert np.allclose(trace.received, 100 * KB)
    assert np.allclose(trace.loads, 300 * KB)
    assert (trace.users == 4).all()


def test_what_an_earlier_run_left_in_the_averages_is_not_of_this_one() -> None:
    told = {"online": 0, "load": {"model_in_per_s": 40.0, "model_out_per_s": 90.0}}
    sample = Sample.of(1.0, 1.0, 0.5, [told, told], [(30.0, 90.0), (50.0, 80.0)])
    assert (sample.received, sample.sent) == ([20.0, 0.0], [0.0, 20.0])


def test_only_moves_that_were_done_are_migrations_at_their_time_in_the_city() -> None:
    trace = _notes().trace(EXPERIMENT)
    assert np.flatnonzero(trace.moved).tolist() == [1200]
    assert (trace.migrations, trace.made) == (1, {Action.MIGRATE: 1})
    assert [(plan.at_s, plan.moves) for plan in trace.decided] == [(900, 2)]


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf"), 1e6])
def test_a_speed_that_cannot_be_is_refused(speed: float) -> None:
    with pytest.raises(BadArgument, match="speed of the experiment: expected above 0, at most 1,000"):
        Experiment(speed=speed)


def test_identical_subscriptions_share_a_stream() -> None:
    trace = _notes().trace(EXPERIMENT)
    assert (trace.frontend, trace.backend, trace.upstream) == (3, 2, 3)


def test_the_coordinator_is_told_algorithm_1_and_nothing_that_we_add() -> None:
    told = EXPERIMENT.policies("NR", "SDM + GSH")
    assert told["placement"] == {"name": "nearest"}
    options = EXPERIMENT.thresholds()
    assert options["beta"] == options["theta"] == f"{EXPERIMENT.floor * 30:g}"
    assert {options[name] for name in ("window_s", "cooldown_s", "rest_s", "least_gain")} == {"0"}
    migrate = {"name": "sdm", "options": {"stop_cov": "0.05"}}
    assert told["balancing"] == {"options": options, "migrate": migrate, "shuffle": {"name": "gsh"}}
    assert EXPERIMENT.policies("RR", "No LB")["balancing"] == {"options": options}


def test_a_figure_needs_the_runs_that_it_shows_and_all_of_them_every_combination() -> None:
    assert run.labels_of([9]) == ("NR LDM + GSH", "NR SDM + GSH")
    schemes = ("No LB", "LDM", "SDM", "LDM + GSH", "SDM + GSH")
    assert set(run.labels_of([])) == {f"{placed} {name}" for placed in ("RND", "RR", "NR") for name in schemes}
    with pytest.raises(BadArgument, match="figure"):
        run.labels_of([13])
