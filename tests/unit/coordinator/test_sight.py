"""What balancing sees of the coordinator's state, and who may be moved."""

from __future__ import annotations

import pytest

from support.coordinators import Story, told
from tocsin.coordinator import events
from tocsin.coordinator.brokers import BrokerState
from tocsin.coordinator.plans import PlanKind
from tocsin.coordinator.sight import Sight, look
from tocsin.policies.multistage.snapshot import Snapshot
from tocsin.protocol.coordination import Holding


def story(**rules: object) -> Story:
    """Ann and eve at a, bob at b, all online."""
    made = Story("a", "b", **rules)
    for user in ("ann", "bob", "eve"):
        made.place(user)
    made.report("a", holdings=[Holding("ann", ["x", "y"]), Holding("eve", ["y"])], rates={"x": 5.0, "y": 1.0})
    made.report("b", holdings=[Holding("bob", ["y"])], rates={"y": 2.0})
    return made


def seen(made: Story) -> Sight:
    return look(made.state.world, made.now)


def homes(snapshot: Snapshot) -> dict[str, str]:
    return {snapshot.subscriber(i): snapshot.broker(j) for i, j in enumerate(snapshot.assigned)}


def pinned(snapshot: Snapshot) -> list[str]:
    return [snapshot.subscriber(i) for i in range(snapshot.n) if snapshot.pinned[i]]


def balance(made: Story, *moves: tuple[str, str, str]) -> list[events.Effect]:
    wanted = [events.WantedMove(user, to, "", source) for user, source, to in moves]
    return made.tell(events.PlanProposed(wanted, "balance", PlanKind.BALANCE))


def done(made: Story, user: str, to: str) -> None:
    """The user's move, which has begun, ends well."""
    assert user in made.state.world.moves.active
    made.obey()
    assert made.where(user) == to


def test_online_users_their_streams_and_the_highest_rates_are_seen():
    made = story()
    made.place("off")
    snapshot = seen(made).snapshot(0)
    assert homes(snapshot) == {"ann": "a", "bob": "b", "eve": "a"}
    assert (snapshot.items.tolist(), snapshot.rates.tolist()) == ([0, 1, 1, 1], [5.0, 2.0])
    assert (pinned(snapshot), seen(made).unheard) == ([], ())


def test_who_follows_nothing_is_not_balanced():
    made = story()
    made.place("pub")
    made.report(made.where("pub"), holdings=[Holding("pub", [])])
    assert homes(seen(made).snapshot(0)) == {"ann": "a", "bob": "b", "eve": "a"}


def test_brokers_without_a_capacity_are_like_the_others():
    made = Story()
    for name, capacity in (("a", 4.0), ("b", None), ("c", 2.0)):
        made.register(name, capacity=capacity)
    assert seen(made).capacities == {"a": 4.0, "b": 3.0, "c": 2.0}
    assert seen(Story("a", "b")).capacities == {"a": 1.0, "b": 1.0}


def test_draining_and_dead_brokers_are_not_balanced():
    made = story(moves_in_flight=1)
    made.register("c")
    made.tell(events.DrainAsked("b"))
    assert (seen(made).capacities.keys(), seen(made).going.keys()) == ({"a", "c"}, {"bob"})
    snapshot = seen(made).snapshot(0)
    assert homes(snapshot)["bob"] in ("a", "c"), "it counts where it goes"
    assert pinned(snapshot) == ["bob"]
    made.tell(events.BrokerRemoved("a"))
    assert seen(made).capacities.keys() == {"c"}


def test_a_broker_that_is_silent_or_has_not_reported_is_waited_for():
    made = story()
    made.register("c")
    assert seen(made).unheard == ("c",)
    made.report("c")
    assert seen(made).unheard == ()
    made.pass_time(3, "a", "c")
    assert made.state.world.brokers["b"].state is BrokerState.SILENT
    assert seen(made).unheard == ("b",)


def test_who_is_on_a_move_counts_at_its_destination_and_stays():
    made = story()
    balance(made, ("ann", "a", "b"))
    assert homes(seen(made).snapshot(0)) == {"ann": "b", "bob": "b", "eve": "a"}
    assert pinned(seen(made).snapshot(0)) == ["ann"]
    made.online("b", "ann")
    assert homes(seen(made).snapshot(0))["ann"] == "b", "online at both, seen once"


def test_what_balancing_planned_may_give_way_and_what_somebody_wanted_may_not():
    made = story(moves_in_flight=1)
    balance(made, ("ann", "a", "b"), ("eve", "a", "b"))
    made.plan("bob", "a")
    snapshot = seen(made).snapshot(0)
    assert homes(snapshot) == {"ann": "b", "bob": "a", "eve": "a"}
    assert pinned(snapshot) == ["ann", "bob"]
    heading = seen(made).heading(snapshot)
    assert {snapshot.subscriber(i): snapshot.broker(j) for i, j in enumerate(heading)}["eve"] == "b"


def test_a_new_plan_replaces_what_has_not_begun():
    made = story(moves_in_flight=1)
    balance(made, ("ann", "a", "b"), ("eve", "a", "b"))
    balance(made, ("bob", "b", "a"))
    moves = {move.user: (move.state, move.outcome) for move in made.state.world.moves}
    assert moves["eve"] == ("superseded", "plan p000000002 takes the place of p000000001")
    assert (moves["ann"][0], moves["bob"][0]) == ("adopting", "planned")
    made.begin()
    assert made.state.world.plans["p000000001"].kind is PlanKind.BALANCE, "durable"


def test_a_plan_gives_way_to_what_happened_while_it_was_made():
    made = story()
    made.plan("ann", "b")
    balance(made, ("ann", "a", "b"), ("bob", "a", "b"), ("eve", "a", "b"))
    moves = [(move.user, move.state, move.outcome) for move in made.state.world.moves]
    assert moves[1:] == [
        ("ann", "refused", "the user is on another move"),
        ("bob", "refused", "the user is at b already"),
        ("eve", "adopting", ""),
    ]
    made.register("c")
    balance(made, ("bob", "a", "c"))
    assert made.move == ("refused", "the user is not at a any more")


@pytest.mark.parametrize("is_refused", [False, True])
def test_who_was_moved_or_would_not_move_rests_also_after_a_restart(is_refused: bool):
    made = story()
    [adopt] = told(balance(made, ("ann", "a", "b")), "b")
    made.done("b", adopt, ok=not is_refused)
    if not is_refused:
        done(made, "ann", "b")
    at = "a" if is_refused else "b"
    for _ in range(2):
        made.online(at, "ann")
        assert pinned(seen(made).snapshot(10)) == ["ann"]
        made.begin()
        for name in ("a", "b"):
            made.register(name)
    made.now += 10
    made.online(at, "ann")
    assert pinned(seen(made).snapshot(10)) == []


def test_who_was_replaced_or_drained_does_not_rest():
    made = story(moves_in_flight=1)
    balance(made, ("ann", "a", "b"), ("eve", "a", "b"))
    balance(made)
    assert "eve" not in made.state.world.tried_at
    done(made, "ann", "b")
    made.tell(events.DrainAsked("b"))
    done(made, "bob" if "bob" in made.state.world.moves.active else "ann", "a")
    assert made.state.world.tried_at == {"ann": made.now}, "by the move before the drain"
