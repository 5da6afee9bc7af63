"""The city, its four channels, and who asks for what."""

from datetime import UTC, datetime
from itertools import islice

import pytest

from tocsin.demo.audience import requests
from tocsin.demo.plan import Plan
from tocsin.errors import BadArgument
from tocsin.scenarios.city import Intent

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def plan():
    return Plan(2.0, 40, 150, START)


def test_the_requests_hold_every_subscription_channel_by_channel(plan):
    asked = [(channel, len(arguments)) for channel, arguments in requests(plan.intents)]
    assert {channel for channel, _ in asked} == set(plan.channels)
    assert len(asked) == len(plan.channels)
    assert sum(count for _, count in asked) == 150


def test_the_last_tenth_of_the_people_log_in_during_the_run(plan):
    events = list(plan.events())
    assert {event.kind for event in events} == {"shelters", "locations", "report", "subscribe"}
    assert [event.t for event in events] == sorted(event.t for event in events)
    late = [event for event in events if event.kind == "subscribe"]
    assert plan.present + tuple(Intent(**event.payload) for event in late) == plan.intents
    arrivals = {event.payload["user"]: event.t for event in late}
    assert len(arrivals) == round(0.1 * len({intent.user for intent in plan.intents}))
    assert all(arrivals[event.payload["user"]] == event.t for event in late)
    assert min(arrivals.values()) >= 0.1 * plan.seconds
    assert max(arrivals.values()) < 0.8 * plan.seconds


def test_a_city_that_goes_on_begins_with_the_same_events_and_nobody_comes_later(plan):
    first = list(plan.events())
    endless = Plan(2.0, 40, 150, START, goes_on=True).events()
    assert list(islice(endless, len(first))) == first
    later = list(islice(endless, 500))
    assert {event.kind for event in later} == {"locations", "report"}
    assert later[-1].t > 2 * plan.seconds


def test_storms_are_those_of_the_scenario():
    assert Plan(2.0, 40, 150, START).scenario.storms is None
    assert Plan(2.0, 40, 150, START, storms=True).scenario.storms is not None


def test_more_subscriptions_than_people_ask_for_are_refused_with_the_number():
    with pytest.raises(BadArgument, match=r"subscriptions.*at most \d+, which 3 people ask for"):
        _ = Plan(2.0, 3, 5_000, START).intents


@pytest.mark.parametrize("bad", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (float("nan"), 1, 1)], ids=str)
def test_nothing_and_less_are_refused(bad):
    with pytest.raises(BadArgument, match="above 0"):
        Plan(*bad, START)


def test_people_with_connections_are_spread_over_all_and_some_come_late():
    plan = Plan(10, 100, 300, START, connected=30)
    chosen = plan.connected_people
    assert len(chosen) == 30
    assert chosen <= {intent.user for intent in plan.intents}
    assert not chosen <= {intent.user for intent in plan.present}
    assert Plan(10, 100, 300, START, connected=0).connected_people == frozenset()
    assert len(Plan(10, 100, 300, START, connected=10_000).connected_people) == len({i.user for i in plan.intents})
