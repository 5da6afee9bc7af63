"""The world of section 6.1: the test-bed's emergency city, 5 brokers, 400 subscribers, 7 channels, half an hour.

City, channels and wishes are those of the city scenario, which demo and live system play too: about 600 backend and
2,200 frontend subscriptions, 10,000 reports of 200 to 700 bytes. Three things are simpler here. People and publishers
go straight from place to place, not along streets. A result weighs what its report weighs. Whether somebody is near is
asked when the report comes, not when the channel runs.

The paper does not say where its brokers stand. Here one is in the middle of the city and one in each quarter, so that
nearest placement follows the people, who live in the middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin.errors import BadArgument
from tocsin.lab.limits import WEEK_S, Ranges, check_cells, check_within
from tocsin.lab.world import World
from tocsin.policies.base import Point
from tocsin.policies.multistage.snapshot import Flags, Floats, Ints
from tocsin.scenarios.city import KINDS, RADIUS_M, Intent, channels, subscribers
from tocsin.scenarios.city.audience import user_name
from tocsin.scenarios.city.emergencies import AT_LEAST, LARGEST_BYTES, SMALLEST_BYTES
from tocsin.scenarios.city.mobility import DRIVING_M_S, RUSHING_M_S, WALKING_M_S
from tocsin.scenarios.city.world import City
from tocsin.scenarios.seeding import stream

SPOTS = ((0.5, 0.5), (0.2, 0.2), (0.8, 0.2), (0.2, 0.8), (0.8, 0.8))  # of the city's width and height
RESTS_S = 120.0
RANGES: Ranges = {
    "subscribers": (1, 100_000),
    "reports": (0, 10_000_000),
    "duration_s": (1, WEEK_S),
    "login_s": (1, WEEK_S),
    "subscribe_s": (1, WEEK_S),
    "drivers": (0, 1),
}
REPORTS = 10_000


@dataclass(frozen=True, slots=True)
class Prototype:
    """Every number of section 6.1.2."""

    subscribers: int = 400
    reports: int = REPORTS
    duration_s: int = 1800
    login_s: int = 240
    subscribe_s: int = 240
    drivers: float = 0.3
    spots: tuple[Point, ...] = SPOTS

    def __post_init__(self) -> None:
        check_within(self, RANGES)
        if not self.spots or not all(0 <= at <= 1 for spot in self.spots for at in spot):
            raise BadArgument("spots", "some, as parts of the city's width and height from 0 to 1", self.spots)
        check_cells(
            subscribers_x_duration_s=self.subscribers * self.duration_s,
            brokers_x_duration_s=len(self.spots) * self.duration_s,
        )

    def world(self, seed: int) -> World:
        city, rng = City.generate(seed), stream(seed, "prototype")
        intents = list(subscribers(city, self.subscribers, seed))
        keys = list(dict.fromkeys(intent.key for intent in intents))
        who, what = _pairs(intents, keys)
        logins = rng.integers(0, self.login_s, self.subscribers)
        since = self.login_s + rng.integers(0, self.subscribe_s, len(who))
        people = self._people(city, rng)
        homes = people[np.arange(self.subscribers), :, np.minimum(logins, self.duration_s - 1)]
        results = Reported(_Reports.drawn(self, city, rng), people, keys, self.duration_s)
        brokers = tuple((x * city.size_m[0], y * city.size_m[1]) for x, y in self.spots)
        return World(self.duration_s, brokers, homes, logins, who, what, since, len(keys), results)

    def _people(self, city: City, rng: np.random.Generator) -> Floats:
        drives = rng.random(self.subscribers) < self.drivers
        low, high = (np.where(drives, DRIVING_M_S[side], WALKING_M_S[side]) for side in (0, 1))
        return ways(city, rng.uniform(low, high), city.population, RESTS_S, self.duration_s, rng)


class Reported:
    """Results of the channels: what of the reports since the last execution matches each subscription."""

    def __init__(self, reports: _Reports, people: Floats, keys: list[tuple[Any, ...]], duration_s: int) -> None:
        self.table = np.zeros((duration_s, len(keys)))
        period_s = {channel.name: int(channel.period_s) for channel in channels()}
        for k, (channel, *args) in enumerate(keys):
            period = period_s[channel]
            due = (reports.at // period + 1) * period - 1
            matched = reports.match(dict(args), people) & (due < duration_s)
            self.table[:, k] = np.bincount(due[matched], reports.sizes[matched], duration_s)

    def at(self, second: int) -> Floats:
        row: Floats = self.table[second]
        return row


@dataclass(frozen=True, eq=False)
class _Reports:
    """By report: its second, kind, severity, size, position and how far it reaches."""

    at: Ints
    kinds: Ints
    severities: Ints
    sizes: Floats
    spots: Floats
    radii: Floats

    @classmethod
    def drawn(cls, settings: Prototype, city: City, rng: np.random.Generator) -> _Reports:
        count = settings.reports
        at = np.sort(rng.integers(0, settings.duration_s, count))
        kinds = rng.integers(0, len(KINDS), count)
        severities = 1 + (rng.random((count, 1)) < np.array(AT_LEAST)).sum(axis=1)
        anywhere = np.full(len(city.population), 1 / len(city.population))
        rushing = rng.uniform(*RUSHING_M_S, len(KINDS))
        publishers = ways(city, rushing, anywhere, 0.0, settings.duration_s, rng)
        radii = np.array([RADIUS_M[kind] for kind in KINDS])[kinds] * (0.4 + 0.2 * severities)
        sizes = rng.uniform(SMALLEST_BYTES, LARGEST_BYTES, count)
        return cls(at, kinds, severities, sizes, publishers[kinds, :, at], radii)

    def match(self, args: dict[str, Any], people: Floats) -> Flags:
        """As the channels' WHERE clauses have it."""
        found = np.ones(len(self.at), bool)
        if "kind" in args:
            found &= self.kinds == KINDS.index(args["kind"])
        if "severity" in args:
            found &= self.severities >= args["severity"]
        if "radius" in args:
            found &= np.hypot(*(self.spots - (args["x"], args["y"])).T) < args["radius"]
        if "user" in args:
            there = people[_number(args["user"])][:, self.at].T
            found &= np.hypot(*(self.spots - there).T) < self.radii
        return found


def ways(
    city: City, speeds: Floats, likely: Floats, rest_s: float, duration_s: int, rng: np.random.Generator
) -> Floats:
    """Positions by traveller, axis and second, straight from place to place, with rests of up to ``rest_s``."""
    seconds = np.arange(duration_s)
    found = np.empty((len(speeds), 2, duration_s))
    for i, speed in enumerate(speeds):
        legs = 2 + int(duration_s * speed / 300)
        points = rng.choice(len(likely), legs, p=likely)
        spots = np.array([city.streets.x[points], city.streets.y[points]])
        times = np.hypot(*np.diff(spots, axis=1)) / speed
        rests = rng.uniform(0.0, rest_s, legs)
        leaves = np.cumsum(rests + np.append(0.0, times))
        moments = np.column_stack([leaves - rests, leaves]).ravel()
        found[i] = [np.interp(seconds, moments, np.repeat(axis, 2)) for axis in spots]
    return found


def _pairs(intents: list[Intent], keys: list[tuple[Any, ...]]) -> tuple[Any, Any]:
    """Who and what, sorted, each pair once."""
    number = {key: k for k, key in enumerate(keys)}
    pairs = np.unique([(_number(intent.user), number[intent.key]) for intent in intents], axis=0).astype(np.int32)
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def _number(user: str) -> int:
    return int(user.removeprefix(user_name(0)[:1]))
