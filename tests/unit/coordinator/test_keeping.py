"""Users: placed, admitted, kept, acknowledged, forgotten."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.coordinators import Story, told, wanted
from tocsin.coordinator import events
from tocsin.errors import LimitExceeded, NotFound
from tocsin.protocol.coordination import Acknowledged, Adopt, Holding, Kept, Outcome, Release


def subscriptions(made: Story, user: str) -> dict[str, str | None]:
    return {id: one.position for id, one in made.state.world.users[user].subscriptions.items()}


def test_a_user_keeps_its_broker_while_that_lives():
    made = Story("a", "b")
    assert [made.place("ann") for _ in range(5)] == ["a"] * 5
    assert made.version("ann") == 1


def test_a_placement_tells_the_broker_whom_to_expect():
    made = Story("a")
    [adopt] = told(made.tell(events.PlacementAsked("ann")), "a")
    assert adopt == Adopt(adopt.number, "ann", 1, [])


def test_what_a_user_said_of_itself_counts_when_it_is_placed_again():
    made = Story(policy="nearest")
    for name, location in (("a", (0.0, 0.0)), ("b", (10.0, 0.0)), ("c", (11.0, 0.0))):
        made.register(name, location=location)
    made.tell(events.PlacementAsked("ann", (9.0, 0.0)))
    assert made.where("ann") == "b"
    made.tell(events.BrokerRemoved("b"))
    assert made.where("ann") == "c"


def test_only_latencies_to_brokers_that_exist_are_kept():
    made = Story("a", "b", policy="nearest")
    made.tell(events.PlacementAsked("ann", None, {"a": 9.0, "b": 5.0} | {f"x{n}": 1.0 for n in range(1000)}))
    assert made.where("ann") == "b"
    assert made.state.world.users["ann"].latencies_ms == {"a": 9.0, "b": 5.0}


def test_what_is_kept_survives_a_restart():
    made = Story("a")
    made.place("ann")
    made.keep("ann", "1")
    made.report("a", acknowledged=[Acknowledged("ann", "1", "05")])
    made.begin()
    assert (made.where("ann"), subscriptions(made, "ann")) == ("a", {"1": "05"})
    [adopt] = [one for one in made.register("a") if isinstance(one, Adopt)]
    assert list(adopt.subscriptions) == [wanted("1", "05")]


@pytest.mark.parametrize(
    ("acknowledged", "expected"),
    [
        pytest.param(["03", "05", "04"], "05", id="positions never go back"),
        pytest.param([], "02", id="the position at which it began"),
    ],
)
def test_acknowledgements(acknowledged: list[str], expected: str):
    made = Story("a")
    made.tell(events.SubscriptionKept("ann", wanted("1", "02")))
    for position in acknowledged:
        made.report("a", acknowledged=[Acknowledged("ann", "1", position)])
    assert subscriptions(made, "ann") == {"1": expected}


@pytest.mark.parametrize(
    ("by", "later_s", "is_left"),
    [
        pytest.param("b", 1, True, id="another one has kept it meanwhile"),
        pytest.param("a", 1, False, id="it said so itself before"),
        pytest.param("b", 11, False, id="another one kept it long before"),
    ],
)
def test_an_end_that_a_broker_noted_does_not_end_what_was_asked_for_again(by: str, later_s: float, is_left: bool):
    """It was said at a, which could not reach the coordinator; then the user asked for it at b."""
    made = Story("a", "b")
    assert made.place("ann") == "a"
    made.keep("ann", "1", by="a")
    made.obey()
    made.keep("ann", "1", by=by)
    made.obey()
    made.pass_time(later_s, "a", "b")
    effects = made.report("a", kept=[Kept("ann", "1")])
    assert ("1" in subscriptions(made, "ann")) is is_left
    if is_left:  # a has let go of it, and is to hold it again
        assert [list(one.subscriptions) for one in told(effects, "a")] == [[wanted("1")]]


def test_a_position_that_its_stream_never_reached_goes_back():
    made = Story("a")
    made.tell(events.SubscriptionKept("ann", wanted("1", "zzzz")))
    made.report("a", acknowledged=[Acknowledged("ann", "1", "05", is_back=True)])
    made.report("a", acknowledged=[Acknowledged("ann", "1", "06")])
    assert subscriptions(made, "ann") == {"1": "06"}


def test_a_subscription_that_is_told_again_does_not_go_back():
    made = Story("a")
    made.tell(events.SubscriptionKept("ann", wanted("1", "05")))
    made.tell(events.SubscriptionKept("ann", wanted("1", "02")))
    assert subscriptions(made, "ann") == {"1": "05"}


@pytest.mark.parametrize(
    "loses",
    [
        pytest.param(lambda made: made.tell(events.BrokerRemoved("a")), id="its broker ended"),
        pytest.param(lambda made: made.register("a", "2"), id="its broker began anew"),
        pytest.param(lambda made: made.report("a", is_full=True), id="its broker no longer knows it"),
    ],
)
def test_who_was_online_until_now_has_not_been_away(loses: Callable[[Story], object]):
    made = Story("a", "b", offline_ttl_s=100)
    made.place("ann")
    made.online("a", "ann")
    made.pass_time(200, "a", "b", step_s=1)
    loses(made)
    made.pass_time(70, "b", step_s=1)
    assert made.where("ann") == "b"
    made.pass_time(70, "b", step_s=1)
    assert "ann" not in made.state.world.users.names() or made.state.world.users["ann"].is_removed


def test_acknowledgements_of_what_is_not_there_are_passed_over():
    made = Story("a")
    made.place("ann")
    made.report("a", acknowledged=[Acknowledged("ann", "x", "1"), Acknowledged("bob", "1", "1")])
    assert subscriptions(made, "ann") == {}


def test_a_broker_is_not_told_what_it_said():
    made = Story("a", "b")
    made.place("ann")
    assert told(made.keep("ann", "1", by="a"), "a") == []
    assert [type(one) for one in told(made.keep("ann", "2", by="b"), "a")] == [Adopt]


@pytest.mark.parametrize("by", [None, "b"], ids=["somebody asked us", "another broker said so"])
def test_an_end_is_told_to_the_broker_that_holds_it(by: str | None):
    made = Story("a", "b")
    made.place("ann")
    for id in ("1", "2"):
        made.keep("ann", id, by="a")
    made.obey()
    [adopt] = told(made.tell(events.SubscriptionEnded("ann", "1", by)), "a")
    assert adopt == Adopt(adopt.number, "ann", made.version("ann"), [wanted("2")])
    made.obey()
    assert told(made.tell(events.SubscriptionEnded("ann", "2", "a")), "a") == [], "it said so itself"


def test_a_broker_that_is_told_what_it_ended_meanwhile_is_told_again():
    made = Story("a")
    made.place("ann")
    made.keep("ann", "1", by="a")
    made.begin()
    [stale] = [one for one in made.register("a") if isinstance(one, Adopt)]
    assert list(stale.subscriptions) == [wanted("1")]
    [adopt] = told(made.report("a", kept=[Kept("ann", "1")], outcomes=[Outcome(stale.number, True)]), "a")
    assert adopt == Adopt(adopt.number, "ann", made.version("ann"), [])


def test_what_a_broker_said_before_it_lets_go_and_holds_again_it_is_told():
    made = Story("a", "b")
    made.place("ann")
    made.obey()
    made.tell(events.BrokerRemoved("a"))
    made.obey()
    [release] = [one for one in made.register("a") if isinstance(one, Release)]
    made.tell(events.BrokerRemoved("b"))
    assert made.where("ann") == "a"
    [adopt] = told(made.keep("ann", "1", by="a"), "a")
    assert list(adopt.subscriptions) == [wanted("1")]
    made.done("a", release)
    made.obey()
    assert told(made.keep("ann", "2", by="a"), "a") == []


def test_subscriptions_of_one_user_are_bounded():
    made = Story("a", max_subscriptions=2)
    made.keep("ann", "1")
    made.keep("ann", "2")
    made.keep("ann", "2")
    with pytest.raises(LimitExceeded, match="subscriptions of user 'ann'"):
        made.keep("ann", "3")
    made.report("a", kept=[Kept("ann", "3", wanted("3"))])
    assert set(subscriptions(made, "ann")) == {"1", "2"}


def test_users_are_bounded():
    made = Story("a", max_users=1)
    made.place("ann")
    with pytest.raises(LimitExceeded, match="users: at most 1"):
        made.place("bob")
    made.report("a", admitted=["bob"])
    assert "bob" not in made.state.world.users


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"admitted": ["bob"], "holdings": [Holding("bob", ["s"])]}, id="who is online"),
        pytest.param({"kept": [Kept("bob", "1", wanted("1"))]}, id="who subscribed"),
    ],
)
def test_a_report_of_one_user_too_many_is_taken_for_the_rest(told: dict[str, list[object]]):
    made = Story("a", max_users=1)
    made.place("ann")
    made.keep("ann", "1")
    made.pass_time(2.0)
    made.report("a", acknowledged=[Acknowledged("ann", "1", "05")], **told)
    assert ("bob" in made.state.world.users, subscriptions(made, "ann")) == (False, {"1": "05"})
    made.pass_time(2.0)
    assert made.state.world.brokers["a"].state == "live"


def test_ending_what_is_not_there_is_told():
    made = Story("a")
    with pytest.raises(NotFound, match="no user"):
        made.tell(events.SubscriptionEnded("ann", "1"))
    made.place("ann")
    with pytest.raises(NotFound, match="no subscription"):
        made.tell(events.SubscriptionEnded("ann", "1"))


def test_what_a_broker_kept_while_it_was_alone_is_taken():
    made = Story("a", "b")
    made.place("ann")
    made.keep("ann", "old", by="a")
    made.report("a", kept=[Kept("ann", "1", wanted("1", "03")), Kept("ann", "old"), Kept("bob", "2", wanted("2"))])
    assert subscriptions(made, "ann") == {"1": "03"}
    assert (made.where("bob"), subscriptions(made, "bob")) == ("a", {"2": None})


def test_who_was_admitted_by_a_broker_alone_stays_there():
    made = Story("a", "b")
    made.place("ann")
    made.report("b", admitted=["ann", "bob"])
    assert (made.where("ann"), made.where("bob")) == ("b", "b")
    assert made.version("ann") > 1


def test_who_is_online_where_it_was_placed_is_sent_back_there():
    made = Story("a", "b")
    made.place("ann")
    made.online("a", "ann")
    made.obey()
    [release] = told(made.report("b", admitted=["ann"]), "b")
    assert release == Release(release.number, "ann", made.version("ann"))
    assert made.where("ann") == "a"


def test_who_is_online_where_it_does_not_belong_is_sent_away_once():
    made = Story("a", "b")
    made.place("ann")
    made.obey()
    [release] = told(made.online("b", "ann"), "b")
    assert isinstance(release, Release)
    assert told(made.online("b", "ann"), "b") == []


def test_an_online_user_that_nobody_knows_is_taken_as_it_is():
    made = Story("a")
    made.online("a", "ann")
    assert made.where("ann") == "a"


def test_whoever_kept_something_for_a_user_of_another_lets_go_though_the_user_has_gone():
    made = Story("a", "b")
    made.place("ann")
    made.obey()
    effects = made.report("b", kept=[Kept("ann", id, wanted(id)) for id in ("1", "2")])
    assert list(told(effects, "a")[-1].subscriptions) == [wanted("1"), wanted("2")]
    assert made.state.world.users["ann"].stale == ["b"]
    made.obey()
    assert (made.where("ann"), made.state.world.users["ann"].stale) == ("a", [])


def test_who_keeps_one_too_many_for_a_user_of_another_lets_go_too():
    made = Story("a", "b", max_subscriptions=1)
    made.place("ann")
    made.keep("ann", "1", by="a")
    made.report("b", kept=[Kept("ann", "2", wanted("2"))])
    assert made.state.world.users["ann"].stale == ["b"]


def test_a_removed_user_is_forgotten_when_its_broker_has_let_go():
    made = Story("a")
    made.place("ann")
    [release] = told(made.tell(events.UserRemoved("ann")), "a")
    assert made.state.world.users["ann"].is_removed
    made.begin()
    [again] = [one for one in made.register("a") if isinstance(one, Release)]
    assert again.version == release.version
    made.done("a", again)
    assert "ann" not in made.state.world.users
    assert not any(kind == "user" for kind, _ in made.store.rows)


def test_a_report_that_was_on_its_way_does_not_revive_a_removed_user():
    made = Story("a", "b")
    made.place("ann")
    made.online("a", "ann")
    [release] = told(made.tell(events.UserRemoved("ann")), "a")
    assert told(made.online("a", "ann"), "a") == [], "it was told already"
    [elsewhere] = told(made.online("b", "ann"), "b")
    assert (type(elsewhere), made.state.world.users["ann"].is_removed) == (Release, True)
    made.done("a", release)
    made.done("b", elsewhere)
    assert "ann" not in made.state.world.users


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"admitted": ["ann"]}, id="admitted"),
        pytest.param({"kept": [Kept("ann", "1", wanted("1"))]}, id="subscribed"),
    ],
)
def test_a_removed_user_whom_a_broker_let_in_unasked_is_one_again(more: dict[str, object]):
    made = Story("a")
    made.place("ann")
    made.tell(events.UserRemoved("ann"))
    made.report("a", holdings=[Holding("ann", ["s"])], **more)
    assert (made.where("ann"), made.state.world.users["ann"].is_removed) == ("a", False)


def test_a_removed_user_that_comes_back_begins_anew_under_a_later_version():
    made = Story("a")
    made.place("ann")
    made.keep("ann", "1", by="a")
    [release] = told(made.tell(events.UserRemoved("ann")), "a")
    assert made.place("ann") == "a"
    assert made.version("ann") > release.version
    assert subscriptions(made, "ann") == {}


def test_who_was_away_for_too_long_is_forgotten():
    made = Story("a", offline_ttl_s=100)
    made.place("ann")
    made.place("bob")
    made.online("a", "ann", "bob")
    made.report("a", holdings=[Holding("ann")])
    made.pass_time(140, "a", step_s=1)
    assert made.state.world.users["ann"].is_removed
    assert not made.state.world.users["bob"].is_removed


@pytest.mark.parametrize("is_full", [False, True])
def test_who_is_connected_and_follows_nothing_is_not_away(is_full: bool):
    made = Story("a", offline_ttl_s=100)
    made.place("ann")
    made.report("a", holdings=[Holding("ann", [])])
    made.pass_time(140, "a", step_s=1)
    made.report("a", holdings=[Holding("ann", [])] if is_full else [], is_full=is_full)
    made.pass_time(140, "a", step_s=1)
    assert not made.state.world.users["ann"].is_removed
    made.report("a", holdings=[Holding("ann")])
    made.pass_time(70, "a", step_s=1)
    assert not made.state.world.users["ann"].is_removed, "it was there until now"
    made.pass_time(70, "a", step_s=1)
    assert made.state.world.users["ann"].is_removed


def test_who_is_connected_and_follows_nothing_stays_where_it_is_placed():
    made = Story("a", "b", moves_per_s=0.001)
    for user in ("u0", "u1", "u2"):
        made.place(user)
    assert made.where("u2") == "a"
    made.report("a", holdings=[Holding("u2", [])])
    made.obey()
    [release] = told(made.report("b", admitted=["u2"]), "b")
    assert (type(release), made.where("u2")) == (Release, "a"), "though another let it in"
    made.tell(events.DrainAsked("a"))
    assert made.place("u2") == "a", "until its move comes"


def test_after_a_restart_nobody_is_forgotten_before_brokers_could_report():
    made = Story("a", offline_ttl_s=100)
    made.place("ann")
    made.now += 1000
    made.begin()
    made.register("a")
    made.pass_time(60, "a", step_s=1)
    assert made.where("ann") == "a"


@pytest.mark.parametrize("leap_s", [1000, -500])
def test_a_clock_that_is_set_lets_nobody_have_been_away(leap_s: float):
    made = Story("a", offline_ttl_s=100)
    made.place("ann")
    made.now += leap_s
    made.pass_time(60, "a", step_s=1)
    assert not made.state.world.users["ann"].is_removed
    made.pass_time(120, "a", step_s=1)
    assert made.state.world.users["ann"].is_removed


def test_a_policy_chosen_while_running_is_kept():
    made = Story("a", "b")
    made.tell(events.PolicyChosen("nearest", {"metric": "sphere"}, "round_robin"))
    made.begin()
    chosen = made.state.world.counters.policy
    assert chosen is not None
    assert (chosen.name, chosen.options, chosen.configured) == ("nearest", {"metric": "sphere"}, "round_robin")
