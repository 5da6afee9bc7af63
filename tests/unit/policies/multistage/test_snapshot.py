"""Snapshots and the load model: what a world weighs."""

from __future__ import annotations

import numpy as np
import pytest

from balancing_world import world
from tocsin.policies.multistage.load import LoadModel, weights
from tocsin.policies.multistage.snapshot import BadSnapshot, Snapshot

SHARED = world("b: y=A z= | a: x=AB w=B", A=2.0, B=1.0)


def test_names_are_sorted_whatever_order_they_came_in():
    assert SHARED.brokers == ("a", "b")
    assert SHARED.subscribers == ("w", "x", "y", "z")
    assert SHARED.assigned.tolist() == [0, 0, 1, 1]
    assert weights(SHARED).tolist() == [1.0, 3.0, 2.0, 0.0]


def test_a_broker_fetches_once_what_it_sends_to_many():
    model = LoadModel(SHARED)
    assert model.loads.tolist() == [(2 + 1) + (2 + 1 + 1), 2 + 2]
    assert (model.total, model.mean, model.maximum) == (11.0, 5.5, 7.0)
    assert model.cov == pytest.approx(1.5 / 5.5)


def test_a_move_is_undone_by_a_move():
    model, x = LoadModel(SHARED), 1
    assert model.move(x, 1) == 0
    assert model.loads.tolist() == [2.0, 8.0]
    model.move(x, 0)
    assert model.loads.tolist() == LoadModel(SHARED).loads.tolist()


def test_levels_are_loads_by_capacity_and_equal_levels_are_balance():
    model = LoadModel(world("a: x=A y=B | b: z=C", {"a": 2.0, "b": 1.0}, A=1, B=1, C=1))
    assert model.levels.tolist() == [2.0, 2.0]
    assert model.cov == 0.0


def test_nothing_flowing_is_balanced():
    assert LoadModel(world("a: x= | b:")).cov == 0.0


def test_a_key_without_a_rate_weighs_nothing():
    assert LoadModel(world("a: x=AZ | b:", A=2.0)).loads.tolist() == [4.0, 0.0]


def raw(**changed: object) -> Snapshot:
    fine = {"offsets": [0, 2, 3], "items": [0, 1, 1], "rates": [1, 2], "assigned": [0, 1], "capacities": [1, 1]}
    return Snapshot(**{name: np.array(value) for name, value in (fine | changed).items()})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({"capacities": []}, "needs a broker", id="no broker"),
        pytest.param({"capacities": [1, 0]}, "capacities: expected above 0", id="a broker that can carry nothing"),
        pytest.param({"rates": [1, -2]}, "rates: expected finite", id="a rate below zero"),
        pytest.param({"rates": [1, np.nan]}, "rates: expected finite", id="a rate that is no number"),
        pytest.param({"assigned": [0, 2]}, "assigned: expected brokers from 0 to 1", id="an unknown broker"),
        pytest.param({"items": [0, 2, 1]}, "items: expected backend subscriptions", id="an unknown subscription"),
        pytest.param({"items": [1, 0, 1]}, "rising order", id="out of order"),
        pytest.param({"items": [1, 1, 1]}, "each once", id="one twice"),
        pytest.param({"offsets": [0, 3]}, "offsets: expected 3 for 2 subscribers", id="a row missing"),
        pytest.param({"offsets": [0, 4, 3]}, "offsets: expected to rise", id="offsets that fall"),
        pytest.param({"pinned": [True]}, "pinned: expected 2", id="pins for others"),
    ],
)
def test_what_is_no_world_is_refused(changed: dict, said: str):
    with pytest.raises(BadSnapshot, match=said):
        raw(**changed)


def test_the_order_in_which_things_were_heard_of_does_not_matter():
    users, streams, brokers = "xyz", {"A": 0.1, "B": 0.2, "C": 0.3}, {"a": 1.0, "b": 2.0}
    one, other = (
        Snapshot.from_names(
            dict.fromkeys(users[::way], "a"),
            {user: set(streams) for user in users},
            dict(list(streams.items())[::way]),
            dict(list(brokers.items())[::way]),
        )
        for way in (1, -1)
    )
    assert (one.rates.tolist(), one.capacities.tolist()) == (other.rates.tolist(), other.capacities.tolist())
    assert weights(one).tolist() == weights(other).tolist(), "to the last bit, for ties hang on it"


def test_a_user_at_an_unknown_broker_is_named():
    with pytest.raises(BadSnapshot, match="user 'x' is at 'c', expected one of a, b"):
        Snapshot.from_names({"x": "c"}, {}, {}, {"a": 1.0, "b": 1.0})
