from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tocsin.errors import BadArgument
from tocsin.scenarios.city import KINDS
from tocsin.scenarios.subscriptions import Columns, uniform_keys, uniform_reports, uniform_spatial

MAKERS = [uniform_spatial, uniform_reports, lambda n, seed: uniform_keys(n, 100, seed)]


@pytest.mark.parametrize("make", MAKERS, ids=["spatial", "reports", "keys"])
def test_the_same_seed_gives_the_same_columns(make: Callable[[int, int], Columns]) -> None:
    one, same, other = make(500, 1), make(500, 1), make(500, 2)
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert any(not np.array_equal(one[name], other[name]) for name in one)
    assert {len(column) for column in one.values()} == {500}


def test_spatial_subscriptions_fill_10_by_8_km_with_radii_of_200_to_1000_m() -> None:
    made = uniform_spatial(100_000, 1)
    assert list(made) == ["kind", "x", "y", "radius"]
    for name, low, high in (("x", 0, 10_000), ("y", 0, 8_000), ("radius", 200, 1_000)):
        assert low <= made[name].min() < low + 10
        assert high - 10 < made[name].max() <= high
        assert made[name].mean() == pytest.approx((low + high) / 2, rel=0.01)
    kinds, counts = np.unique(made["kind"], return_counts=True)
    assert set(kinds.tolist()) == set(KINDS)
    assert counts.min() > 12_000


def test_reports_have_the_columns_of_the_dataset_and_ids_of_their_own() -> None:
    made = uniform_reports(5_000, 1)
    assert list(made) == ["report_id", "kind", "severity", "x", "y", "radius", "text", "at"]
    assert len(np.unique(made["report_id"])) == 5_000
    assert (np.diff(made["at"]).astype(int) == 1_000).all()
    assert set(np.unique(made["severity"]).tolist()) == {1, 2, 3, 4, 5}


def test_reports_and_subscriptions_of_one_seed_are_independent() -> None:
    assert not np.array_equal(uniform_reports(100, 1)["x"], uniform_spatial(100, 1)["x"])


def test_keys_use_every_value_about_equally() -> None:
    counts = np.unique(uniform_keys(1_050, 100, 1)["key"], return_counts=True)[1]
    assert len(counts) == 100
    assert set(counts.tolist()) == {10, 11}


@pytest.mark.parametrize(
    ("make", "named"),
    [
        pytest.param(lambda: uniform_spatial(-1), "n:", id="subscriptions are counted from 0"),
        pytest.param(lambda: uniform_keys(5, 0), "distinct:", id="there is a value to use"),
        pytest.param(lambda: uniform_reports(5, seed=True), "seed:", id="a seed is a number"),
    ],
)
def test_bad_arguments_are_named(make: Callable[[], Columns], named: str) -> None:
    with pytest.raises(BadArgument, match=named):
        make()
