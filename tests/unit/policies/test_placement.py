"""Initial placement: who gets which broker, and why."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import pytest

from tocsin.policies.base import Assign, BrokerView, Newcomer, PlacementPolicy, PlacementView, Reason, Skip
from tocsin.policies.placement.least_loaded import LeastLoaded
from tocsin.policies.placement.nearest import EARTH_RADIUS_M, Nearest, great_circle_m
from tocsin.policies.placement.random import RandomBroker
from tocsin.policies.placement.round_robin import RoundRobin
from tocsin.policies.registry import PLACEMENT

ANN = Newcomer("ann")


def loads(**load: float) -> PlacementView:
    return PlacementView(tuple(BrokerView(name, load=value, users=1) for name, value in load.items()))


def places(**location: tuple[float, float]) -> PlacementView:
    return PlacementView(tuple(BrokerView(name, location=where) for name, where in location.items()))


def placed(policy: PlacementPolicy, who: Newcomer, view: PlacementView, seed: int = 0) -> tuple[str, Reason]:
    decision = policy.place(who, view, Random(seed), 0.0)
    assert isinstance(decision, Assign)
    assert decision.user == who.user
    return decision.broker, decision.reason


@pytest.mark.parametrize("name", PLACEMENT)
def test_without_a_candidate_every_policy_skips(name: str):
    assert PLACEMENT[name]().place(ANN, PlacementView(()), Random(0), 0.0) == Skip("ann", Reason.NO_CANDIDATE)


@pytest.mark.parametrize("name", PLACEMENT)
def test_the_same_arguments_give_the_same_answer(name: str):
    view, policy = loads(a=3.0, b=2.0, c=2.0), PLACEMENT[name]()
    assert len({policy.place(ANN, view, Random(7), 0.0) for _ in range(5)}) == 1


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        pytest.param(Newcomer("ann", (1, 1)), ("a", Reason.NEAREST_BY_DISTANCE), id="the nearest on the map"),
        pytest.param(Newcomer("ann", (5, 0)), ("a", Reason.NEAREST_BY_DISTANCE), id="a tie goes to the first name"),
        pytest.param(
            Newcomer("ann", (1, 1), {"b": 4.0, "gone": 1.0}),
            ("b", Reason.NEAREST_BY_LATENCY),
            id="a latency says more than the map",
        ),
        pytest.param(Newcomer("ann"), ("a", Reason.FEWEST_USERS), id="nothing known"),
        pytest.param(Newcomer("ann", None, {"gone": 1.0}), ("a", Reason.FEWEST_USERS), id="only others measured"),
    ],
)
def test_nearest(who: Newcomer, expected: tuple[str, Reason]):
    assert placed(Nearest(), who, places(b=(10.0, 0.0), a=(0.0, 0.0))) == expected


def test_nearest_on_the_sphere_wraps_at_the_date_line():
    view = places(fiji=(178.0, -18.0), hawaii=(-157.0, 21.0))
    samoa = Newcomer("ann", (-172.0, -13.0))
    assert placed(Nearest("sphere"), samoa, view)[0] == "fiji"
    assert placed(Nearest("plane"), samoa, view)[0] == "hawaii"


def test_a_degree_of_the_equator_is_111_km():
    assert great_circle_m((0, 0), (1, 0)) == pytest.approx(111_195, abs=1)


def test_a_place_told_the_long_way_round_has_a_distance_too():
    """Over the pole and on, rounding brings the haversine of next to nothing below 0."""
    assert great_circle_m((94.96, -44.09), (274.96, 224.09)) == pytest.approx(0, abs=1)
    assert great_circle_m((1e308, 1e308), (-1e308, 0)) <= math.pi * EARTH_RADIUS_M


def test_round_robin_gives_everyone_the_same_number():
    view, chosen = loads(c=9.0, a=0.0, b=5.0), []
    for _ in range(6):
        name, reason = placed(RoundRobin(), ANN, PlacementView(view.brokers, chosen[-1] if chosen else None))
        chosen.append(name)
    assert chosen == ["a", "b", "c"] * 2
    assert reason == Reason.NEXT_IN_TURN


def test_round_robin_goes_on_where_the_last_broker_has_left():
    assert placed(RoundRobin(), ANN, PlacementView(loads(a=0, c=0).brokers, "b"))[0] == "c"


def test_random_reaches_everyone_about_equally():
    rng, view = Random(1), loads(a=0, b=9, c=9)
    found = Counter(RandomBroker().place(ANN, view, rng, 0.0).broker for _ in range(3000))
    assert set(found) == {"a", "b", "c"}
    assert min(found.values()) > 900


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        pytest.param(loads(a=0.9, b=0.2), "b", id="prefers the lighter broker"),
        pytest.param(loads(b=0.5, a=0.5), "a", id="breaks ties on the name"),
        pytest.param(
            PlacementView((BrokerView("a", load=60, capacity=100), BrokerView("b", load=20, capacity=10))),
            "a",
            id="counts load by capacity",
        ),
        pytest.param(
            PlacementView((BrokerView("a", load=60, capacity=100), BrokerView("b", load=20))),
            "b",
            id="takes a broker that tells no capacity for one like the others",
        ),
        pytest.param(
            PlacementView((BrokerView("a", load=10, users=4, newcomers=3), BrokerView("b", load=15, users=1))),
            "b",
            id="counts those it has just placed",
        ),
    ],
)
def test_least_loaded(view: PlacementView, expected: str):
    assert placed(LeastLoaded(), ANN, view) == (expected, Reason.LEAST_LOADED)


def test_least_loaded_as_the_paper_has_it_overwhelms_the_lightest():
    view = PlacementView((BrokerView("a", load=10, users=9, newcomers=8), BrokerView("b", load=15, users=1)))
    assert placed(LeastLoaded(newcomer_weight=0), ANN, view)[0] == "a"
    assert placed(LeastLoaded(), ANN, view)[0] == "b"


def test_least_loaded_spreads_those_who_come_before_anyone_has_load():
    view = PlacementView((BrokerView("a", users=1, newcomers=1), BrokerView("b")))
    assert placed(LeastLoaded(newcomer_weight=0), ANN, view)[0] == "b"
