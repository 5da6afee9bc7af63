"""The city, its four channels, and who asks for what."""

from datetime import UTC, datetime

import pytest

from tocsin.demo.plan import Plan
from tocsin.errors import BadArgument

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def plan():
    return Plan(2.0, 40, 150, START)


def test_the_requests_hold_every_subscription_channel_by_channel(plan):
    asked = [(channel, len(arguments)) for channel, arguments in plan.requests()]
    assert {channel for channel, _ in asked} == set(plan.channels)
    assert len(asked) == len(plan.channels)
    assert sum(count for _, count in asked) == 150


def test_only_what_brings_records_is_an_event(plan):
    assert {event.kind for event in plan.events()} == {"shelters", "locations", "report"}


def test_more_subscriptions_than_people_ask_for_are_refused_with_the_number():
    with pytest.raises(BadArgument, match=r"--subscriptions.*at most \d+, which 3 people ask for"):
        _ = Plan(2.0, 3, 5_000, START).intents


@pytest.mark.parametrize("bad", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (float("nan"), 1, 1)], ids=str)
def test_nothing_and_less_are_refused(bad):
    with pytest.raises(BadArgument, match="above 0"):
        Plan(*bad, START)
