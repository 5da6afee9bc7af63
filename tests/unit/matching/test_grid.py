from __future__ import annotations

import math

import numpy as np
import pytest

from tocsin.matching.grid import (
    EARTH_RADIUS_M,
    cells_planar,
    cells_sphere,
    cover_planar,
    cover_sphere,
    level_of,
)


@pytest.mark.parametrize(
    ("radius", "level"),
    [
        pytest.param(0.0, 0, id="a point is at the finest level"),
        pytest.param(750.0, 0, id="three cells wide still fits"),
        pytest.param(750.0001, 1, id="a little more takes the next level"),
        pytest.param(1500.0, 1, id="three cells of the next level fit"),
        pytest.param(-5.0, 0, id="a negative radius covers nothing anywhere"),
        pytest.param(math.nan, 0, id="so does NaN"),
    ],
)
def test_level_of(radius: float, level: int) -> None:
    assert level_of(radius, 500.0) == level


@pytest.mark.parametrize(
    ("x", "y", "r", "cells"),
    [
        pytest.param(250, 250, 100, {(0, 0)}, id="inside one cell"),
        pytest.param(250, 250, 250, {(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)}, id="touching its borders counts"),
        pytest.param(490, 490, 12, {(0, 0), (1, 0), (0, 1)}, id="a corner out of reach is left out"),
        pytest.param(250, 250, 0, {(0, 0)}, id="radius zero covers its own cell"),
        pytest.param(250, 250, -1, set(), id="a negative radius covers nothing"),
        pytest.param(250, 250, math.nan, set(), id="NaN covers nothing"),
        pytest.param(math.inf, 250, 10, set(), id="nowhere covers nothing"),
    ],
)
def test_cover_planar(x: float, y: float, r: float, cells: set[tuple[int, int]]) -> None:
    owner, level, cx, cy = cover_planar([x], [y], [r], 500.0)
    assert set(zip(cx.tolist(), cy.tolist(), strict=True)) == cells
    assert not owner.any()
    assert not level.any()


def test_covers_name_their_owners_in_order_and_the_level_of_each() -> None:
    owner, level, _, _ = cover_planar([0, 0, 100], [0, 0, 100], [100, 4000, 10], 500.0)
    assert (np.diff(owner) >= 0).all()
    assert dict(zip(owner.tolist(), level.tolist(), strict=True)) == {0: 0, 1: 3, 2: 0}


def test_a_circle_covers_at_most_sixteen_cells_and_their_borders() -> None:
    rng = np.random.default_rng(1)
    owner, *_ = cover_planar(rng.uniform(0, 1e4, 2000), rng.uniform(0, 1e4, 2000), rng.uniform(0, 5e3, 2000), 500.0)
    assert np.bincount(owner).max() <= 16


def test_every_point_within_a_planar_circle_lies_in_a_covered_cell() -> None:
    rng = np.random.default_rng(2)
    for scale in (1.0, 1e3, 1e9):
        x, y, r = rng.normal(0, scale, 50), rng.normal(0, scale, 50), rng.uniform(0, 3000, 50)
        owner, level, cx, cy = cover_planar(x, y, r, 500.0)
        covered = set(zip(owner.tolist(), level.tolist(), cx.tolist(), cy.tolist(), strict=True))
        for i in range(50):
            angle, far = rng.uniform(0, 2 * np.pi, 40), np.append(rng.uniform(0, 1, 30), np.ones(10))
            px, py = x[i] + r[i] * far * np.cos(angle), y[i] + r[i] * far * np.sin(angle)
            k = int(level_of(r[i], 500.0))
            assert {
                (i, k, a, b) for a, b in zip(*(c.tolist() for c in cells_planar(px, py, k, 500.0)), strict=True)
            } <= covered


@pytest.mark.parametrize("lat", [0.0, 45.0, 89.99, 90.0, -90.0], ids=lambda v: f"at latitude {v}")
@pytest.mark.parametrize("lon", [0.0, 180.0, -179.9999], ids=lambda v: f"at longitude {v}")
@pytest.mark.parametrize("r", [0.0, 10.0, 900.0, 5e6], ids=lambda v: f"{v} m around")
def test_every_point_within_a_cap_lies_in_a_covered_cube(lat: float, lon: float, r: float) -> None:
    owner, level, *cubes = cover_sphere([lat], [lon], [r], 500.0)
    covered = set(zip(level.tolist(), *(c.tolist() for c in cubes), strict=True))
    bearing = np.linspace(0, 2 * np.pi, 73)
    for share in (0.0, 0.5, 1.0):
        k = int(level_of(r, 500.0))
        found = cells_sphere(*_travelled(lat, lon, bearing, r * share), k, 500.0)
        assert {(k, *cube) for cube in zip(*(c.tolist() for c in found), strict=True)} <= covered
    assert owner.size < 80


def _travelled(lat: float, lon: float, bearing: np.ndarray, metres: float) -> tuple[np.ndarray, np.ndarray]:
    """Where one arrives that leaves in these directions along great circles."""
    p, q, d = math.radians(lat), math.radians(lon), metres / EARTH_RADIUS_M
    p2 = np.arcsin(np.clip(np.sin(p) * np.cos(d) + np.cos(p) * np.sin(d) * np.cos(bearing), -1, 1))
    q2 = q + np.arctan2(np.sin(bearing) * np.sin(d) * np.cos(p), np.cos(d) - np.sin(p) * np.sin(p2))
    return np.degrees(p2), np.degrees(q2)
