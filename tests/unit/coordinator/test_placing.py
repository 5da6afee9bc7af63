"""Users put at another broker without a move: make before break."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from support.coordinators import Story, detached, told
from tocsin.coordinator import events
from tocsin.coordinator.events import Effect, Tell
from tocsin.protocol.coordination import Adopt, Holding, Instruction, Release


def story(*brokers: str, **rules: object) -> Story:
    """Ann at a, with one subscription, offline; a drains, and her move has not begun."""
    made = Story("a", **{"moves_per_s": 0.001, **rules})
    made.place("abe")
    made.place("ann")
    made.keep("ann", "1", by="a")
    made.obey()
    for name in brokers:
        made.register(name)
    made.tell(events.DrainAsked("a"))
    return made


def put(made: Story) -> tuple[str, Adopt]:
    """Ann asks for a place: where that is, and what is told there."""
    effects = made.tell(events.PlacementAsked("ann"))
    to = made.where("ann")
    assert to is not None
    return to, adoption(effects, to)


def adoption(effects: Iterable[Effect], broker: str) -> Adopt:
    [adopt] = [one for one in told(effects, broker) if isinstance(one, Adopt) and one.user == "ann"]
    return adopt


def released(effects: Iterable[Effect]) -> list[str]:
    """Who is told to let go of Ann."""
    return [one.broker for one in effects if isinstance(one, Tell) and is_release(one.instruction)]


def is_release(instruction: Instruction) -> bool:
    return isinstance(instruction, Release) and instruction.user == "ann"


def test_a_draining_broker_holds_on_until_the_next_has_adopted_who_asked_for_a_place():
    made = story("b")
    effects = made.tell(events.PlacementAsked("ann"))
    adopt = adoption(effects, "b")
    assert (made.where("ann"), released(effects)) == ("b", [])
    [release] = told(made.done("b", adopt), "a")
    assert release == Release(release.number, "ann", made.version("ann"))
    made.done("a", release)
    assert made.state.world.users["ann"].stale == []


def test_a_broker_holds_on_until_the_one_that_let_its_user_in_unasked_has_adopted_it():
    made = story("b")
    effects = made.report("b", admitted=["ann"])
    assert (made.where("ann"), released(effects)) == ("b", [])
    assert released(made.done("b", adoption(effects, "b"))) == ["a"]


def test_one_that_fails_to_adopt_is_told_again_and_waited_for():
    made = story("b")
    _, adopt = put(made)
    made.done("b", adopt, ok=False, reason="the cluster is away")
    effects = made.pass_time(3, "a", "b")
    assert released(effects) == []
    assert released(made.done("b", adoption(effects, "b"))) == ["a"]


def test_a_subscription_made_meanwhile_is_waited_for():
    made = story("b")
    _, first = put(made)
    second = adoption(made.keep("ann", "2"), "b")
    assert released(made.done("b", first)) == []
    assert released(made.done("b", second)) == ["a"]


def test_whoever_held_the_user_lets_go_when_the_last_of_several_places_has_adopted_it():
    made = story("b", "c")
    first, before = put(made)
    second = "c" if first == "b" else "b"
    effects = made.report(second, admitted=["ann"])
    assert made.where("ann") == second
    assert released(effects + made.done(first, before)) == [], "that one holds it under a version that is over"
    assert sorted(released(made.done(second, adoption(effects, second)))) == sorted(["a", first])


def test_who_is_let_in_where_it_was_before_is_not_let_go_there():
    made = story("b")
    _, adopt = put(made)
    effects = made.report("a", admitted=["ann"])
    assert (made.where("ann"), made.state.world.users["ann"].stale) == ("a", ["b"])
    assert released(effects + made.done("b", adopt)) == []
    assert released(made.done("a", adoption(effects, "a"))) == ["b"]


def test_where_the_new_broker_dies_before_it_has_adopted_the_old_one_holds_on():
    made = story("b", "c")
    first, _ = put(made)
    effects = made.tell(events.BrokerRemoved(first))
    second = made.where("ann")
    assert second in {"b", "c"} - {first}
    assert released(effects) == []
    assert released(made.done(second, adoption(effects, second))) == ["a"], "a dead one need not be told"


def test_what_a_gone_broker_left_stays_until_those_who_left_it_before_are_held():
    made = story("b")
    made.obey()
    _, adopt = put(made)
    effects = made.tell(events.BrokerRemoved("a"))
    assert detached(effects + made.pass_time(2, "b")) == []
    made.done("b", adopt)
    assert detached(made.pass_time(1, "b")) == ["a"]


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_after_a_restart_the_old_broker_holds_on_until_the_new_one_has_adopted(order: str):
    made = story("b")
    put(made)
    made.begin()
    briefing = {name: made.register(name) for name in order}
    assert not any(is_release(one) for one in briefing["a"])
    [adopt] = [one for one in briefing["b"] if isinstance(one, Adopt) and one.user == "ann"]
    assert released(made.done("b", adopt)) == ["a"]


def test_after_a_restart_an_old_broker_that_comes_late_hears_that_it_is_to_let_go():
    made = story("b")
    put(made)
    made.begin()
    [adopt] = [one for one in made.register("b") if isinstance(one, Adopt) and one.user == "ann"]
    assert released(made.done("b", adopt)) == []
    assert any(is_release(one) for one in made.register("a"))


def test_a_broker_that_was_only_cut_off_holds_on_until_another_has_adopted():
    made = Story("a", "b")
    assert made.place("ann") == "a"
    adopt = adoption(made.pass_time(11, "b"), "b")
    assert not any(is_release(one) for one in made.register("a"))
    assert released(made.done("b", adopt)) == ["a"]


def test_a_session_that_is_left_at_the_old_broker_is_served_there_until_it_can_go():
    made = story("b")
    _, adopt = put(made)
    assert released(made.online("a", "ann")) == []
    assert made.where("ann") == "b"
    assert released(made.done("b", adopt)) == ["a"]
    assert released(made.report("a", holdings=[Holding("ann", ["s"])])) == [], "it was told already"


@pytest.mark.parametrize(
    "goes",
    [
        pytest.param(put, id="placed anew"),
        pytest.param(lambda made: made.report("b", admitted=["ann"]), id="admitted elsewhere"),
    ],
)
def test_a_removed_user_is_let_go_by_all_who_may_hold_it(goes: Callable[[Story], object]):
    made = story("b")
    goes(made)
    assert sorted(released(made.tell(events.UserRemoved("ann")))) == ["a", "b"]
    made.obey()
    assert "ann" not in made.state.world.users


def test_a_release_that_failed_waits_for_an_adoption_that_failed_too():
    made = story("b")
    to, adopt = put(made)
    [release] = told(made.done(to, adopt), "a")
    again = adoption(made.keep("ann", "2"), to)
    made.done("a", release, ok=False, reason="busy")
    made.done(to, again, ok=False, reason="the cluster is away")
    effects = made.pass_time(3, "a", "b")
    assert released(effects) == []
    assert released(made.done(to, adoption(effects, to))) == ["a"]
