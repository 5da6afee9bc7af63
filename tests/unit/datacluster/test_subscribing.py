from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.subscribed import MINE, Subscribed
from tocsin.datacluster.service import Wanted
from tocsin.datacluster.storage import catalog
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.errors import AlreadyExists, BadArgument, NotFound, Refused
from tocsin.tokens import LOCAL_ADMIN, Principal

PIN = {"channel": "Mine", "pin": {"user": "sub"}}
OF_BOSS = {"channel": "Mine", "pin": {"user": "boss"}}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Subscribed]:
    with Ledger(tmp_path / "ledger.db") as ledger:
        yield Subscribed(tmp_path, ledger)


def ann(*capabilities: Any, **claims: Any) -> Principal:
    return Principal("ann", capabilities, {"sub": "ann", **claims})


def subscribe(world: Subscribed, who: Principal, *arguments: Any, broker: str = "north", id: str | None = None) -> str:
    return world.subscribing.subscribe("Mine", broker, [Wanted(list(arguments), id)], who)[0].id


@pytest.mark.parametrize("id", ["a/b", "a\0b", "a\nb", "a\n", "\x7f", "", ".", "..", "x" * 256, "\ud800"])
def test_an_id_that_cannot_stand_in_an_address_is_refused(world: Subscribed, id: str) -> None:
    with pytest.raises(BadArgument, match="1 to 255 characters, without control characters and /"):
        subscribe(world, LOCAL_ADMIN, "ann", 1, id=id)
    assert world.channel.subscriptions.subscriptions == 0


@pytest.mark.parametrize("id", ["mine", "née 42?#%", "a.b", "x" * 255])
def test_any_other_id_is_taken(world: Subscribed, id: str) -> None:
    assert subscribe(world, LOCAL_ADMIN, "ann", 1, id=id) == id


def test_an_id_stays_with_its_owner_and_broker(world: Subscribed) -> None:
    subscribe(world, ann("subscribe:Mine"), "ann", 1, id="x")
    with pytest.raises(AlreadyExists) as refusal:
        subscribe(world, Principal("eve", ("subscribe:Mine",)), "ann", 1, id="x")
    assert "ann" not in str(refusal.value)
    with pytest.raises(AlreadyExists):
        subscribe(world, ann("subscribe:Mine"), "ann", 1, id="x", broker="south")
    assert world.channel.subscriptions.subscriptions == 1


def test_two_pinned_grants_are_two_ways_in(world: Subscribed) -> None:
    who = ann(PIN, OF_BOSS, boss="eve")
    assert subscribe(world, who, "ann", 1) != subscribe(world, who, "eve", 1)
    with pytest.raises(Refused, match="the token pins 'user', and 'bob' is not its value"):
        subscribe(world, who, "bob", 1)


def test_a_grant_that_pins_what_is_no_parameter_opens_nothing(world: Subscribed) -> None:
    with pytest.raises(Refused, match="'group'"):
        subscribe(world, ann({"channel": "Mine", "pin": {"group": "sub"}}), "ann", 1)


def test_a_broker_ends_what_stands_on_it_and_nothing_else(world: Subscribed) -> None:
    subscribe(world, ann("subscribe:Mine"), "ann", 1, id="here")
    subscribe(world, ann("subscribe:Mine"), "ann", 2, id="there", broker="south")
    north = Principal("somebody", ("broker:North",))
    with pytest.raises(Refused, match="'there' belongs to someone else"):
        world.subscribing.unsubscribe(["here", "there"], north)
    with pytest.raises(Refused, match="'here' belongs to someone else"):
        world.subscribing.change(["here"], "south", north)
    assert world.subscribing.unsubscribe(["here"], north) == 1


def test_what_is_ended_in_one_channel_is_not_ended_in_another(world: Subscribed) -> None:
    subscribe(world, LOCAL_ADMIN, "ann", 1, id="x")
    row = world.ledger.write(lambda tx: catalog.create_channel(tx, replace(MINE, name="Other"), 0.0))
    world.channels._channels["other"] = world.channels._open(row, world.channel.prepared)
    assert world.subscribing.unsubscribe(["x"], LOCAL_ADMIN, "Other") == 0
    with pytest.raises(NotFound, match="Third"):
        world.subscribing.unsubscribe(["x"], LOCAL_ADMIN, "Third")
    assert world.subscribing.unsubscribe(["x"], LOCAL_ADMIN, "mine") == 1


@pytest.mark.parametrize(
    ("who", "seen"),
    [
        (LOCAL_ADMIN, ["a", "e"]),
        (Principal("any", ("broker:*",)), ["a", "e"]),
        (ann("read"), ["a"]),
        (Principal("south", ("broker:South",)), ["e"]),
        (Principal("nobody", ("read", "broker:west")), []),
    ],
)
def test_one_sees_ones_own_subscriptions_and_those_on_ones_brokers(
    world: Subscribed, who: Principal, seen: list[str]
) -> None:
    subscribe(world, ann("subscribe:Mine"), "ann", 1, id="a")
    subscribe(world, Principal("eve", ("subscribe:Mine",)), "eve", 1, id="e", broker="south")
    assert [s.id for s in world.subscribing.list(who, None, None, 10, None)] == seen


def test_equal_subscriptions_ended_together_are_one_parameter_set_less(world: Subscribed) -> None:
    held = [subscribe(world, LOCAL_ADMIN, "ann", 1, broker=broker) for broker in ("north", "north", "south")]
    subscribe(world, LOCAL_ADMIN, "bob", 1)
    assert world.subscribing.unsubscribe(held, LOCAL_ADMIN) == 3
    subscribers = world.channel.subscriptions
    assert (subscribers.subscriptions, subscribers.backends) == (1, 1)
