"""Map-based mobility: who moves, moves on the streets, from place to place, and rests in between.

A traveller picks a place (popular ones more often, near ones more often for walkers), follows the
cheapest way there, stops a little short of it, so that not everybody ends at the same corner, rests,
and picks the next. Drivers prefer arterials and are faster on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tocsin.errors import BadArgument
from tocsin.scenarios.city.network import Flags, Floats, Ints
from tocsin.scenarios.city.routing import driving_pace
from tocsin.scenarios.city.world import City
from tocsin.scenarios.seeding import stream

WALKING_M_S = (0.9, 1.8)
DRIVING_M_S = (8.0, 15.0)
RUSHING_M_S = (25.0, 40.0)
_NEAR_M = 300.0  # no trip is shorter, if there is a place farther away


@dataclass(frozen=True, slots=True)
class Habits:
    """How one kind of traveller moves.

    Speeds, how far trips go, how long they rest, how far from its end a trip may stop, and whether
    popular places draw them (1) or all alike (0).
    """

    speed_m_s: tuple[float, float]
    reach_m: float
    rest_s: tuple[float, float]
    short_m: float
    drawn_by_crowds: float = 1.0


WALKER = Habits(WALKING_M_S, 1_200.0, (0.0, 120.0), 250.0)
DRIVER = Habits(DRIVING_M_S, 6_000.0, (0.0, 300.0), 250.0)
RUSHER = Habits(RUSHING_M_S, 100_000.0, (0.0, 0.0), 0.0, drawn_by_crowds=0.0)


class Mobility:
    """Travellers on the streets of a city; the same steps from the same seed give the same positions."""

    def __init__(self, city: City, habits: list[Habits], rng: np.random.Generator) -> None:
        self._city, self._rng, self._streets = city, rng, city.streets
        self._speed = rng.uniform(_column(habits, "speed_m_s", 0), _column(habits, "speed_m_s", 1))
        self._rest_range = (_column(habits, "rest_s", 0), _column(habits, "rest_s", 1))
        self._reach = np.array([h.reach_m for h in habits])
        self._short = np.array([h.short_m for h in habits])
        self._drawn = np.array([h.drawn_by_crowds for h in habits])
        self.is_driver: Flags = np.array([h.speed_m_s != WALKING_M_S for h in habits], dtype=np.bool_)
        self._prepare_ways()
        self._settle(len(habits))

    @staticmethod
    def people(city: City, count: int, seed: int, drivers: float = 0.3) -> Mobility:
        """``count`` people who live where the city is dense; a share of them drives."""
        if count < 0 or not 0 <= drivers <= 1:
            raise BadArgument("people", "a number from 0 on, of which a share from 0 to 1 drives", (count, drivers))
        rng = stream(seed, "people")
        return Mobility(city, [DRIVER if d else WALKER for d in rng.random(count) < drivers], rng)

    @staticmethod
    def publishers(city: City, count: int, seed: int) -> Mobility:
        """``count`` who rush through the city without rest."""
        return Mobility(city, [RUSHER] * count, stream(seed, "publishers"))

    def step(self, dt: float) -> tuple[Floats, Floats]:
        """Let ``dt`` seconds pass; the positions after it."""
        if not dt >= 0:
            raise BadArgument("dt", "seconds from 0 on", dt)
        budget = np.full(len(self._speed), float(dt))
        moving = np.flatnonzero(budget > 0)
        while len(moving):
            self._rest(moving, budget)
            moving = self._advance(moving[budget[moving] > 0], budget)
        return self.positions()

    def positions(self) -> tuple[Floats, Floats]:
        streets, share = self._streets, self._along / self._streets.arc_length[self._arc]
        a, b = streets.arc_from[self._arc], streets.arc_to[self._arc]
        x = streets.x[a] + (streets.x[b] - streets.x[a]) * share
        return x, streets.y[a] + (streets.y[b] - streets.y[a]) * share

    @property
    def arc(self) -> Ints:
        """Which arc of the streets each is on."""
        return self._arc.copy()

    def _prepare_ways(self) -> None:
        streets, places = self._streets, self._city.places
        targets = np.array([place.point for place in places])
        self._on_foot, self._by_car = self._city.ways_on_foot, self._city.ways_by_car
        self._pace = np.repeat(driving_pace(streets), 2)
        self._place_x, self._place_y = streets.x[targets], streets.y[targets]
        self._popularity = np.array([place.popularity for place in places])

    def _settle(self, count: int) -> None:
        """Everyone starts at home, some already on a rest."""
        home = self._rng.choice(len(self._streets.x), size=count, p=self._city.population)
        everyone = np.arange(count)
        self._target = np.zeros(count, dtype=np.int64)
        self._stop_at = np.zeros(count)
        self._arc = np.zeros(count, dtype=np.int64)
        self._along = np.zeros(count)
        self._start_trip(everyone, home)
        self._resting = self._rng.uniform(*self._rest_range)

    def _rest(self, who: Ints, budget: Floats) -> None:
        spent = np.minimum(self._resting[who], budget[who])
        self._resting[who] -= spent
        budget[who] -= spent

    def _advance(self, who: Ints, budget: Floats) -> Ints:
        """Move along the arc; who reached its end takes the next one and is returned."""
        arc = self._arc[who]
        speed = self._speed[who] * np.where(self.is_driver[who], self._pace[arc], 1.0)
        needed = (self._streets.arc_length[arc] - self._along[who]) / speed
        through = needed <= budget[who]
        staying, leaving = who[~through], who[through]
        self._along[staying] += speed[~through] * budget[staying]
        budget[leaving] -= needed[through]
        self._turn(leaving)
        return leaving

    def _turn(self, who: Ints) -> None:
        """At the end of an arc: go on, or end the trip, rest, and choose the next."""
        here = self._streets.arc_to[self._arc[who]]
        arrived = self._left(who, here) <= self._stop_at[who]
        self._take(who[~arrived], here[~arrived])
        done = who[arrived]
        self._resting[done] = self._rng.uniform(self._rest_range[0][done], self._rest_range[1][done])
        self._start_trip(done, here[arrived])

    def _left(self, who: Ints, here: Ints) -> Floats:
        by_car, target = self.is_driver[who], self._target[who]
        left = np.empty(len(who))
        left[by_car] = self._by_car.left(target[by_car], here[by_car])
        left[~by_car] = self._on_foot.left(target[~by_car], here[~by_car])
        return left

    def _take(self, who: Ints, here: Ints) -> None:
        by_car, target = self.is_driver[who], self._target[who]
        arc = np.empty(len(who), dtype=np.int64)
        arc[by_car] = self._by_car.next_arc(target[by_car], here[by_car])
        arc[~by_car] = self._on_foot.next_arc(target[~by_car], here[~by_car])
        self._arc[who], self._along[who] = arc, 0.0

    def _start_trip(self, who: Ints, here: Ints) -> None:
        if len(who):
            self._target[who] = self._choose(who, here)
            self._stop_at[who] = self._rng.uniform(0.0, 1.0, len(who)) * self._short[who]
            self._take(who, here)

    def _choose(self, who: Ints, here: Ints) -> Ints:
        """A place for each by popularity and distance, or the farthest where all are near."""
        x, y = self._streets.x[here][:, None], self._streets.y[here][:, None]
        away = np.hypot(x - self._place_x, y - self._place_y)
        nearness = np.exp(-(away - away.min(axis=1, keepdims=True)) / self._reach[who][:, None])
        weight = nearness * self._popularity ** self._drawn[who][:, None]
        weight[away < _NEAR_M] = 0.0
        total = weight.cumsum(axis=1)
        drawn = (total < self._rng.random(len(who))[:, None] * total[:, -1:]).sum(axis=1)
        chosen: Ints = np.where(total[:, -1] > 0, np.minimum(drawn, away.shape[1] - 1), away.argmax(axis=1))
        return chosen


def _column(habits: list[Habits], name: str, side: int) -> Floats:
    return np.array([getattr(h, name)[side] for h in habits], dtype=np.float64)
