"""Parameters that make no sense are refused where a policy is made; the registry makes the ValueError a ConfigError."""

from __future__ import annotations

import math


def at_least(name: str, value: float, least: float) -> None:
    """And finite: a window without end would be remembered without end."""
    if not least <= value < math.inf:
        raise ValueError(f"{name}: expected at least {least} and finite, got {value}")


def above(name: str, value: float, bound: float) -> None:
    """Likewise."""
    if not bound < value < math.inf:
        raise ValueError(f"{name}: expected above {bound} and finite, got {value}")


def between(name: str, value: float, least: float, most: float) -> None:
    """Both included; for what kernels count with, or what multiplies the time that a plan takes."""
    if not least <= value <= most:
        raise ValueError(f"{name}: expected {least} to {most}, got {value}")
