"""Laws of balancing, on random worlds: exact loads, nobody lost, no maximum raised, an end, the same plan again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st

from balancing_world import dumb_loads
from tocsin.coordinator.choices import BalancingChoice, PolicyChoice
from tocsin.coordinator.deciding import Decided, Decider
from tocsin.coordinator.sight import Sight
from tocsin.policies.multistage.bounds import lower_bound, spectral_bound
from tocsin.policies.multistage.framework import Framework
from tocsin.policies.multistage.gsh import Gsh
from tocsin.policies.multistage.ldm import Ldm
from tocsin.policies.multistage.load import LoadModel, cov
from tocsin.policies.multistage.memory import Memory
from tocsin.policies.multistage.plan import Reason, Status
from tocsin.policies.multistage.sdm import Sdm
from tocsin.policies.multistage.snapshot import Snapshot
from tocsin.policies.multistage.xbal import Xbal
from tocsin.policies.registry import BALANCING, balancing_policy

INCREMENTAL = ("ldm", "sdm", "xbal", "gmove")


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """Rates repeat and are often whole, so that ties and mirror images come up; some are pinned, some want nothing."""
    n, q, m = draw(st.integers(0, 14)), draw(st.integers(1, 8)), draw(st.integers(1, 4))
    rows = [sorted(draw(st.sets(st.integers(0, q - 1), max_size=4))) for _ in range(n)]
    rates = draw(st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0, 0.1, 7.5]), min_size=q, max_size=q))
    equal = draw(st.booleans())
    return Snapshot(
        np.cumsum([0, *map(len, rows)]),
        np.array([k for row in rows for k in row], np.int32),
        np.array(rates),
        np.array(draw(st.lists(st.integers(0, m - 1), min_size=n, max_size=n)), np.int32),
        np.array([1.0] * m if equal else draw(st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=m, max_size=m))),
        np.array(draw(st.lists(st.sampled_from([False, False, False, True]), min_size=n, max_size=n)), bool),
    )


@given(worlds(), st.data())
@settings(max_examples=60, deadline=None)
def test_the_fast_model_equals_the_dumb_one(snapshot: Snapshot, data: st.DataObject):
    model = LoadModel(snapshot)
    if snapshot.n:
        step = st.tuples(st.integers(0, snapshot.n - 1), st.integers(0, snapshot.m - 1))
        for i, target in data.draw(st.lists(step, max_size=20)):
            before, source = model.loads.copy(), model.move(i, target)
            moved = model.loads.copy()
            assert moved == pytest.approx(dumb_loads(snapshot, model.assigned))
            assert (model.move(i, source), model.loads) == (target, pytest.approx(before))
            model.move(i, target)
    moved = model.loads.copy()
    model.recompute()
    assert moved == pytest.approx(model.loads)


@pytest.mark.parametrize("name", BALANCING)
@given(snapshot=worlds(), seed=st.integers(0, 9), stop=st.sampled_from(["0", "0.01", "0.15"]))
@settings(max_examples=60, deadline=None)
def test_a_plan(name: str, snapshot: Snapshot, seed: int, stop: str):
    policy = balancing_policy(name, {} if name == "gsh" else {"stop_cov": stop})
    plan = policy.plan(snapshot, Random(seed), 0.0)
    again = policy.plan(snapshot, Random(seed), 0.0)
    assert plan.reason is not Reason.MOVE_LIMIT
    assert (plan.order.tolist(), plan.targets.tolist()) == (again.order.tolist(), again.targets.tolist())
    assert len(set(plan.order.tolist())) == len(plan), "nobody moves twice"
    assert all(plan.targets != snapshot.assigned[plan.order]), "everybody who moves goes elsewhere"
    assert not snapshot.pinned[plan.order].any()
    assert all((plan.assigned >= 0) & (plan.assigned < snapshot.m))
    _check_explanation(snapshot, plan)
    if name in INCREMENTAL:
        assert plan.after.maximum <= plan.before.maximum * (1 + 1e-9)


def _check_explanation(snapshot: Snapshot, plan) -> None:
    """Each move starts from the loads that those before it left, and the last leaves what is true from scratch."""
    loads = dict(enumerate(dumb_loads(snapshot, snapshot.assigned)))
    for move in plan.moves():
        source, target = int(move.source), int(move.target)
        assert (move.source_before, move.target_before) == pytest.approx((loads[source], loads[target]))
        loads[source], loads[target] = move.source_after, move.target_after
        levels = np.array(list(loads.values()))
        assert move.maximum == pytest.approx((levels / snapshot.capacities).max(), abs=1e-9)
        assert move.cov == pytest.approx(cov(levels, snapshot.capacities), abs=1e-6)
    assert list(loads.values()) == pytest.approx(dumb_loads(snapshot, plan.assigned), abs=1e-9)
    assert plan.after.total == pytest.approx(sum(loads.values()), abs=1e-9)


@pytest.mark.parametrize("policy", [Ldm, Sdm])
@given(snapshot=worlds(), stop=st.sampled_from([0.0, 0.05, 0.15]))
@settings(max_examples=60, deadline=None)
def test_ldm_and_sdm_are_algorithm_1_as_mended(policy, snapshot: Snapshot, stop: float):
    whole = replace(snapshot, rates=np.round(snapshot.rates), capacities=np.ones(snapshot.m))
    plan = policy(stop).plan(whole, Random(0), 0.0)
    assert plan.assigned.tolist() == dumb_descent(whole, stop, policy is Sdm).tolist()


@given(snapshot=worlds())
@settings(max_examples=60, deadline=None)
def test_gsh_is_section_5_3(snapshot: Snapshot):
    whole = replace(snapshot, rates=np.round(snapshot.rates))
    assert Gsh().plan(whole, Random(0), 0.0).assigned.tolist() == dumb_gsh(whole).tolist()


def dumb_descent(s: Snapshot, stop: float, is_sdm: bool) -> np.ndarray:
    assigned, step = s.assigned, s.assigned
    while step is not None and cov(loads := np.array(dumb_loads(s, step)), s.capacities) > stop and s.m > 1:
        assigned, step = step, next(dumb_steps(s, step, loads, is_sdm), None)
    return assigned if step is None else step


def dumb_steps(s: Snapshot, assigned: np.ndarray, loads: np.ndarray, is_sdm: bool) -> Iterator[np.ndarray]:
    """Assignments after a valid move, the one that is made first."""
    wants = [set(s.items[a:b].tolist()) for a, b in pairwise(s.offsets)]
    sent = [sum(s.rates[k] for k in wanted) for wanted in wants]
    order = sorted(range(s.m), key=lambda j: (loads[j], j))
    for heavy, source in reversed(list(enumerate(order))):
        targets = [j for j in order[:heavy] if loads[j] < loads.mean()] if is_sdm else order[:heavy][:1]
        movable = [i for i in range(s.n) if assigned[i] == source and sent[i] > 0 and not s.pinned[i]]
        for i in sorted(movable if loads[source] > loads.mean() else (), key=lambda i: (-sent[i], i)):
            valid = []
            for j in targets:
                after = np.where(np.arange(s.n) == i, j, assigned)
                there = set().union(*(wants[other] for other in range(s.n) if assigned[other] == j))
                if dumb_loads(s, after)[j] < loads[source]:
                    valid.append((sum(s.rates[k] for k in wants[i] & there), after))
            if valid:
                yield max(valid, key=lambda one: one[0])[1]


def dumb_gsh(s: Snapshot) -> np.ndarray:
    sent = [s.rates[s.items[a:b]].sum() for a, b in pairwise(s.offsets)]
    movable = [i for i in range(s.n) if sent[i] > 0 and not s.pinned[i]]
    assigned = s.assigned.copy()
    assigned[movable] = -1
    for i in sorted(movable, key=lambda i: (-sent[i], i)) if s.m > 1 else ():
        assigned[i] = np.argmin(np.array(dumb_loads(s, assigned)) / s.capacities)
    return s.assigned if s.m == 1 else assigned


@given(worlds(), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_no_bound_is_above_what_a_plan_reaches(snapshot: Snapshot, seed: int):
    reached = balancing_policy("simsh", {"restarts": "3"}).plan(snapshot, Random(seed), 0.0).after.maximum
    assert lower_bound(snapshot) <= reached * (1 + 1e-9)
    assert spectral_bound(snapshot) <= reached * (1 + 1e-9)


@given(st.lists(worlds(), min_size=1, max_size=4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_framework_never_raises_the_maximum(snapshots: list[Snapshot], greedy: bool):
    framework = Framework(
        Xbal(0.01), Gsh() if greedy else balancing_policy("simsh"), 0.01, gamma=0.01, cooldown_s=5.0, window_s=0.0
    )
    memory = Memory()
    for check, snapshot in enumerate(snapshots):
        verdict, memory = framework.decide(snapshot, memory, Random(0), 10.0 * check)
        assert all(plan.status is Status.DISCARDED for plan in verdict.discarded)
        if verdict.plan is not None:
            assert verdict.plan.after.maximum <= verdict.plan.before.maximum


LOUD = ["0", "1", "1", "5", "40"]
REST_S, COOLDOWN_S, CHECK_S = 40.0, 15.0, 5.0


class Live:
    """Users at three brokers, moved as a coordinator would: ``per_check`` of the present plan between two checks."""

    def __init__(self, policies: tuple[str, str], wants: list[frozenset[str]], per_check: int, seed: int) -> None:
        options = {"cooldown_s": COOLDOWN_S, "rest_s": REST_S, "window_s": 0, "alpha": 0.05, "gamma": 0.3, "beta": 0}
        texts = {name: str(value) for name, value in (options | {"theta": 0}).items()}
        chosen = [PolicyChoice(name, {} if name == "gsh" else {"stop_cov": "0.01"}) for name in policies]
        self._choice, self._per_check = BalancingChoice(*chosen, texts), per_check
        self._decider = Decider(1000, Random(seed))
        self._wants = {f"u{i:02d}": sorted(wanted) for i, wanted in enumerate(wants)}
        self.homes = dict.fromkeys(self._wants, "a")
        self._left: list[tuple[str, str]] = []
        self._moved_at: dict[str, float] = {}
        self.plans: list[float] = []

    def check(self, now: float, rates: Mapping[str, float]) -> None:
        decided = self._decider.decide(self._choice, self._sight(now, rates), now)
        if decided.moves:
            self._judge(decided, rates)
            self.plans.append(now)
            self._left = [(move.user, move.to) for move in decided.moves]
        due, self._left = self._left[: self._per_check], self._left[self._per_check :]
        for user, to in due:
            assert now - self._moved_at.get(user, -REST_S) >= REST_S, f"{user} moves twice in its rest"
            self.homes[user], self._moved_at[user] = to, now

    def _judge(self, decided: Decided, rates: Mapping[str, float]) -> None:
        """As the rates were, by equation 5 as it reads: the maximum does not rise, and it or cov falls."""
        after = self.homes | {move.user: move.to for move in decided.moves}
        (top, spread), (new_top, new_spread) = (self._loads(homes, rates) for homes in (self.homes, after))
        assert new_top <= top * (1 + 1e-9)
        assert new_top < top or new_spread < spread

    def _loads(self, homes: Mapping[str, str], rates: Mapping[str, float]) -> tuple[float, float]:
        here = {j: [k for user, at in homes.items() if at == j for k in self._wants[user]] for j in "abc"}
        loads = [sum(rates[k] for k in sent) + sum(rates[k] for k in set(sent)) for sent in here.values()]
        return max(loads), cov(np.array(loads, float), np.ones(3))

    def _sight(self, now: float, rates: Mapping[str, float]) -> Sight:
        held = {j: {user: tuple(self._wants[user]) for user, at in self.homes.items() if at == j} for j in "abc"}
        return Sight(
            *(now, dict.fromkeys("abc", 1.0), held, dict.fromkeys("abc", frozenset()), (rates,)),
            *({}, dict(self._left), dict(self._moved_at), ()),
        )


@given(
    policies=st.tuples(st.sampled_from(INCREMENTAL), st.sampled_from(["gsh", "simsh"])),
    wants=st.lists(st.frozensets(st.sampled_from("ABCDEF"), min_size=1, max_size=3), min_size=4, max_size=12),
    loads=st.lists(st.tuples(*[st.sampled_from(LOUD)] * 6), min_size=20, max_size=40),
    per_check=st.integers(1, 12),
    seed=st.integers(0, 9),
)
@settings(max_examples=60, deadline=None)
def test_loads_that_jump_about_send_nobody_to_and_fro(policies, wants, loads, per_check: int, seed: int):
    live = Live(policies, wants, per_check, seed)
    for check, rates in enumerate(loads):
        live.check(CHECK_S * check, {name: float(rate) for name, rate in zip("ABCDEF", rates, strict=True)})
    assert set(live.homes.values()) <= set("abc")
    assert all(later - sooner >= COOLDOWN_S for sooner, later in pairwise(live.plans))
    target(float(len(live.plans)))
