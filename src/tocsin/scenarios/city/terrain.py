"""What makes a lattice look grown: bent streets, a river with banks, parks.

Each map here is continuous and keeps neighbours neighbours, so a planar network stays planar, and
leaves the city's border where it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Size = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Park:
    """A round green without streets; arterials pass through."""

    name: str
    x: float
    y: float
    radius_m: float


@dataclass(frozen=True, slots=True)
class River:
    """A river from west to east: the height of its middle is a sum of waves over ``x``."""

    middle: float
    slope: float
    waves: tuple[tuple[float, float, float], ...]  # amplitude, wave number, phase
    half_width_m: float
    reach_m: float  # how far from its middle streets give way

    @staticmethod
    def generate(size: Size, rng: np.random.Generator) -> River:
        width, height = size
        waves = tuple(
            (height * amplitude * rng.uniform(0.6, 1.0), 2 * math.pi * turns / width, rng.uniform(0, 2 * math.pi))
            for amplitude, turns in ((0.05, 0.9), (0.025, 2.3))
        )
        middle, slope = height * rng.uniform(0.4, 0.6), height / width * rng.uniform(-0.15, 0.15)
        return River(middle - slope * width / 2, slope, waves, min(70.0, height * 0.02), min(700.0, height * 0.2))

    def height_at(self, x: Floats) -> Floats:
        level = self.middle + self.slope * x
        for amplitude, number, phase in self.waves:
            level = level + amplitude * np.sin(number * x + phase)
        return level

    def part(self, x: Floats, y: Floats) -> Floats:
        """Heights after making room: what is at the middle moves to a bank, what is far stays."""
        offset = y - self.height_at(x)
        share = (self.reach_m - self.half_width_m) / self.reach_m
        moved = np.where(offset < 0, -1.0, 1.0) * (self.half_width_m + np.abs(offset) * share)
        return np.where(np.abs(offset) < self.reach_m, self.height_at(x) + moved, y)

    def is_south(self, x: Floats, y: Floats) -> NDArray[np.bool_]:
        return y < self.height_at(x)


def bend(x: Floats, y: Floats, size: Size, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Push points along smooth waves; nothing moves at the border."""
    width, height = size
    calm = _calm(x, width) * _calm(y, height)
    bent_x, bent_y = x + calm * _swell(x, y, size, rng), y + calm * _swell(x, y, size, rng)
    return np.clip(bent_x, 0.0, width), np.clip(bent_y, 0.0, height)


def _calm(value: Floats, extent: float) -> Floats:
    margin = np.minimum(value, extent - value) / (0.12 * extent)
    return np.clip(margin, 0.0, 1.0)


def _swell(x: Floats, y: Floats, size: Size, rng: np.random.Generator) -> Floats:
    short = min(size)
    total = np.zeros_like(x)
    for wavelength, amplitude in ((0.75, 0.024), (0.4, 0.01), (0.16, 0.003)):
        angle, phase = rng.uniform(0, 2 * math.pi, 2)
        along = (x * math.cos(angle) + y * math.sin(angle)) / (wavelength * short)
        total += amplitude * short * np.sin(2 * math.pi * along + phase)
    return total


def uneven(count: int, extent: float, rng: np.random.Generator) -> Floats:
    """``count + 1`` rising positions from 0 to ``extent``, the gaps between them uneven."""
    gaps = rng.uniform(0.75, 1.25, count)
    return np.concatenate([[0.0], np.cumsum(gaps) / gaps.sum() * extent])
