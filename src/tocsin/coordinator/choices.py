"""Which policies balance, as configured or as chosen while running.

The framework's own thresholds are the paper's. ``LIVE`` are those of a running system, where nothing was said: a
mean load that no broker notices is not worth a move, and nearly everybody is moved, as a shuffle does, only when the
load lies so unevenly that most have to move anyway. Where loads are ``relative``, bytes a second say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tocsin.policies.registry import BALANCING, balancing_policy

LIVE: Mapping[str, str] = {"gamma": "1"}
LIVE_BYTES: Mapping[str, str] = {"beta": "10000", "theta": "10000"}
SHUFFLES = frozenset({"gsh", "simsh"})


class PolicyChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A policy by name, its parameters as texts."""

    name: str
    options: dict[str, str] = {}


class BalancingChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The framework's two stages, either of which may be left out, and its ``options``; without both it is off."""

    migrate: PolicyChoice | None = None
    shuffle: PolicyChoice | None = None
    options: dict[str, str] = {}

    @property
    def is_off(self) -> bool:
        return self.migrate is None and self.shuffle is None

    @property
    def in_force(self) -> BalancingChoice:
        """With every threshold that is not the framework's own."""
        is_relative = self.options.get("relative", "false").lower() in ("true", "1")
        usual = LIVE if is_relative else {**LIVE, **LIVE_BYTES}
        return BalancingChoice(self.migrate, self.shuffle, {**usual, **self.options})


def check(choice: BalancingChoice) -> None:
    """ConfigError where that cannot be. Only where options are written are the policies themselves loaded for it,
    which takes seconds."""
    chosen = [one for one in (choice.migrate, choice.shuffle) if one is not None]
    for one in chosen:
        if one.name not in BALANCING:
            balancing_policy(one.name)
    if choice.options or any(one.options for one in chosen):
        from tocsin.coordinator.framing import framework_of

        framework_of(choice, 1)
