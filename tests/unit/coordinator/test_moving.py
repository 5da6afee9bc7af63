"""Moves, step by step: make before break, and each to a known end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.coordinators import Story, told, wanted
from tocsin.coordinator import events
from tocsin.protocol.coordination import Adopt, Arrival, BrokerInfo, Holding, Outcome, Release, Send


def story(**rules: object) -> Story:
    """Ann at a, with one subscription, online."""
    made = Story("a", "b", "c", **rules)
    assert made.place("ann") == "a"
    made.keep("ann", "1", by="a")
    made.online("a", "ann")
    return made


def adopting(made: Story, to: str = "b") -> Adopt:
    [adopt] = told(made.plan("ann", to), to)
    assert isinstance(adopt, Adopt)
    return adopt


def sending(made: Story, to: str = "b") -> Send:
    [send] = told(made.done(to, adopting(made, to)), "a")
    assert isinstance(send, Send)
    return send


def test_the_destination_attaches_before_anyone_is_told_to_go():
    made = story()
    effects = made.plan("ann", "b")
    [adopt] = told(effects, "b")
    assert adopt == Adopt(adopt.number, "ann", made.version("ann") + 1, [wanted("1")])
    assert told(effects, "a") == []
    [send] = told(made.done("b", adopt), "a")
    assert send == Send(send.number, "ann", adopt.version, BrokerInfo("b", "http://b:1"), "")
    assert (made.where("ann"), made.move[0]) == ("a", "sending")


def test_the_source_lets_go_when_the_user_has_arrived_and_left():
    made = story()
    send = sending(made)
    version = send.version
    assert told(made.report("b", arrivals=[Arrival("ann", version)]), "a") == []
    [release] = told(made.done("a", send), "a")
    assert release == Release(release.number, "ann", version)
    assert (made.where("ann"), made.version("ann"), made.move) == ("b", version, ("done", "arrived"))
    assert made.state.world.users["ann"].stale == ["a"]
    made.done("a", release)
    assert made.state.world.users["ann"].stale == []


def test_sessions_that_do_not_follow_the_first_in_time_are_closed():
    made = story(follow_timeout_s=4)
    send = sending(made)
    made.report("b", arrivals=[Arrival("ann", send.version)])
    assert told(made.pass_time(3, "a", "b", "c"), "a") == []
    made.report("b", arrivals=[Arrival("ann", send.version)])
    [release] = told(made.pass_time(1.5, "a", "b", "c"), "a")
    assert isinstance(release, Release)
    assert (made.where("ann"), made.move) == ("b", ("done", "arrived, without sessions that did not follow"))


def test_whoever_has_arrived_stays_there_when_the_time_of_its_move_is_over():
    made = story(follow_timeout_s=60, move_timeout_s=5)
    send = sending(made)
    made.report("b", arrivals=[Arrival("ann", send.version)])
    made.pass_time(6, "a", "b", "c")
    assert (made.where("ann"), made.move[0]) == ("b", "done")


def test_whoever_has_arrived_need_not_come_again_when_the_source_dies():
    made = story(follow_timeout_s=60)
    send = sending(made)
    made.report("b", arrivals=[Arrival("ann", send.version)])
    made.tell(events.BrokerRemoved("a"))
    assert (made.where("ann"), made.version("ann"), made.move[0]) == ("b", send.version, "done")


def test_one_that_has_arrived_before_the_destination_has_adopted_everything_waits_for_it():
    made = story()
    adopt = adopting(made)
    made.report("b", arrivals=[Arrival("ann", adopt.version)])
    assert (made.where("ann"), made.move[0]) == ("a", "adopting")
    [send] = told(made.done("b", adopt), "a")
    made.done("a", send)
    assert (made.where("ann"), made.move) == ("b", ("done", "arrived"))


def test_a_user_that_is_offline_moves_without_arriving():
    made = story()
    made.done("a", sending(made))
    assert (made.where("ann"), made.move) == ("b", ("done", "nobody is left at the source"))


@pytest.mark.parametrize("version", [-1, 1])
def test_an_arrival_under_another_version_is_nobodys(version: int):
    made = story()
    made.report("b", arrivals=[Arrival("ann", sending(made).version + version)])
    assert (made.where("ann"), made.move[0]) == ("a", "sending")


def test_an_arrival_is_nobodys_while_its_move_has_not_begun():
    """Who was let in unasked, with a ticket that did not count, tells version 0: that of moves that wait."""
    made = story(moves_in_flight=1)
    made.place("bob")
    made.plan("bob", "c")
    made.plan("ann", "b")
    made.report("b", arrivals=[Arrival("ann", 0)])
    assert (made.where("ann"), made.move[0]) == ("a", "planned")


def test_an_arrival_at_another_broker_is_nobodys():
    made = story()
    made.report("c", arrivals=[Arrival("ann", sending(made).version)])
    assert made.where("ann") == "a"


@pytest.mark.parametrize(
    ("step", "waited_for"),
    [
        pytest.param(adopting, "waited too long for b to adopt the user", id="the destination"),
        pytest.param(sending, "waited too long for the user to arrive", id="the subscriber"),
    ],
)
def test_whoever_does_not_answer_leaves_the_user_where_it_works(step, waited_for: str):
    made = story(adopt_timeout_s=5, move_timeout_s=5)
    instruction = step(made)
    effects = made.pass_time(6, "a", "b", "c")
    assert made.move == ("timed out", waited_for)
    [again] = told(effects, "a")
    assert isinstance(again, Adopt)
    assert told(effects, "b") == []
    [release] = told(made.done("a", again), "b")
    assert isinstance(release, Release)
    assert again.version == release.version == made.version("ann") > instruction.version
    made.report("b", arrivals=[Arrival("ann", instruction.version)])
    assert made.where("ann") == "a"


def test_a_destination_that_cannot_adopt_refuses_the_move():
    made = story()
    made.done("b", adopting(made), ok=False, reason="no such channel")
    assert made.move == ("refused", "b could not adopt the user: no such channel")
    assert made.where("ann") == "a"


def test_a_source_that_cannot_send_refuses_the_move():
    made = story()
    made.done("a", sending(made), ok=False, reason="will not go")
    assert made.move == ("refused", "a could not send the user: will not go")


@pytest.mark.parametrize(
    ("user", "to", "outcome"),
    [
        ("nobody", "b", "there is no such user"),
        ("ann", "a", "the user is at a already"),
        ("ann", "x", "there is no broker 'x'"),
        ("ann", "c", "c is gone"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(user: str, to: str, outcome: str):
    made = story()
    made.tell(events.BrokerRemoved("c"))
    made.plan(user, to)
    assert made.move == ("refused", outcome)


def test_a_newer_plan_takes_the_place_of_an_older_one():
    made = story()
    first = sending(made)
    effects = made.plan("ann", "c")
    older, newer = made.state.world.moves
    assert (older.state, older.outcome) == ("superseded", "plan p000000002 moves the user to c")
    [again], [adopt] = told(effects, "a"), told(effects, "c")
    [release] = told(made.done("a", again), "b")
    assert first.version < release.version == again.version < adopt.version == newer.version
    made.report("b", arrivals=[Arrival("ann", first.version)])
    assert made.where("ann") == "a"


def test_moves_in_flight_are_bounded():
    made = Story("a", "b", moves_in_flight=2, moves_per_s=1000)
    users = [f"u{n}" for n in range(6)]
    sources = {user: made.place(user) for user in users}
    moves = [events.WantedMove(u, "b" if sources[u] == "a" else "a", "") for u in users]
    effects = made.tell(events.PlanProposed(moves, "a test"))
    effects += made.pass_time(3, "a", "b")
    assert [m.state for m in made.state.world.moves].count("adopting") == 2
    first = told(effects, moves[0].to)[0]
    made.done(moves[0].to, first, ok=False)
    assert [m.state for m in made.state.world.moves] == ["refused", "adopting", "adopting"] + ["planned"] * 3


def test_moves_a_second_are_bounded():
    made = Story("a", "b", moves_in_flight=100, moves_per_s=2)
    users = [f"u{n}" for n in range(20)]
    for user in users:
        made.place(user)
    moves = [events.WantedMove(u, "b" if made.where(u) == "a" else "a", "") for u in users]
    made.tell(events.PlanProposed(moves, "a test"))
    made.pass_time(3, "a", "b")
    started = [m for m in made.state.world.moves if m.state == "adopting"]
    assert 6 <= len(started) <= 8


def test_a_move_half_way_goes_on_after_a_restart_of_the_coordinator():
    made = story()
    version = sending(made).version
    made.begin()
    assert made.move[0] == "sending"
    briefing = made.register("a")
    [send] = [one for one in briefing if isinstance(one, Send)]
    assert send.version == version
    adopt = made.register("b")[-1]
    assert isinstance(adopt, Adopt)
    made.done("b", adopt)
    made.report("b", arrivals=[Arrival("ann", version)])
    made.done("a", send)
    assert (made.where("ann"), made.move) == ("b", ("done", "arrived"))


@pytest.mark.parametrize("is_online", [True, False], ids=["another is at the source", "nobody is at the source"])
def test_whom_the_destination_let_in_unasked_has_arrived_there(is_online: bool):
    made = story()
    version = sending(made).version
    made.begin()
    made.register("a")
    made.register("c")
    if is_online:
        made.online("a", "ann")
    [again] = [one for one in made.register("b", "2") if isinstance(one, Adopt)]
    effects = made.report("b", "2", is_full=True, admitted=["ann"], holdings=[Holding("ann", ["s"])])
    assert (told(effects, "a"), told(effects, "b"), made.move[0]) == ([], [], "sending")
    made.report("b", "2", outcomes=[Outcome(again.number, True)])
    effects = made.pass_time(11, "a", "b", "c")
    assert [type(one) for one in told(effects, "a")] == [Release]
    assert told(effects, "b") == []
    assert (made.where("ann"), made.version("ann"), made.move[0]) == ("b", version, "done")


def test_numbers_never_come_again_after_a_restart():
    made = story()
    before = sending(made).number
    made.begin()
    assert min(one.number for one in made.register("a")) > before


def test_the_destination_dies():
    made = story()
    sending(made)
    effects = made.pass_time(11, "a", "c")
    assert made.move == ("refused", "the destination died")
    assert made.where("ann") == "a"
    assert isinstance([one for one in told(effects, "a") if not hasattr(one, "brokers")][-1], Adopt)


def test_the_source_dies():
    made = story()
    version = sending(made).version
    made.pass_time(11, "b", "c")
    assert (made.where("ann"), made.version("ann")) == ("b", version)
    assert made.move == ("done", "the source died; the destination had the user already")


def test_a_subscription_that_comes_meanwhile_is_attached_at_the_destination():
    made = story()
    adopting(made)
    [again] = told(made.keep("ann", "2", by="a"), "b")
    assert isinstance(again, Adopt)
    assert [one.id for one in again.subscriptions] == ["1", "2"]


@pytest.mark.parametrize(
    "asked_again",
    [
        pytest.param(lambda made: made.register("b", "2")[-1], id="the destination has restarted"),
        pytest.param(lambda made: told(made.keep("ann", "2", by="a"), "b")[-1], id="the user has subscribed"),
    ],
)
def test_the_source_holds_on_until_the_destination_has_adopted_again(asked_again: Callable[[Story], Adopt]):
    made = story()
    send = sending(made)
    again, life = asked_again(made), made.state.world.brokers["b"].incarnation
    refusal = Outcome(again.number, False, "the data cluster has not been reached yet")
    made.report("b", life, outcomes=[refusal], arrivals=[Arrival("ann", send.version)])
    assert told(made.done("a", send), "a") == []
    assert (made.where("ann"), made.move[0]) == ("a", "sending")
    [retried] = [one for one in told(made.pass_time(3, "a", "b", "c"), "b") if isinstance(one, Adopt)]
    assert [one.id for one in retried.subscriptions] == [one.id for one in again.subscriptions]
    [release] = told(made.report("b", life, outcomes=[Outcome(retried.number, True)]), "a")
    assert isinstance(release, Release)
    assert (made.where("ann"), made.move) == ("b", ("done", "arrived"))


def test_a_destination_that_has_yet_to_let_go_is_told_of_what_it_said_itself():
    """It does as it is told in order: lets go, with what it said, and then adopts."""
    made = story()
    made.obey()
    [release] = told(made.online("b", "ann"), "b")
    assert isinstance(release, Release)
    adopting(made)
    [again] = told(made.keep("ann", "2", by="b"), "b")
    assert [one.id for one in again.subscriptions] == ["1", "2"]


def test_a_destination_that_never_adopts_again_leaves_the_user_where_it_works():
    made = story(move_timeout_s=5)
    send = sending(made)
    [again] = told(made.keep("ann", "2", by="a"), "b")
    made.done("b", again, ok=False, reason="no such channel")
    made.done("a", send)
    made.pass_time(6, "a", "b", "c")
    assert made.where("ann") == "a"
    assert made.move == ("timed out", "waited too long for b to adopt the user: no such channel")


def test_what_the_destination_failed_to_adopt_it_is_told_again_when_the_source_has_died():
    made = story()
    sending(made)
    [again] = told(made.keep("ann", "2", by="a"), "b")
    made.done("b", again, ok=False, reason="no route")
    made.tell(events.BrokerRemoved("a"))
    assert made.where("ann") == "b"
    [retried] = [one for one in told(made.pass_time(3, "b", "c"), "b") if isinstance(one, Adopt)]
    assert [one.id for one in retried.subscriptions] == ["1", "2"]


def test_only_the_last_adoption_counts():
    made = story()
    first = adopting(made)
    [second] = told(made.keep("ann", "2", by="a"), "b")
    assert told(made.done("b", first), "a") == []
    assert isinstance(told(made.done("b", second), "a")[0], Send)


def test_a_subscription_that_ends_meanwhile_ends_the_move():
    made = story()
    sending(made)
    made.tell(events.SubscriptionEnded("ann", "1", "a"))
    assert made.move == ("refused", "the user unsubscribed meanwhile")


def test_a_subscription_that_ends_at_the_destination_ends_at_the_source_too():
    made = story()
    made.obey()
    sending(made)
    effects = made.tell(events.SubscriptionEnded("ann", "1", "b"))
    assert [list(one.subscriptions) for one in told(effects, "a")] == [[]]
    assert (told(effects, "b"), made.move[0]) == ([], "sending")


def test_what_a_destination_said_before_it_lets_go_and_holds_again_it_is_told():
    made = story()
    adopting(made)
    made.plan("ann", "c")
    [adopt] = told(made.plan("ann", "b"), "b")
    [again] = told(made.keep("ann", "2", by="b"), "b")
    assert (adopt.version, list(again.subscriptions)) == (again.version, [wanted("1"), wanted("2")])


def test_a_destination_that_is_told_what_it_ended_meanwhile_is_told_again():
    made = story()
    adopting(made)
    [again] = told(made.tell(events.SubscriptionEnded("ann", "1", "b")), "b")
    assert list(again.subscriptions) == []
    assert isinstance(told(made.done("b", again), "a")[0], Send)


def test_moves_that_ended_are_kept_up_to_a_number():
    made = story(kept_moves=3)
    for _ in range(10):
        made.plan("ann", "a")
    made.pass_time(40, "a", "b", "c")
    assert len(made.state.world.moves) == 3
    assert [key for kind, key in made.store.rows if kind == "move"] == [m.id for m in made.state.world.moves]
