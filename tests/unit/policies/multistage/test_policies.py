"""The balancing policies on worlds small enough to think through; E1 to E4 are those on which Algorithm 1 as printed
loops or stops too early."""

from __future__ import annotations

from random import Random

import pytest

from balancing_world import world
from tocsin.errors import ConfigError
from tocsin.policies.multistage.bounds import lower_bound, spectral_bound
from tocsin.policies.multistage.ldm import Ldm
from tocsin.policies.multistage.plan import Plan, Reason, Status
from tocsin.policies.multistage.sdm import Sdm
from tocsin.policies.multistage.simsh import Simsh
from tocsin.policies.multistage.snapshot import Snapshot
from tocsin.policies.multistage.xbal import Xbal
from tocsin.policies.registry import BALANCING, balancing_policy

E1 = world("a: x=A | b:", A=4)
E2 = world("a: x=A y=B | b: z=C", A=2, B=2, C=2)
E3 = world("a: x=A y= | b: z=", A=4)
E4 = world("a: s=AB t=C | b: p=AB r=D | c: v=A w=E", A=5, B=5, C=5.25, D=0.25, E=0.5)
SKEWED = world("a: s=A t=B u=C v=D | b: w=E | c:", A=4, B=3, C=2, D=1, E=1)


def planned(name: str, snapshot: Snapshot, **options: str) -> Plan:
    return balancing_policy(name, options).plan(snapshot, Random(0), 0.0)


def moves(plan: Plan) -> list[tuple[str, str, str]]:
    return [(move.subscriber, move.source, move.target) for move in plan.moves()]


@pytest.mark.parametrize("name", ["ldm", "sdm", "xbal", "gmove"])
@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(E1, id="E1: one subscriber that cannot be divided"),
        pytest.param(E2, id="E2: mirror images"),
        pytest.param(E3, id="E3: subscribers without load"),
    ],
)
def test_without_a_move_that_helps_the_plan_is_stalled(name: str, snapshot: Snapshot):
    plan = planned(name, snapshot)
    assert (plan.status, plan.reason, len(plan)) == (Status.STALLED, Reason.NO_VALID_MOVE, 0)


def test_e4_sdm_takes_the_most_similar_of_the_valid_targets():
    plan = Sdm(0.15).plan(E4, Random(0), 0.0)
    assert ("s", "a", "c") in moves(plan)
    assert plan.after.maximum == 21.0 < plan.before.maximum == 30.5


def test_ldm_sends_the_heaviest_that_fits_to_the_least_loaded():
    plan = Ldm(0.2).plan(SKEWED, Random(0), 0.0)
    first = next(plan.moves())
    assert (first.subscriber, first.source, first.target, first.reason) == ("s", "a", "c", Reason.TO_LIGHTEST)
    assert (first.source_before, first.target_before) == (20.0, 0.0)
    assert (first.source_after, first.target_after) == (12.0, 8.0)


@pytest.mark.parametrize("name", ["ldm", "sdm"])
def test_when_the_heaviest_broker_can_give_nobody_the_next_one_gives(name: str):
    """Section 5.2 has every step lower the maximum, or how many have it; this one lowers what comes after it."""
    plan = planned(name, world("a: x=A | b: p=B q=C r=D | c:", A=10, B=3, C=3, D=3), stop_cov="0")
    assert (moves(plan), plan.status) == ([("p", "b", "c")], Status.STALLED)
    assert plan.after.maximum == plan.before.maximum == 20.0


def test_ldm_goes_to_the_least_loaded_where_sdm_goes_to_the_similar():
    snapshot = world("a: s=A t=BCD | b: p=A | c: r=E", A=2, B=2, C=2, D=2, E=1)
    assert ("s", "a", "b") not in moves(Ldm(0.3).plan(snapshot, Random(0), 0.0))
    sharing = world("a: s=A t=A u=B v=B | b: p=A | c: r=B x=C", A=4, B=4, C=0.5)
    assert moves(Sdm(0.01).plan(sharing, Random(0), 0.0))[0] == ("s", "a", "b")


def test_sdm_accepts_only_below_its_threshold():
    plan = Sdm(0.01, accept_below=0.01).plan(E4, Random(0), 0.0)
    assert (plan.status, len(plan)) == (Status.STALLED, 0)
    assert plan.rejected[Reason.NONE_ACCEPTS] > 0


def test_gsh_fills_heaviest_first_and_moves_only_who_changes():
    plan = planned("gsh", world("a: s=A t=B u=C | b:", A=3, B=2, C=1))
    assert moves(plan) == [("t", "a", "b"), ("u", "a", "b")]
    assert (plan.status, plan.reason) == (Status.DONE, Reason.FILLED)


def test_a_shuffle_that_changes_nothing_says_so():
    plan = planned("gsh", world("a: s=A | b: t=B", A=2, B=1))
    assert (plan.status, plan.reason) == (Status.NOTHING, Reason.UNCHANGED)


def test_xbal_swaps_where_no_single_move_helps():
    snapshot = world("a: s=A t=B | b: u=C v=D", A=3, B=3, C=2, D=2)
    plan = Xbal(0.0).plan(snapshot, Random(0), 0.0)
    assert {move.reason for move in plan.moves()} == {Reason.SWAPPED}
    assert plan.after.maximum == 10.0 == plan.after.bound


def test_simsh_puts_those_who_want_the_same_together():
    snapshot = world("a: s=A t=B u=A | b: v=B w=A x=B", A=4, B=4)
    plan = Simsh().plan(snapshot, Random(0), 0.0)
    assert (plan.after.total, plan.after.ratio) == (32.0, 1.0)
    assert len(plan) == 2, "groups keep the broker where most of their members are"


@pytest.mark.parametrize("name", BALANCING)
def test_the_pinned_and_the_loadless_stay(name: str):
    snapshot = world("a: s=A t=B u=C v=D z= | b:", pinned={"s", "u"}, A=4, B=3, C=2, D=1)
    plan = planned(name, snapshot)
    assert 0 < len(plan) <= 2
    assert {who for who, _, _ in moves(plan)} <= {"t", "v"}


@pytest.mark.parametrize("name", ["gsh", "simsh"])
def test_a_shuffle_tells_whom_it_leaves_and_why(name: str):
    snapshot = world("a: s=A t=B u=C v=D z= | b:", pinned={"s", "u"}, A=4, B=3, C=2, D=1)
    plan = planned(name, snapshot)
    stay = {Reason.AT_HOME: 2 - len(plan)} if len(plan) < 2 else {}
    assert plan.rejected == {Reason.PINNED: 2, Reason.NO_LOAD: 1, **stay}


@pytest.mark.parametrize("name", BALANCING)
@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        pytest.param(world("a: s=A t=A", A=1), Reason.ONE_BROKER, id="one broker"),
        pytest.param(world("a: s=A | b:", A=0), Reason.IDLE, id="nothing flows"),
        pytest.param(world("a: | b:"), Reason.IDLE, id="nobody is there"),
    ],
)
def test_where_there_is_nothing_to_balance_the_plan_says_so(name: str, snapshot: Snapshot, reason: Reason):
    plan = planned(name, snapshot)
    assert (plan.status, plan.reason, len(plan)) == (Status.NOTHING, reason, 0)


@pytest.mark.parametrize("name", ["ldm", "sdm", "xbal", "gmove"])
def test_a_balanced_world_is_left_alone(name: str):
    plan = planned(name, world("a: s=A | b: t=B", A=2, B=2))
    assert (plan.status, plan.reason, len(plan)) == (Status.NOTHING, Reason.BALANCED, 0)


@pytest.mark.parametrize("name", BALANCING)
def test_a_broker_twice_as_large_carries_twice_as_much(name: str):
    people = " ".join(f"{letter}={letter}" for letter in "ABCDEFGHI")
    snapshot = world(f"a: {people} | b:", {"b": 2.0}, **dict.fromkeys("ABCDEFGHI", 1.0))
    plan = planned(name, snapshot)
    assert plan.assigned.tolist().count(1) == 6


def test_bounds_on_the_best_maximum():
    assert lower_bound(world("a: s=A t=A | b:", A=4)) == 8.0, "whoever has one of them fetches and sends all of it"
    assert lower_bound(world("a: s=A t=B u=C | b:", A=2, B=2, C=2)) == 6.0
    snapshot = world("a: s=AB t=BC u=CA v=AB | b:", A=2, B=2, C=2)
    assert 0 < spectral_bound(snapshot) <= planned("simsh", snapshot, restarts="20").after.maximum


def test_several_numbers_are_written_with_commas():
    assert balancing_policy("simsh", {"passes": "5, 10.5"}) == Simsh(passes=(5.0, 10.5))
    assert balancing_policy("simsh", {"passes": [5, 10.5]}) == Simsh(passes=(5.0, 10.5))


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        pytest.param("lmd", {}, "did you mean 'ldm'?", id="a misspelt name"),
        pytest.param("sdm", {"acept_below": "1"}, "did you mean 'accept_below'?", id="a misspelt option"),
        pytest.param("gsh", {"k": "2"}, "options are none", id="an option of a policy without any"),
        pytest.param("xbal", {"reach": "0"}, "reach: expected 1 to 100000", id="a value that makes no sense"),
        pytest.param("xbal", {"power": "1" + "0" * 20}, "power: expected 2 to 1000", id="more than a kernel counts"),
        pytest.param("simsh", {"restarts": "1000000"}, "restarts: expected 1 to 1000", id="a plan without end"),
        pytest.param("simsh", {"passes": "9," * 200 + "9"}, "passes: expected 1 to 100", id="passes without end"),
        pytest.param("ldm", {"stop_cov": "inf"}, "stop_cov: expected at least 0 and finite", id="no finite number"),
        pytest.param("simsh", {"passes": "5,-1"}, "passes: expected above 0", id="one of several"),
        pytest.param("xbal", {"reach": "far"}, "balancing policy xbal", id="a value of another type"),
    ],
)
def test_what_is_not_known_is_refused(name: str, options: dict, said: str):
    with pytest.raises(ConfigError, match="balancing policy") as caught:
        balancing_policy(name, options)
    assert said in str(caught.value)
