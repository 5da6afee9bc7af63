"""Brokers that come, fall silent, die, drain and return."""

from __future__ import annotations

from collections import Counter

import pytest

from support.coordinators import Story, detached, told
from tocsin.coordinator import events
from tocsin.coordinator.events import Ask, Effect, Say
from tocsin.errors import AlreadyExists
from tocsin.protocol.coordination import Adopt, BrokerInfo, Outcome, Registration, Release, Topology


def state(made: Story, name: str) -> str:
    return made.state.world.brokers[name].state


def topology(effects: list, broker: str) -> list[str]:
    found = [one for one in told(effects, broker) if isinstance(one, Topology)]
    return [info.name for info in found[-1].brokers]


def test_everyone_hears_of_a_newcomer():
    made = Story("a")
    effects = made.tell(events.BrokerRegistered("b", made_registration("b")))
    assert topology(effects, "a") == topology(effects, "b") == ["a", "b"]
    assert BrokerInfo("b", "http://b:1") in made.state.world.members()


def made_registration(name: str, incarnation: str = "1") -> Registration:
    return Registration(incarnation, f"http://{name}:1")


def test_a_second_broker_of_a_name_is_refused_while_the_first_is_heard():
    made = Story("a", "b")
    made.place("ann")
    second = events.BrokerRegistered("a", Registration("2", "http://elsewhere:1"))
    made.pass_time(5, "a", "b")
    with pytest.raises(AlreadyExists, match="http://a:1"):
        made.tell(second)
    assert made.state.knows("a", "1")
    assert made.where("ann") == "a"
    made.pass_time(3, "b")
    made.tell(second)
    assert BrokerInfo("a", "http://elsewhere:1") in made.state.world.members()


def test_a_coordinator_that_has_not_heard_a_broker_yet_takes_it_from_anywhere():
    made = Story("a")
    made.begin()
    made.tell(events.BrokerRegistered("a", Registration("2", "http://elsewhere:1")))
    assert made.state.world.members() == [BrokerInfo("a", "http://elsewhere:1")]


def test_ten_seconds_of_silence_are_death():
    made = Story("a", "b")
    made.pass_time(3, "a")
    assert (state(made, "a"), state(made, "b")) == ("live", "silent")
    made.pass_time(6.5, "a")
    assert state(made, "b") == "silent"
    effects = made.pass_time(1, "a")
    assert state(made, "b") == "dead"
    assert detached(effects) == ["b"]
    assert topology(effects, "a") == ["a"]


def test_a_silent_broker_is_asked_at_its_address_and_gets_no_newcomers():
    made = Story("a", "b")
    assert Ask("b", "http://b:1") in made.pass_time(3, "a")
    assert {made.place(f"u{n}") for n in range(4)} == {"a"}
    made.report("b")
    assert state(made, "b") == "live"
    assert {made.place(f"v{n}") for n in range(4)} == {"a", "b"}


def test_a_refused_connection_shortens_the_wait():
    made = Story("a", "b")
    made.pass_time(2.5, "a")
    made.tell(events.BrokerRefused("b"))
    assert state(made, "b") == "silent"
    made.pass_time(0.5, "a")
    assert state(made, "b") == "dead"


def test_a_refused_connection_alone_is_no_death():
    made = Story("a", "b")
    made.tell(events.BrokerRefused("b"))
    made.pass_time(20, "a", "b")
    assert state(made, "b") == "live"


def test_a_coordinator_that_was_kept_from_running_takes_nobody_for_dead():
    """Of each late tick only a second counts, and reports that waited come in between."""
    made = Story("a", "b")
    for _ in range(5):
        made.now += 60
        made.tell(events.Ticked(60.0))
        made.report("a")
        made.report("b")
    assert (state(made, "a"), state(made, "b")) == ("live", "live")


def test_a_dead_brokers_users_are_placed_elsewhere_offline_ones_too():
    made = Story("a", "b", "c")
    users = [f"u{n}" for n in range(9)]
    for user in users:
        made.place(user)
        made.keep(user, "1")
    lost = [user for user in users if made.where(user) == "b"]
    made.online("b", lost[0])
    before = {user: made.version(user) for user in users}
    effects = made.pass_time(11, "a", "c")
    adopted = [one for name in "ac" for one in told(effects, name) if isinstance(one, Adopt)]
    assert {one.user for one in adopted} == set(lost)
    assert all([w.id for w in one.subscriptions] == ["1"] for one in adopted)
    assert all(made.version(user) > before[user] for user in lost)
    assert all(made.version(user) == before[user] for user in users if user not in lost)


def test_a_broker_that_was_only_cut_off_lets_go_of_users_placed_elsewhere():
    made = Story("a", "b")
    users = [f"u{n}" for n in range(4)]
    for user in users:
        made.place(user)
    lost = [user for user in users if made.where(user) == "b"]
    adopted = adopted_by(made.pass_time(11, "a"), "a")
    made.report("a", outcomes=[Outcome(one.number, True) for one in adopted])
    assert not made.state.knows("b", "1")
    briefing = made.register("b")
    assert [type(one) for one in briefing] == [Topology, Release, Release]
    assert {one.user for one in briefing[1:]} == set(lost)
    assert {made.where(user) for user in users} == {"a"}, "a returning broker is not refilled by luck"


def test_a_new_life_of_a_broker_holds_nobody():
    made = Story("a", "b")
    made.place("u0")
    user = (made.place("u1") == "b" and "u1") or "u0"
    made.pass_time(11, "a")
    assert [type(one) for one in made.register("b", "2")] == [Topology]
    assert made.state.world.users[user].stale == []


def test_a_broker_that_restarts_at_once_gets_its_users_back():
    made = Story("a", "b")
    made.place("u0")
    made.place("u1")
    briefing = made.register("b", "2")
    assert [type(one) for one in briefing] == [Topology, Adopt]


def test_an_old_life_is_not_listened_to():
    made = Story("a")
    made.register("a", "2")
    assert not made.state.knows("a", "1")
    made.place("ann")
    made.report("a", "1", is_draining=True)
    assert state(made, "a") == "live"


def test_where_nobody_lives_users_wait_for_the_first_that_comes():
    made = Story("a")
    made.place("ann")
    made.pass_time(11)
    assert made.where("ann") == "a"
    made.register("b")
    assert made.where("ann") == "b"


def test_a_broker_that_fails_to_adopt_is_told_again():
    made = Story("a", "b", retry_s=2)
    made.place("ann")
    [adopt] = [one for one in told(made.keep("ann", "1"), "a") if isinstance(one, Adopt)]
    made.done("a", adopt, ok=False, reason="the cluster is away")
    [again] = told(made.pass_time(3, "a", "b"), "a")
    assert (again.user, again.version) == ("ann", adopt.version)
    made.done("a", again)
    assert told(made.pass_time(5, "a", "b"), "a") == []


def test_the_cluster_is_cleaned_after_a_restart_too():
    made = Story("a", "b")
    made.pass_time(11, "a")
    made.begin()
    made.register("a")
    assert detached(made.pass_time(2, "a")) == ["b"]
    made.tell(events.BrokerDetached("b"))
    made.begin()
    made.register("a")
    assert detached(made.pass_time(2, "a")) == []


def adopted_by(effects: list, broker: str) -> list[Adopt]:
    return [one for one in told(effects, broker) if isinstance(one, Adopt)]


def test_what_a_dead_broker_left_is_removed_only_when_another_holds_it():
    made = Story("a", "b")
    while made.place("ann") != "b":
        made.tell(events.UserRemoved("ann"))
    made.keep("ann", "1", "b")
    effects = made.pass_time(11, "a")
    [adopt] = adopted_by(effects, "a")
    assert detached(effects + made.pass_time(5, "a")) == []
    made.done("a", adopt, ok=False, reason="the cluster is away")
    [again] = adopted_by(effects := made.pass_time(5, "a"), "a")
    assert detached(effects) == []
    made.done("a", again)
    assert detached(made.pass_time(2, "a")) == ["b"]


@pytest.mark.parametrize("restarts", [False, True])
def test_what_a_dead_broker_left_waits_for_another_to_hold_it_though_somebody_says_that_it_is_gone(restarts: bool):
    made = Story("a", "b", detach_after_s=30)
    assert made.place("ann") == "a"
    made.keep("ann", "1", "a")
    [adopt] = adopted_by(made.pass_time(11, "b"), "b")
    if restarts:
        made.begin()
        [adopt] = [one for one in made.register("b") if isinstance(one, Adopt)]
    effects = made.tell(events.BrokerRemoved("a"))
    assert (state(made, "a"), detached(effects + made.pass_time(2, "b"))) == ("gone", [])
    made.done("b", adopt)
    assert detached(made.pass_time(1, "b")) == ["a"]


def test_what_the_destination_of_a_move_left_waits_for_the_source_to_hold_it():
    """After a restart, nobody knows whether the source does; the destination may have been the only one."""
    made = Story("a", "b")
    assert made.place("ann") == "a"
    made.keep("ann", "1", "a")
    made.plan("ann", "b")
    made.begin()
    made.register("a", "2")
    made.register("b")
    effects = made.tell(events.BrokerRemoved("b"))
    [adopt] = adopted_by(effects, "a")
    assert detached(effects + made.pass_time(2, "a")) == []
    made.report("a", "2", outcomes=[Outcome(adopt.number, True)])
    assert detached(made.pass_time(1, "a")) == ["b"]


def test_a_removal_that_goes_on_is_not_begun_again_where_somebody_says_that_the_broker_is_gone():
    made = Story("a", "b", detach_after_s=1)
    assert detached(made.pass_time(13, "b")) == ["a"]
    assert detached(made.tell(events.BrokerRemoved("a")) + made.pass_time(2, "b")) == []


def test_users_of_a_dead_broker_have_time_to_bring_elsewhere_what_only_it_knew():
    made = Story("a", "b", detach_after_s=20)
    effects = made.pass_time(11, "a")
    assert state(made, "b") == "dead"
    assert detached(effects + made.pass_time(15, "a")) == []
    assert detached(made.pass_time(10, "a")) == ["b"]


def test_what_a_broker_left_that_was_taken_away_is_removed_at_once():
    made = Story("a", "b", detach_after_s=20)
    assert detached(made.tell(events.BrokerRemoved("b"))) == ["b"]


def test_a_user_removed_meanwhile_does_not_keep_what_a_dead_broker_left():
    made = Story("a", "b", detach_after_s=20, forget_broker_s=100)
    while made.place("ann") != "b":
        made.tell(events.UserRemoved("ann"))
    made.keep("ann", "1", "b")
    [adopt] = adopted_by(made.pass_time(11, "a"), "a")
    made.done("a", adopt)
    [release] = told(made.tell(events.UserRemoved("ann")), "a")
    made.done("a", release)
    assert made.state.world.users["ann"].stale == ["b"]
    assert detached(made.pass_time(25, "a")) == ["b"]
    made.tell(events.BrokerDetached("b"))
    made.pass_time(130, "a", step_s=1)
    assert ("b" in made.state.world.brokers, "ann" in made.state.world.users) == (False, False)


def test_after_a_restart_nothing_is_removed_until_brokers_hold_their_users():
    made = Story("a", "b")
    while made.place("ann") != "b":
        made.tell(events.UserRemoved("ann"))
    made.keep("ann", "1", "b")
    assert len(adopted_by(made.pass_time(11, "a"), "a")) == 1
    made.begin()
    assert detached(made.pass_time(2)) == []
    [again] = [one for one in made.register("a") if isinstance(one, Adopt)]
    assert detached(made.pass_time(2, "a")) == []
    made.done("a", again)
    assert detached(made.pass_time(2, "a")) == ["b"]


def test_a_draining_broker_is_emptied_and_ends_as_gone():
    made = Story("a", "b")
    users = [f"u{n}" for n in range(6)]
    for user in users:
        made.place(user)
    effects = made.report("a", is_draining=True)
    assert topology(effects, "b") == ["b"]
    for _ in range(10):
        for adopt in [one for one in told(effects, "b") if isinstance(one, Adopt)]:
            effects = made.done("b", adopt)
            for send in told(effects, "a"):
                made.done("a", send)
        effects = made.pass_time(0.5, "a", "b")
    assert {made.where(user) for user in users} == {"b"}
    assert {move.cause for move in made.state.world.moves} == {"drain a: next in turn"}
    made.pass_time(11, "b")
    assert state(made, "a") == "gone"


def test_a_drain_spreads_users_though_none_of_them_has_arrived_yet():
    made = Story("a", "b", "c", policy="nearest")
    for n in range(30):
        made.place(f"u{n}")
    made.report("a", is_draining=True)
    assert Counter(move.to for move in made.state.world.moves) == {"b": 5, "c": 5}


def test_a_newcomer_hears_who_drains_and_may_still_have_topics():
    made = Story("a", "b")
    made.report("a", is_draining=True)
    [told_c] = [one for one in made.register("c") if isinstance(one, Topology)]
    assert [info.name for info in told_c.brokers] == ["b", "c"]
    assert [info.name for info in told_c.leaving] == ["a"]


def emptied_s(made: Story, limit_s: float, **leaving: object) -> float:
    """How long it takes until nobody is at ``a``, where brokers and users do at once what they are told."""
    effects, passed_s = made.report("a", is_draining=True, **leaving), 0.0
    while made.state.world.users.residents["a"] and passed_s < limit_s:
        while effects:
            adopted = [one for one in told(effects, "b") if isinstance(one, Adopt)]
            sends = [send for adopt in adopted for send in told(made.done("b", adopt), "a")]
            effects = [effect for send in sends for effect in made.done("a", send)]
        passed_s += 0.5
        made.now += 0.5
        effects = made.tell(events.Ticked(0.5)) + made.report("b")
    return passed_s


def crowd(count: int, **rules: object) -> Story:
    """So many online at ``a``, and nobody at ``b``."""
    made = Story("a", **rules)
    users = [f"u{n:03d}" for n in range(count)]
    for user in users:
        made.place(user)
    made.online("a", *users)
    made.register("b")
    return made


def test_a_leaving_broker_is_emptied_faster_where_it_would_not_be_empty_in_time():
    rules = {"moves_per_s": 4.0, "moves_in_flight": 2, "longest_tick_s": 1.0, "dead_after_s": 1000.0}
    assert emptied_s(crowd(100, **rules), 15) == 15, "at the usual rate"
    assert emptied_s(crowd(100, **rules), 15, leaves_in_s=10.0) < 10
    assert emptied_s(crowd(100, **rules, drain_moves_per_s=5.0), 15, leaves_in_s=10.0) == 15, "never above the bound"


def said(effects: list[Effect]) -> list[tuple[str, bool]]:
    return [(effect.text, effect.is_warning) for effect in effects if isinstance(effect, Say)]


def test_a_drain_that_cannot_end_in_time_is_told_when_it_begins():
    made = crowd(100, moves_per_s=4.0, drain_moves_per_s=5.0)
    [(text, is_warning)] = said(made.report("a", is_draining=True, leaves_in_s=10.0))
    assert (is_warning, "100 online" in text, "at most 50 can be moved" in text) == (True, True, True)
    assert said(made.report("a", is_draining=True, leaves_in_s=9.0)) == []
    [(text, is_warning)] = said(crowd(100).report("a", is_draining=True, leaves_in_s=10.0))
    assert (is_warning, "leaves in 10 s" in text) == (False, True)


def test_the_drain_of_the_last_broker_says_that_there_is_no_other():
    made = Story("a")
    made.place("ann")
    [(text, is_warning)] = said(made.report("a", is_draining=True, leaves_in_s=10.0))
    assert (is_warning, "no other" in text, made.where("ann")) == (True, True, "a")
    made.register("b")
    effects = made.tell(events.Ticked(0.5))
    assert [one.user for one in told(effects, "b") if isinstance(one, Adopt)] == ["ann"], "one that comes later takes"


def test_where_all_drain_those_that_do_not_end_own_the_topics():
    made = Story("a", "b")
    made.tell(events.DrainAsked("a"))
    assert topology(made.tell(events.DrainAsked("b")), "a") == ["a", "b"]
    assert topology(made.tell(events.BrokerRemoved("b")), "a") == ["a"]
    effects = made.tell(events.BrokerRegistered("c", Registration("1", "http://c.invalid")))
    assert topology(effects, "a") == ["c"]


def test_drains_wait_for_no_plan_and_move_first_who_is_online():
    made = Story("a", "b", "c", moves_in_flight=1)
    for number in range(9):
        made.place(f"u{number}")
    away = {user: made.where(user) for user in ("u0", "u1", "u2", "u3", "u4", "u5")}
    moves = [events.WantedMove(user, "c", "asked") for user, broker in away.items() if broker == "b"]
    made.online("a", "u6")
    effects = made.tell(events.PlanProposed(moves, "asked"))
    [first] = [one for one in told(effects, "c") if isinstance(one, Adopt)]
    assert len(made.state.world.moves.active) == 2
    made.report("a", is_draining=True)
    assert made.where("u6") == "a"
    [send] = told(made.done("c", first), "b")
    made.done("b", send)
    effects = made.tell(events.Ticked(0.5))
    assert [m.user for m in made.state.world.moves.active.values() if m.is_started] == ["u6"]


def test_nobody_new_is_placed_at_a_draining_broker():
    made = Story("a", "b")
    made.tell(events.DrainAsked("a"))
    assert {made.place(f"u{n}") for n in range(4)} == {"b"}


def test_who_comes_back_to_a_draining_broker_is_placed_elsewhere_at_once():
    made = Story("a", "b", moves_per_s=0.001)
    assert [made.place(user) for user in ("u0", "u1", "u2")] == ["a", "b", "a"]
    made.tell(events.DrainAsked("a"))
    assert made.place("u2") == "b"


def test_a_broker_removed_by_hand_is_gone_at_once():
    made = Story("a", "b")
    made.place("ann")
    made.tell(events.BrokerRemoved("a"))
    assert (state(made, "a"), made.where("ann")) == ("gone", "b")


def test_dead_brokers_are_forgotten_in_the_end():
    made = Story("a", "b", forget_broker_s=100)
    made.place("u0")
    made.place("u1")
    made.pass_time(11, "a")
    made.pass_time(200, "a", step_s=1)
    assert "b" in made.state.world.brokers, "the cluster may still hold something of it"
    made.tell(events.BrokerDetached("b"))
    made.pass_time(40, "a", step_s=1)
    assert "b" not in made.state.world.brokers
    assert all(user.stale == [] for user in made.state.world.users)


@pytest.mark.parametrize("name", ["nearest", "round_robin", "random", "least_loaded"])
def test_every_policy_serves(name: str):
    made = Story("a", "b", policy=name)
    assert {made.place(f"u{n}") for n in range(30)} == {"a", "b"}
