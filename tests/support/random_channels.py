"""Channels, subscriptions and records drawn at random, for holding the two strategies against each other.

What is drawn is such that things often meet: few kinds, few words, places close together. NULLs are
everywhere, in records and in arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

SCHEMA = """
CREATE ACTIVE DATASET Reports (id STRING, kind STRING, zone INT, n BIGINT, x DOUBLE, y DOUBLE, lat DOUBLE, lon DOUBLE,
                               radius DOUBLE, text STRING, at TIMESTAMP);
CREATE DATASET Users (user STRING, x DOUBLE, y DOUBLE, zone INT) PRIMARY KEY (user);
CREATE DATASET Kinds (kind STRING, label STRING);
CREATE BROKER b1 AT 'http://127.0.0.1:9/nobody';
"""
KINDS = ("fire", "flood", "storm", "Fire", "")
WORDS = ("smoke", "Water", "élan", "road", "7")
USERS = tuple(f"user{i}" for i in range(8))


@dataclass(frozen=True)
class Condition:
    """SQL over ``r`` (or ``u``), the parameters it brings, and how their values are drawn."""

    sql: str
    parameters: tuple[tuple[str, str], ...]
    draw: Callable[[Random], list[Any]]


def _place(rng: Random) -> list[Any]:
    return [round(rng.uniform(0, 2000), 1), round(rng.uniform(0, 2000), 1)]


def _globe(rng: Random) -> list[Any]:
    return [round(rng.uniform(59.9, 60.1), 4), round((179.9 + rng.uniform(0, 0.2) + 180) % 360 - 180, 4)]


_AT = (("px", "DOUBLE"), ("py", "DOUBLE"))
_ON = (("lat", "DOUBLE"), ("lon", "DOUBLE"))
CONDITIONS = (
    Condition("r.kind = :kind", (("kind", "STRING"),), lambda r: [r.choice(KINDS)]),
    Condition(":zone = r.zone", (("zone", "INT"),), lambda r: [r.randrange(4)]),
    Condition("r.n >= :low AND r.n < :high", (("low", "BIGINT"), ("high", "BIGINT")),
              lambda r: [r.randint(-50, 50), r.randint(0, 100)]),
    Condition("r.x BETWEEN :west AND :east", (("west", "DOUBLE"), ("east", "DOUBLE")),
              lambda r: [r.uniform(0, 1000), r.uniform(500, 2000)]),
    Condition("r.at <= :until", (("until", "TIMESTAMP"),), lambda r: [f"2026-01-{r.randint(1, 28):02}T00:00:00Z"]),
    Condition("r.kind IN (:kinds)", (("kinds", "ARRAY<STRING>"),), lambda r: [r.sample(KINDS, r.randint(0, 3))]),
    Condition("r.zone IN (:zones)", (("zones", "ARRAY<INT>"),), lambda r: [r.sample(range(4), r.randint(1, 3))]),
    Condition("has_word(r.text, :word)", (("word", "STRING"),), lambda r: [r.choice((*WORDS, "SMOKE", "two words"))]),
    Condition("distance(r.x, r.y, :px, :py) < :reach", (*_AT, ("reach", "DOUBLE")),
              lambda r: [*_place(r), r.choice([0.0, 50.0, 400.0, 1500.0])]),
    Condition("distance(:px, :py, r.x, r.y) <= 250.5", _AT, _place),
    Condition("distance(r.x, r.y, :px, :py) < r.radius", _AT, _place),
    Condition("distance_m(r.lat, r.lon, :lat, :lon) <= :metres", (*_ON, ("metres", "DOUBLE")),
              lambda r: [*_globe(r), r.choice([100.0, 3000.0, 9000.0])]),
    Condition("distance_m(:lat, :lon, r.lat, r.lon) < 5000", _ON, _globe),
)  # fmt: skip
OF_USER = Condition("u.user = :user", (("user", "STRING"),), lambda r: [r.choice(USERS)])
_PLAIN = "SELECT r.id, r.n, r.kind FROM Reports r"
_LABELLED = "SELECT r.id, k.label FROM Reports r JOIN Kinds k ON k.kind = r.kind"
_NEAR_USER = """SELECT r.id, u.user, distance(r.x, r.y, u.x, u.y) AS d
FROM Reports r JOIN Users u ON distance(r.x, r.y, u.x, u.y) < r.radius"""
_IN_ZONE = "SELECT r.id, u.user FROM Reports r JOIN Users u ON u.zone = r.zone"


@dataclass(frozen=True)
class RandomChannel:
    conditions: tuple[Condition, ...]
    query: str

    @property
    def parameters(self) -> str:
        return ", ".join(f"{name} {kind}" for c in self.conditions for name, kind in c.parameters)

    def arguments(self, rng: Random) -> list[Any]:
        drawn = [value for c in self.conditions for value in c.draw(rng)]
        return [None if rng.random() < 0.03 else value for value in drawn]


def random_channel(rng: Random, first: Condition) -> RandomChannel:
    """A channel with ``first`` and up to two more conditions that share no parameter."""
    chosen = [first]
    for condition in rng.sample(CONDITIONS, rng.randint(0, 2)):
        taken = {name for c in chosen for name, _ in c.parameters}
        if not taken.intersection(name for name, _ in condition.parameters):
            chosen.append(condition)
    source = _PLAIN if rng.random() < 0.6 else _LABELLED
    if first is OF_USER:
        source = rng.choice([_NEAR_USER, _IN_ZONE])
    plain = [rng.choice(["r.n IS NOT NULL", "r.zone <> 3", "length(r.id) > 1"])] if rng.random() < 0.4 else []
    return RandomChannel(tuple(chosen), f"{source} WHERE {' AND '.join([c.sql for c in chosen] + plain)}")


def random_report(rng: Random, id: str) -> dict[str, Any]:
    x, y = _place(rng)
    lat, lon = _globe(rng)
    words = " ".join(rng.choice((*WORDS, "smokeless", "-", "SMOKE!")) for _ in range(rng.randint(0, 5)))
    record = {
        "kind": rng.choice(KINDS), "zone": rng.randrange(5), "n": rng.randint(-100, 150), "x": x, "y": y, "lat": lat,
        "lon": lon, "radius": rng.choice([0.0, 100.0, 700.0]), "text": words,
        "at": f"2026-01-{rng.randint(1, 28):02}T00:00:00Z",
    }  # fmt: skip
    return {"id": id} | {name: None if rng.random() < 0.06 else value for name, value in record.items()}


def random_user(rng: Random, user: str) -> dict[str, Any]:
    x, y = _place(rng)
    return {"user": user, "x": None if rng.random() < 0.1 else x, "y": y, "zone": rng.randrange(5)}
