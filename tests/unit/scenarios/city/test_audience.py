from __future__ import annotations

from collections import Counter

import pytest

from tocsin.errors import BadArgument
from tocsin.scenarios.city import CHANNELS, DEMO, City, Intent, channels, subscribers


@pytest.fixture(scope="module")
def intents(city: City) -> list[Intent]:
    return list(subscribers(city, 400, seed=1))


def test_the_same_seed_wants_the_same(city: City, intents: list[Intent]) -> None:
    assert list(subscribers(city, 400, seed=1)) == intents
    assert list(subscribers(city, 400, seed=2)) != intents


def test_more_subscribers_begin_with_the_same_ones(city: City, intents: list[Intent]) -> None:
    fewer = list(subscribers(city, 40, seed=1))
    assert intents[: len(fewer)] == fewer


def test_each_has_1_to_5_channels_and_1_to_3_subscriptions_on_each(intents: list[Intent]) -> None:
    """Paper, section 6.1.2: (1,3) subscriptions per channel, (1,5) channels in total."""
    per_channel = Counter((i.user, i.channel) for i in intents)
    per_user = Counter(user for user, _ in per_channel)
    assert len(per_user) == 400
    assert set(per_user.values()) == {1, 2, 3, 4, 5}
    assert set(per_channel.values()) == {1, 2, 3}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sharing_is_about_that_of_the_paper(city: City, seed: int) -> None:
    """Paper, section 6.1.2: around 600 backend and 2,200 frontend subscriptions from 400 subscribers."""
    intents = list(subscribers(city, 400, seed))
    assert len(intents) == pytest.approx(2_200, rel=0.1)
    assert len({intent.key for intent in intents}) == pytest.approx(600, rel=0.15)


def test_arguments_are_those_of_the_channel(intents: list[Intent]) -> None:
    declared = {channel.name: [name for name, _ in channel.parameters] for channel in CHANNELS}
    assert all(list(intent.args) == declared[intent.channel] for intent in intents)
    assert {intent.channel for intent in intents} == set(declared)


def test_a_user_follows_only_themselves(intents: list[Intent]) -> None:
    followed = [intent for intent in intents if "user" in intent.args]
    assert followed
    assert all(intent.args["user"] == intent.user for intent in followed)


def test_nobody_has_the_same_subscription_twice(intents: list[Intent]) -> None:
    assert len({(intent.user, intent.key) for intent in intents}) == len(intents)


def test_less_sharing_means_more_distinct_ones(city: City, intents: list[Intent]) -> None:
    unshared = list(subscribers(city, 400, seed=1, sharing=0.0))
    assert len({i.key for i in unshared}) > len({i.key for i in intents}) * 1.3


def test_channels_can_be_chosen(city: City) -> None:
    assert {i.channel for i in subscribers(city, 100, seed=1, channels=channels(*DEMO))} == set(DEMO)


@pytest.mark.parametrize("wrong", [{"count": -1}, {"channels": ()}, {"sharing": -1.0}])
def test_impossible_audiences_are_refused(town: City, wrong: dict[str, object]) -> None:
    with pytest.raises(BadArgument, match="subscribers"):
        list(subscribers(town, **{"count": 1, "seed": 1, **wrong}))
