"""Small worlds for balancing, written in one line."""

from __future__ import annotations

import numpy as np

from tocsin.policies.multistage.snapshot import Snapshot


def world(
    homes: str, capacities: dict[str, float] | None = None, pinned: set[str] = frozenset(), **rates: float
) -> Snapshot:
    """``world("a: x=AB y=A | b: z=", A=2, B=1)``: x at broker a wants A and B, z at b wants nothing."""
    placed: dict[str, str] = {}
    wants: dict[str, set[str]] = {}
    brokers: dict[str, float] = {}
    for part in homes.split("|"):
        name, _, people = part.partition(":")
        brokers[name.strip()] = 1.0
        for person in people.split():
            user, _, keys = person.partition("=")
            placed[user], wants[user] = name.strip(), set(keys)
    return Snapshot.from_names(placed, wants, rates, brokers | (capacities or {}), pinned)


def dumb_loads(snapshot: Snapshot, assigned: np.ndarray) -> list[float]:
    """Equation 5 as it reads."""
    loads = []
    for j in range(snapshot.m):
        sent = [
            k
            for i in range(snapshot.n)
            if assigned[i] == j
            for k in snapshot.items[snapshot.offsets[i] : snapshot.offsets[i + 1]]
        ]
        loads.append(sum(snapshot.rates[k] for k in sent) + sum(snapshot.rates[k] for k in set(sent)))
    return loads
