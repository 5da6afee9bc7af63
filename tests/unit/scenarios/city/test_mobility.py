from __future__ import annotations

import numpy as np
import pytest

from tocsin.errors import BadArgument
from tocsin.scenarios.city import City, Mobility
from tocsin.scenarios.city.mobility import DRIVING_M_S, RUSHING_M_S, WALKING_M_S
from tocsin.scenarios.city.routing import Router


def test_the_same_seed_moves_the_same_way(city: City) -> None:
    one, other = Mobility.people(city, 50, seed=3), Mobility.people(city, 50, seed=3)
    for _ in range(60):
        assert np.array_equal(one.step(1.0), other.step(1.0))


def test_another_seed_moves_another_way(city: City) -> None:
    assert not np.array_equal(Mobility.people(city, 50, 3).step(1.0), Mobility.people(city, 50, 4).step(1.0))


def test_people_stay_on_the_streets(city: City) -> None:
    people = Mobility.people(city, 60, seed=5)
    for _ in range(10):
        x, y = people.step(37.0)
        assert city.streets.distance_to(x, y).max() < 1e-6


@pytest.mark.parametrize("dt", [0.2, 1.0, 30.0])
def test_nobody_is_faster_than_their_kind(city: City, dt: float) -> None:
    people = Mobility.people(city, 500, seed=6)
    limit = np.where(people.is_driver, DRIVING_M_S[1], WALKING_M_S[1]) * dt
    before = np.stack(people.positions())
    for _ in range(40):
        after = np.stack(people.step(dt))
        assert (np.hypot(*(after - before)) <= limit + 1e-6).all()
        before = after


def test_who_moves_moves_at_a_plausible_speed(city: City) -> None:
    people = Mobility.people(city, 2_000, seed=7)
    people.step(600.0)
    before = np.stack(people.positions())
    moved = np.hypot(*(np.stack(people.step(1.0)) - before))
    walked = moved[~people.is_driver & (moved > 0)]
    driven = moved[people.is_driver & (moved > 0)]
    assert WALKING_M_S[0] < np.median(walked) < WALKING_M_S[1]
    assert DRIVING_M_S[0] * 0.5 < np.median(driven) < DRIVING_M_S[1]


def test_most_people_go_somewhere(city: City) -> None:
    people = Mobility.people(city, 300, seed=8)
    before = np.stack(people.positions())
    moved = np.hypot(*(np.stack(people.step(1_200.0)) - before))
    assert (moved > 100).mean() > 0.8


def test_a_share_of_the_people_drives(city: City) -> None:
    assert Mobility.people(city, 1_000, seed=9, drivers=0.3).is_driver.mean() == pytest.approx(0.3, abs=0.06)
    assert not Mobility.people(city, 10, seed=9, drivers=0.0).is_driver.any()


def test_publishers_cross_the_city_rapidly(city: City) -> None:
    publishers = Mobility.publishers(city, 8, seed=1)
    x, y = zip(*(publishers.step(5.0) for _ in range(360)), strict=True)
    assert np.ptp(np.stack(x), axis=0).min() > 5_000
    assert np.ptp(np.stack(y), axis=0).min() > 3_000
    hops = np.hypot(np.diff(np.stack(x), axis=0), np.diff(np.stack(y), axis=0))
    assert hops.max() <= RUSHING_M_S[1] * 5 + 1e-6
    assert np.median(hops) > 50


def test_time_may_stand_still_and_nobody_may_be_there(town: City) -> None:
    people = Mobility.people(town, 20, seed=1)
    before = people.positions()
    assert np.array_equal(people.step(0.0), before)
    assert Mobility.people(town, 0, seed=1).step(1.0)[0].shape == (0,)


def test_the_smallest_city_has_somewhere_to_go() -> None:
    hamlet = City.generate(3, (1_000, 1_000), districts=1, shelters=0, places=2)
    travellers = Mobility.publishers(hamlet, 5, seed=1)
    x, y = travellers.step(500.0)
    assert hamlet.streets.distance_to(x, y).max() < 1e-6


@pytest.mark.parametrize("dt", [-1.0, float("nan")])
def test_time_does_not_go_back(town: City, dt: float) -> None:
    with pytest.raises(BadArgument, match="dt"):
        Mobility.people(town, 1, seed=1).step(dt)


@pytest.mark.parametrize(("count", "drivers"), [(-1, 0.5), (1, 1.5)])
def test_impossible_crowds_are_refused(town: City, count: int, drivers: float) -> None:
    with pytest.raises(BadArgument, match="people"):
        Mobility.people(town, count, seed=1, drivers=drivers)


def test_ways_are_as_short_as_all_pairs_say(town: City) -> None:
    """Against a deliberately dumb twin: relaxing every edge until nothing changes."""
    streets, target = town.streets, town.places[0].point
    best = np.full(len(streets.x), np.inf)
    best[target] = 0.0
    for _ in range(len(streets.x)):
        np.minimum.at(best, streets.a, best[streets.b] + streets.length)
        np.minimum.at(best, streets.b, best[streets.a] + streets.length)
    router, points = Router(streets, np.array([target]), streets.length), np.arange(len(streets.x))
    assert router.left(np.zeros_like(points), points) == pytest.approx(best)


def test_following_the_arcs_leads_to_the_target(town: City) -> None:
    streets, target = town.streets, town.places[1].point
    router = Router(streets, np.array([target]), streets.length)
    here = np.arange(len(streets.x))
    for _ in range(len(streets.x)):
        away = here[here != target]
        here = streets.arc_to[router.next_arc(np.zeros_like(away), away)]
        if not len(away):
            break
    assert not len(here)
