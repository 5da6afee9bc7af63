"""Parameters that make no sense are refused where a policy is made."""

from __future__ import annotations


def at_least(name: str, value: float, least: float) -> None:
    """ValueError with what was expected; the registry makes it a ConfigError."""
    if not value >= least:
        raise ValueError(f"{name}: expected at least {least}, got {value}")


def above(name: str, value: float, bound: float) -> None:
    if not value > bound:
        raise ValueError(f"{name}: expected above {bound}, got {value}")
