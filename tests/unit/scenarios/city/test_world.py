from __future__ import annotations

import numpy as np
import pytest

from tocsin.errors import BadArgument
from tocsin.scenarios.city import City
from tocsin.scenarios.city.lattice import ARTERIAL
from tocsin.scenarios.city.network import components


def test_the_same_seed_makes_the_same_city(city: City) -> None:
    again = City.generate(1)
    assert again.shelters == city.shelters
    assert again.places == city.places
    assert np.array_equal(again.streets.x, city.streets.x)
    assert np.array_equal(again.streets.a, city.streets.a)
    assert again.streets.names == city.streets.names


def test_another_seed_makes_another_city(city: City) -> None:
    assert City.generate(2).shelters != city.shelters


@pytest.mark.parametrize("seed", range(8))
def test_every_junction_can_be_reached_and_lies_in_the_city(seed: int) -> None:
    streets = City.generate(seed, (4_000, 3_000), districts=5).streets
    assert len(set(components(len(streets.x), streets.a, streets.b).tolist())) == 1
    assert streets.x.min() >= 0
    assert streets.x.max() <= 4_000
    assert streets.y.min() >= 0
    assert streets.y.max() <= 3_000


def test_streets_fill_the_city(city: City) -> None:
    streets = city.streets
    columns = np.unique((streets.x // 1_000).astype(int))
    rows = np.unique((streets.y // 1_000).astype(int))
    assert set(range(10)) <= set(columns.tolist())
    assert set(range(8)) <= set(rows.tolist())
    assert len(streets.x) > 3_000


def test_edges_are_short_and_never_loops(city: City) -> None:
    assert city.streets.length.min() > 1
    assert city.streets.length.max() < 500
    assert (city.streets.a != city.streets.b).all()


def test_the_centre_is_denser_than_the_edge(city: City) -> None:
    centre, streets = city.districts[0], city.streets
    middle = np.hypot(streets.x - centre.x, streets.y - centre.y) < 1_000
    corners = np.hypot(np.minimum(streets.x, 10_000 - streets.x), np.minimum(streets.y, 8_000 - streets.y)) < 1_000
    circle, quarters = np.pi * 1_000**2, 4 * np.pi * 1_000**2 / 4
    assert middle.sum() / circle > 3 * corners.sum() / quarters


def test_only_arterials_cross_the_river(city: City) -> None:
    streets = city.streets
    south = city.river.is_south(streets.x, streets.y)
    bridges = south[streets.a] != south[streets.b]
    assert 2 <= bridges.sum() <= 30
    assert (streets.rank[bridges] == ARTERIAL).all()


def test_no_junction_lies_in_the_river(city: City) -> None:
    river, streets = city.river, city.streets
    assert np.abs(streets.y - river.height_at(streets.x)).min() >= river.half_width_m - 1e-6


def test_streets_meet_only_in_junctions(town: City) -> None:
    """Every pair of edges without a common end keeps apart."""
    streets = town.streets
    first, second = np.triu_indices(len(streets.a), 1)
    ends = [streets.a[first], streets.b[first], streets.a[second], streets.b[second]]
    apart = (ends[0] != ends[2]) & (ends[0] != ends[3]) & (ends[1] != ends[2]) & (ends[1] != ends[3])
    p, q, r, s = (np.stack([streets.x[end[apart]], streets.y[end[apart]]]) for end in ends)
    crossing = (_side(p, q, r) * _side(p, q, s) < 0) & (_side(r, s, p) * _side(r, s, q) < 0)
    assert not crossing.any()


def _side(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def test_shelters_have_names_of_their_own_a_place_and_room(city: City) -> None:
    assert len(city.shelters) == 200
    assert len({shelter.name for shelter in city.shelters}) == 200
    assert all(0 <= s.x <= 10_000 and 0 <= s.y <= 8_000 and s.capacity >= 50 for s in city.shelters)


def test_shelters_stand_beside_streets(city: City) -> None:
    x = np.array([shelter.x for shelter in city.shelters])
    y = np.array([shelter.y for shelter in city.shelters])
    assert city.streets.distance_to(x, y).max() < 40


def test_a_shelter_is_a_record_of_its_dataset(city: City) -> None:
    assert list(city.shelters[0].record()) == ["name", "x", "y", "capacity"]


def test_places_are_distinct_junctions(city: City) -> None:
    assert len({place.point for place in city.places}) == len(city.places) == 64


def test_people_live_mostly_in_dense_districts(city: City) -> None:
    assert city.population.sum() == pytest.approx(1.0)
    assert city.district_at(city.districts[0].x, city.districts[0].y) == city.districts[0]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        pytest.param({"size_m": (10, 10)}, "size_m", id="a city is at least a kilometre wide"),
        pytest.param({"size_m": (10_000, float("nan"))}, "size_m", id="a side is a number"),
        pytest.param({"districts": 0}, "districts", id="a city has a district"),
        pytest.param({"shelters": -1}, "shelters", id="shelters are counted from 0"),
        pytest.param({"places": 1}, "places", id="nobody can travel between less than two places"),
        pytest.param({"places": 1_000_000}, "places", id="every place needs a junction"),
        pytest.param({"seed": -1}, "seed", id="seeds are not negative"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], named: str) -> None:
    with pytest.raises(BadArgument, match=named):
        City.generate(**{"size_m": (1_000, 1_000), "districts": 1, "shelters": 1, **arguments})
