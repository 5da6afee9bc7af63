"""A coordinator that balances by itself: real service and policies, simulated brokers, a clock that is told to move."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from support.coordinators import MemoryStore, NoCluster
from support.sim_brokers import SimBroker
from tocsin.clock import VirtualClock
from tocsin.coordinator import events
from tocsin.coordinator.balancer import BalancingOptions
from tocsin.coordinator.choices import BalancingChoice, PolicyChoice, check
from tocsin.coordinator.deciding import Decider
from tocsin.coordinator.framing import framework_of
from tocsin.coordinator.plans import PlanKind
from tocsin.coordinator.rules import Rules
from tocsin.coordinator.service import Coordinator, ServiceOptions
from tocsin.coordinator.state import State
from tocsin.errors import ConfigError, Unavailable
from tocsin.policies.registry import placement_policy
from tocsin.protocol.coordination import PlacementRequest, Send

USERS = [f"u{n:02d}" for n in range(60)]
STREAMS = [f"s{n:02d}" for n in range(30)]
CHANCE = Random(7)
RATES = {stream: CHANCE.uniform(100, 1000) for stream in STREAMS}
WANTED: Mapping[str, Sequence[str]] = {user: CHANCE.sample(STREAMS, 4) for user in USERS}
TIMES = {"window_s": "10", "cooldown_s": "20", "rest_s": "120", "beta": "100", "theta": "100"}
CHOICE = BalancingChoice(PolicyChoice("xbal"), PolicyChoice("simsh"), TIMES)
CHECK_S = 5


class Crowd:
    """Brokers a, b and c, everyone online at a, because the others came later."""

    def __init__(self, choice: BalancingChoice = CHOICE, store: MemoryStore | None = None, **rules: Any) -> None:
        self.clock = VirtualClock(1000.0)
        state = State(Rules(**rules), placement_policy("least_loaded"), Random(0))
        self.service = Coordinator(
            state,
            store or MemoryStore(),
            NoCluster(),
            secret=b"a secret of at least thirty-two bytes",
            options=ServiceOptions(balancing=BalancingOptions(choice, CHECK_S, moves_per_plan=50)),
            clock=self.clock,
        )
        self.sims = {name: SimBroker(name, streams=WANTED, rates=RATES) for name in "abc"}

    async def begin(self) -> None:
        await self.start("a")
        for user in USERS:
            await self.service.place(user, PlacementRequest())
        await self.obey("a")
        for user in USERS:
            assert self.sims["a"].login(user)
        for name in "bc":
            await self.start(name)
        await self.step()

    async def start(self, name: str) -> None:
        self.sims[name].start()
        await self.service.register(name, self.sims[name].registration().registration)

    async def live(self, seconds: int) -> list[tuple[str, str]]:
        """Let time pass; what was decided meanwhile."""
        found = []
        for second in range(1, seconds + 1):
            await self.step()
            if second % CHECK_S == 0:
                decision = await self.service.balancer.check()
                found.append((decision.action, decision.reason))
        return found

    async def step(self) -> None:
        self.clock.advance(1.0)
        for name in [name for name, sim in self.sims.items() if sim.is_running]:
            await self.obey(name)
        await self.service.tick(1.0)
        self.service.state.check_invariants()

    async def obey(self, name: str) -> None:
        sim = self.sims[name]
        for instruction in await self.service.instructions(name, sim.incarnation, sim.after, 0):
            sim.obey(instruction, lambda user: ())
            if isinstance(instruction, Send) and instruction.user in sim.sends:
                sim.follow(instruction.user, self.sims[instruction.to.name])
        report = sim.report().report
        assert (await self.service.report(name, report)).is_known
        sim.answered(report)

    def kill(self, name: str) -> None:
        self.sims[name].kill()

    def log_in_again(self) -> None:
        """Who lost its broker goes where it was placed."""
        for user in USERS:
            self.sims[self.service.state.world.users[user].broker or ""].login(user)

    def plans(self) -> list[str]:
        return [plan.id for plan in self.service.state.world.plans if plan.kind is PlanKind.BALANCE]

    def times_moved(self) -> Counter[str]:
        return Counter(move.user for move in self.service.state.world.moves if move.state == "done")

    def sizes(self) -> list[int]:
        return [len(sim.online) for sim in self.sims.values()]

    async def cov(self) -> float:
        return (await self.service.balancer.compare([PolicyChoice("xbal")])).now.cov


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def test_a_skewed_system_is_balanced_and_then_left_alone():
    async def story() -> None:
        crowd = Crowd()
        await crowd.begin()
        assert (crowd.sizes(), await crowd.cov() > 1.4) == ([60, 0, 0], True)
        decided = await crowd.live(60)
        assert decided[0] == ("nothing", "loads are not known for long enough")
        assert ("shuffle", "all assigned") in decided
        assert await crowd.cov() < 0.05
        before = crowd.plans()
        decided = await crowd.live(300)
        assert set(decided) == {("nothing", "cov within its threshold")}
        assert crowd.plans() == before
        assert max(crowd.times_moved().values()) == 1, "nobody went to and fro"

    run(story())


def test_loads_that_jump_about_send_nobody_to_and_fro():
    async def story() -> None:
        crowd, chance = Crowd(), Random(3)
        await crowd.begin()
        for _ in range(50):
            noise = {stream: rate * chance.choice([0.1, 1, 20]) for stream, rate in RATES.items()}
            for sim in crowd.sims.values():
                sim.rates = noise
            await crowd.live(CHECK_S)
        world = crowd.service.state.world
        began = [world.plans[plan].created_at for plan in crowd.plans()]
        assert len(began) > 1
        assert all(later - sooner >= 20 for sooner, later in pairwise(began)), "the cool-down of plans"
        ended: dict[str, list[float]] = {}
        for move in world.moves:
            if move.state == "done":
                ended.setdefault(move.user, []).append(move.ended_at or 0.0)
        assert any(len(times) > 1 for times in ended.values())
        assert all(later - sooner >= 120 for times in ended.values() for sooner, later in pairwise(times))

    run(story())


def test_a_plan_that_takes_longer_than_the_cool_down_is_not_replaced_while_it_leads_to_balance():
    async def story() -> None:
        crowd = Crowd(moves_per_s=1.0)
        await crowd.begin()
        decided = await crowd.live(90)
        assert [action for action, _ in decided].count("shuffle") == 1
        assert (len(crowd.plans()), await crowd.cov() < 0.05) == (1, True)
        assert "superseded" not in crowd.service.state.world.moves.ended

    run(story())


def test_a_plan_is_replaced_when_its_destination_is_not_there_any_more():
    async def story() -> None:
        crowd = Crowd(moves_per_s=0.5)
        await crowd.begin()
        await crowd.live(20)
        assert len(crowd.plans()) == 1
        crowd.kill("c")
        await crowd.live(15)
        crowd.log_in_again()
        await crowd.live(60)
        assert len(crowd.plans()) > 1
        await crowd.live(60)
        assert (await crowd.cov() < 0.15, crowd.sizes()[2]) == (True, 0)

    run(story())


def test_a_broker_that_returns_is_refilled_with_few_moves():
    async def story() -> None:
        crowd = Crowd()
        await crowd.begin()
        await crowd.live(180)
        crowd.kill("b")
        await crowd.live(15)
        crowd.log_in_again()
        await crowd.live(30)
        moved = crowd.times_moved()
        await crowd.start("b")
        await crowd.live(60)
        assert await crowd.cov() < 0.15
        assert crowd.sizes()[1] >= 10
        again = crowd.times_moved() - moved
        assert sum(again.values()) <= 30, "a migration, not a shuffle"

    run(story())


def test_nothing_is_done_about_little_load_and_off_means_off():
    async def story() -> None:
        quiet = Crowd(BalancingChoice(PolicyChoice("xbal"), None, TIMES | {"beta": "1e9"}))
        await quiet.begin()
        assert (await quiet.live(30))[-1] == ("nothing", "mean load within its threshold")
        assert quiet.service.balancer.latest(1)[0].mean > 1000
        text = quiet.service.metrics.render().decode()
        label = 'action="nothing",reason="mean load within its threshold"'
        assert f"tocsin_coordinator_decisions_total{{{label}}} " in text
        assert Crowd(BalancingChoice()).service.balancer.choice.is_off

    run(story())


def test_a_broker_that_has_not_reported_is_waited_for():
    async def story() -> None:
        crowd = Crowd()
        await crowd.begin()
        await crowd.live(5)
        crowd.kill("b")
        assert (await crowd.live(5))[-1] == ("nothing", "a broker has not reported")

    run(story())


def test_nobody_is_sent_to_a_broker_that_only_seems_empty():
    async def story() -> None:
        store = MemoryStore()
        crowd = Crowd(store=store)
        await crowd.begin()
        again = Crowd(store=store)  # the coordinator starts again, and has heard of one broker alone
        again.sims = crowd.sims
        await again.service.register("a", again.sims["a"].registration().registration)
        await again.service.report("a", again.sims["a"].report().report)
        for ask in (again.service.balancer.rebalance(), again.service.balancer.compare([PolicyChoice("gsh")])):
            with pytest.raises(Unavailable, match="a broker has not reported: b, c"):
                await ask
        assert again.plans() == []

    run(story())


def test_somebody_may_ask_for_a_plan_which_begins_a_cool_down():
    async def story() -> None:
        crowd = Crowd()
        await crowd.begin()
        found = await crowd.service.balancer.rebalance(PolicyChoice("ldm"))
        assert found.plan == crowd.plans()[-1]
        [decision] = crowd.service.balancer.latest(9)
        assert (decision.is_asked, decision.plan, decision.policy, decision.action) == (
            *(True, found.plan, "ldm", "migrate"),
        )
        assert decision.moves == found.trials[0].moves == len(crowd.service.state.world.moves)
        assert ("nothing", "cooling down") in await crowd.live(15)

    run(story())


def test_a_shuffle_that_is_too_long_is_not_begun_and_a_migration_is_cut():
    async def story() -> None:
        crowd = Crowd()
        await crowd.begin()
        service = crowd.service
        service.balancer._decider._limit = 5
        policies = [PolicyChoice("gsh"), PolicyChoice("xbal")]
        compared = await service.balancer.compare(policies)
        assert all(one.moves > 5 for one in compared.trials)  # nothing is done, so nothing is cut
        done = [(await service.balancer.rebalance(policy)).trials[0] for policy in policies]
        assert [(one.status, one.reason, one.moves) for one in done] == [
            ("nothing", "limit of moves", 0),
            ("stalled", "limit of moves", 5),
        ]

    run(story())


def test_policies_chosen_while_running_hold_after_a_restart_until_the_configuration_changes():
    async def story() -> None:
        store, ldm = MemoryStore(), BalancingChoice(PolicyChoice("ldm"))
        crowd = Crowd(store=store)
        await crowd.service.handle(events.BalancingChosen(ldm, crowd.service.balancer.configured))
        assert crowd.service.balancer.choice == ldm
        assert Crowd(store=store).service.balancer.choice == ldm
        other = BalancingChoice(PolicyChoice("sdm"))
        assert Crowd(other, store).service.balancer.choice == other

    run(story())


def test_deciding_does_not_hold_up_the_event_loop(monkeypatch: pytest.MonkeyPatch):
    async def story() -> None:
        crowd = Crowd()
        await crowd.begin()
        entered, may_go, decide = threading.Event(), threading.Event(), Decider.decide

        def slow(*arguments: Any) -> Any:
            entered.set()
            assert may_go.wait(30)
            return decide(*arguments)

        monkeypatch.setattr(Decider, "decide", slow)
        check_under_way = asyncio.create_task(crowd.service.balancer.check())
        await asyncio.to_thread(entered.wait, 30)
        assert (await crowd.service.place("new", PlacementRequest())).broker
        may_go.set()
        assert (await check_under_way).action == "nothing"

    run(story())


def test_without_brokers_nothing_can_be_compared():
    async def story() -> None:
        crowd = Crowd()
        assert (await crowd.service.balancer.check()).reason == "no broker lives"
        with pytest.raises(Unavailable, match="no broker lives"):
            await crowd.service.balancer.compare([PolicyChoice("xbal")])

    run(story())


@pytest.mark.parametrize(("relative", "beta"), [("false", 10_000.0), ("true", 0.0), ("1", 0.0)])
def test_bytes_a_second_are_no_fraction_of_the_usual_load(relative: str, beta: float):
    framework = framework_of(BalancingChoice(PolicyChoice("ldm"), None, {"relative": relative}), 10)
    assert (framework.relative, framework.beta, framework.theta) == (relative != "false", beta, beta)


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        (BalancingChoice(PolicyChoice("xball")), "did you mean 'xbal'"),
        (BalancingChoice(shuffle=PolicyChoice("gsh", {"warm": "true"})), "options are none"),
        (BalancingChoice(PolicyChoice("ldm", {"stop_cov": "0.5"})), "expected at most alpha"),
        (BalancingChoice(PolicyChoice("ldm"), options={"gama": "1"}), "did you mean 'gamma'"),
    ],
)
def test_a_choice_that_cannot_be_says_why(choice: BalancingChoice, problem: str):
    with pytest.raises(ConfigError, match=problem):
        check(choice)
