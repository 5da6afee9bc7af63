"""Kernels compile when they are imported; this imports them all, before anybody waits for one."""

from __future__ import annotations

import importlib

KERNEL_MODULES = ("siphash", "grid", "words", "table", "distance", "residual")


def warm_up() -> None:
    """Compile every kernel of the index now, or load it from the cache."""
    for name in KERNEL_MODULES:
        importlib.import_module(f"tocsin.matching.{name}")
