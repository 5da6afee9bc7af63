"""The simulator against theory, before it draws a figure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from tocsin.errors import BadArgument
from tocsin.lab.debs19.prototype import Prototype
from tocsin.lab.debs19.schemes import LiteralLeastLoaded
from tocsin.lab.debs19.simulation import Simulation
from tocsin.lab.engine import Pace, simulate
from tocsin.lab.moving import Moving
from tocsin.lab.trace import Trace
from tocsin.lab.world import Results, World, distinct_interests
from tocsin.policies.multistage.framework import Action, Framework
from tocsin.policies.multistage.gsh import Gsh
from tocsin.policies.multistage.ldm import Ldm
from tocsin.policies.multistage.load import LoadModel
from tocsin.policies.multistage.snapshot import Snapshot
from tocsin.policies.placement.least_loaded import LeastLoaded
from tocsin.policies.placement.nearest import Nearest
from tocsin.policies.placement.round_robin import RoundRobin

SMALL = Simulation(brokers=3, subscribers=300, per_channel=10, shares=(6, 3, 1))
STEADY = replace(SMALL, risen=1.0)


@dataclass(frozen=True)
class Every:
    """``size`` bytes of subscription 0 when ``period`` seconds have passed, until ``until``."""

    period: int
    size: float
    until: int = 10**9

    def at(self, second: int) -> np.ndarray:
        return np.array([self.size if (second + 1) % self.period == 0 and second < self.until else 0.0])


def world_of(since: list[int], results: Results, duration_s: int = 100, brokers: int = 1) -> World:
    """Each of ``since`` is a subscriber who wants subscription 0 from then on."""
    n = len(since)
    spots = tuple((float(j), 0.0) for j in range(brokers))
    who, what = np.arange(n, dtype=np.int32), np.zeros(n, np.int32)
    homes = np.array([spots[i % brokers] for i in range(n)]).reshape(n, 2)
    return World(duration_s, spots, homes, np.zeros(n, np.int64), who, what, np.array(since, np.int64), 1, results)


def test_delivers_once_a_period_to_whoever_has_subscribed() -> None:
    trace = simulate(world_of([0, 9, 10, 95], Every(10, 7.0)), Nearest(), None)
    assert trace.deliveries == 10 + 10 + 9 + 1
    assert trace.fetches == 10  # shared, and from the first subscription on
    assert trace.sent.sum() == 7.0 * trace.deliveries
    assert trace.received.sum() == 7.0 * trace.fetches


def test_a_broker_without_subscribers_fetches_nothing() -> None:
    trace = simulate(world_of([0, 50], Every(10, 1.0), brokers=2), Nearest(), None)
    assert trace.received.sum(axis=0).tolist() == [10.0, 5.0]


def test_messages_are_as_many_as_expected() -> None:
    """Subscriptions × rate of executions × the time that they stand, and each backend subscription at each broker."""
    world = STEADY.world(3)
    trace = simulate(world, RoundRobin(), None)
    executions_per_s = np.mean([1 / period for period in STEADY.periods_s])
    sent = len(world.who) * executions_per_s * (STEADY.duration_s - STEADY.subscribe_s / 2)
    fetched = STEADY.q * STEADY.brokers * executions_per_s * STEADY.duration_s
    assert trace.messages == pytest.approx(sent + fetched, rel=0.01)


def test_measured_loads_are_those_of_the_load_model() -> None:
    """Once rates and subscriptions stand still, a window of all periods measures equation 5 exactly."""
    world = STEADY.world(4)
    trace = simulate(world, Nearest(), None)
    near = np.argmin(np.linalg.norm(world.homes[:, None] - np.array(world.brokers), axis=2), axis=1)
    rates = world.results.sizes / world.results.periods
    model = LoadModel(Snapshot(*world.rows(STEADY.duration_s), rates, near, np.ones(3)))
    assert trace.loads[-1] == pytest.approx(model.loads)
    assert trace.users[-1].tolist() == np.bincount(near).tolist()


@pytest.mark.parametrize("limit", [40.0, 130.0])
def test_little(limit: float) -> None:
    """L = λW: bytes in the queue in the mean = bytes a second × how long a byte waits, in a run that ends empty."""
    trace = simulate(world_of([0, 0, 0], Every(5, 60.0, until=300), 900), Nearest(), None, Pace(limit_bytes_s=limit))
    came = trace.received + trace.sent
    assert trace.queued[-1].sum() == 0
    present = _time_in_system(came[:, 0], limit)
    assert trace.delay_s(0) * came.sum() == pytest.approx(present)


def _time_in_system(came: np.ndarray, limit: float, steps: int = 2000) -> float:
    """The integral of the queue over time, by stepping through each second."""
    queue, area = 0.0, 0.0
    for burst in came:
        queue += burst
        left = np.maximum(queue - limit * (np.arange(steps) + 0.5) / steps, 0.0)
        area += left.mean()
        queue = max(queue - limit, 0.0)
    return area


@dataclass(frozen=True, eq=False)
class Bursts:
    """So many times half a byte, by second and subscription."""

    counts: np.ndarray

    def at(self, second: int) -> np.ndarray:
        return self.counts[second] / 2


def test_bursts_by_chance_queue_as_theory_has_it() -> None:
    """Pollaczek and Khinchine: Poisson arrivals and a fixed time for each (M/D/1) leave λ² / 2(1 - λ) waiting."""
    rates, brokers, seconds = np.array([0.3, 0.6, 0.8]), 25, 2_000
    counts = np.random.default_rng(1).poisson(np.repeat(rates, brokers), (seconds, len(rates) * brokers))
    alone = world_of([0] * counts.shape[1], Bursts(counts), seconds, brokers=counts.shape[1])
    world = replace(alone, what=np.arange(alone.n, dtype=np.int32), q=alone.n)  # each is the only one of its broker
    trace = simulate(world, Nearest(), None, Pace(limit_bytes_s=1.0))
    waiting = trace.queued.mean(axis=0).reshape(len(rates), brokers).mean(axis=1)
    assert (trace.received + trace.sent).tolist() == counts.tolist()
    assert waiting == pytest.approx(rates**2 / (2 * (1 - rates)), rel=0.05)


def test_same_seed_same_trace() -> None:
    framework = Framework(Ldm(0.05), Gsh(), alpha=0.05, window_s=0)
    one, two = (simulate(SMALL.world(5), Nearest(), framework, seed=5) for _ in range(2))
    assert _bytes(one) == _bytes(two)
    assert one.decided == two.decided
    assert _bytes(one) != _bytes(simulate(SMALL.world(6), Nearest(), framework, seed=6))


def _bytes(trace: Trace) -> tuple[bytes, bytes]:
    return trace.sent.tobytes(), trace.users.tobytes()


def test_a_shuffle_evens_out_and_everybody_stays_somewhere() -> None:
    trace = simulate(SMALL.world(1), Nearest(), Framework(None, Gsh(), theta=3e7, window_s=0))
    assert trace.covs()[-1] < 0.05 < simulate(SMALL.world(1), Nearest(), None).covs()[-1]
    assert (trace.users.sum(axis=1) == 300).all()
    assert trace.migrations == sum(plan.moves for plan in trace.decided)


def test_migrations_keep_to_their_rate() -> None:
    framework = Framework(None, Gsh(), theta=3e7, window_s=0)
    slow = simulate(SMALL.world(1), Nearest(), framework, Pace(moves_per_s=2))
    assert slow.moved.max() == 2
    first = slow.plans()[0]
    during = slow.moved[first.at_s : first.at_s + (first.moves + 1) // 2]
    assert during.sum() == first.moves
    assert all(plan.at_s >= first.at_s + (first.moves + 1) // 2 for plan in slow.plans()[1:])


def test_a_plan_in_flight_is_replaced_and_not_stacked() -> None:
    """People go on subscribing while migrations take their time, so that what was planned becomes wrong."""
    framework = Framework(Ldm(0.05), None, alpha=0.05, window_s=0, cooldown_s=20, rest_s=0)
    slow = simulate(replace(SMALL, subscribers=1000).world(1), Nearest(), framework, Pace(moves_per_s=1))
    plans = slow.plans()
    replaced = [one for one, after in pairwise(plans) if after.at_s - one.at_s < one.moves]
    assert replaced
    assert slow.migrations < sum(plan.moves for plan in plans)
    assert slow.migrations == slow.migrations_by(Action.MIGRATE)
    assert slow.covs()[-1] < 0.1


def test_who_has_moved_rests_and_who_was_only_planned_to_does_not() -> None:
    plan = Gsh().plan(Snapshot([0, 1, 2, 3], [0, 1, 2], [3.0, 2.0, 2.0], [1, 0, 0], np.ones(2)), Random(0), 0.0)
    moving = Moving(3, 1)
    moving.begin(Action.SHUFFLE, plan)
    assert plan.order.tolist() == [0, 1, 2]
    assert moving.due(10.0) == [(0, 0)]
    assert moving.heading(np.array([0, 0, 0], np.int32)).tolist() == [0, 1, 1]
    assert moving.resting(15.0, rest_s=6.0).tolist() == [True, False, False]
    assert not moving.resting(16.0, rest_s=6.0).any()


def test_least_loaded_taken_literally_sends_all_to_one() -> None:
    literal, ours = (simulate(SMALL.world(1), policy, None) for policy in (LiteralLeastLoaded(), LeastLoaded()))
    assert sorted(literal.users[-1].tolist()) == [0, 0, 300]
    assert ours.users[-1].tolist() == [100, 100, 100]


def test_interests_are_distinct_and_as_many_as_asked() -> None:
    sizes = np.array([0, 3, 10])
    who, what = distinct_interests(sizes, 10, np.random.default_rng(1))
    assert np.bincount(who, minlength=3).tolist() == [0, 3, 10]
    assert what[who == 2].tolist() == list(range(10))
    with pytest.raises(BadArgument, match="at most the 10"):
        distinct_interests(np.array([11]), 10, np.random.default_rng(1))


def test_a_rate_that_rises_falls_again() -> None:
    results = SMALL.world(1).results
    factors = np.array([results.factors(second) for second in range(SMALL.duration_s)])
    assert set(np.unique(factors)) == {1.0, 2.0}
    assert (factors[0] == 1).mean() > 0.9
    assert factors[900:].mean() == pytest.approx(1.48, abs=0.06)  # half of them high: 5 of about 10.5 minutes
    risen = np.flatnonzero(np.diff(factors[:, 0]))
    assert 240 <= np.diff(risen)[0] <= 360


def test_the_city_yields_what_is_reported() -> None:
    """Who wants a whole kind gets an eighth of the reports, of 450 bytes in the mean, when a period is over."""
    world = Prototype(subscribers=40, reports=8000, duration_s=600).world(1)
    assert world.results.table.sum(axis=0).max() == pytest.approx(1000 * 450, rel=0.15)
    assert world.results.table[:9].sum() == 0 < world.results.table[9].sum()


def test_who_would_come_after_the_end_does_not_come() -> None:
    trace = simulate(Prototype(subscribers=20, reports=100, duration_s=100, login_s=200).world(1), Nearest(), None)
    assert 0 < trace.users[-1].sum() < 20
    assert trace.frontend == 0


def test_a_world_that_cannot_be_is_refused() -> None:
    good = world_of([0, 0], Every(1, 1.0))
    with pytest.raises(BadArgument, match="after their user's login"):
        replace(good, logins=np.array([0, 5]))
    with pytest.raises(BadArgument, match="each pair once"):
        replace(good, who=np.zeros(2, np.int32))
    with pytest.raises(BadArgument, match="multiple of the check period"):
        Pace(check_s=10, window_s=25)
