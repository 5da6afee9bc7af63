"""Emergency reports: eight kinds, one publisher each, who rushes through the city and reports as it goes.

Reports come as a Poisson process, about 10,000 in 30 minutes. As JSON a report takes 200 to 700
bytes. Its radius of effect is that of its kind at severity 3, less below and more above. Where there are storms, some
reports happen in the hot district instead of where their publisher is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from tocsin.errors import BadArgument
from tocsin.scenarios.city.mobility import Mobility
from tocsin.scenarios.city.phrases import ADVICE, OPENINGS
from tocsin.scenarios.city.storms import Storms, Weather
from tocsin.scenarios.city.world import City
from tocsin.scenarios.seeding import stream

RADIUS_M = {
    "fire": 500.0,
    "flood": 1_000.0,
    "crash": 100.0,
    "storm": 2_000.0,
    "gas": 800.0,
    "crime": 300.0,
    "medical": 150.0,
    "outage": 1_500.0,
}
KINDS = tuple(RADIUS_M)
REPORTS_PER_S = 10_000 / (30 * 60)
SMALLEST_BYTES, LARGEST_BYTES = 200, 700
AT_LEAST = (0.7, 0.4, 0.2, 0.07)  # share of reports with severity 2, 3, 4, 5 or more

_TARGET_BYTES = (215, 580)  # the last sentence may run over by less than its length
_AWAY_M = 25.0  # how far from the street something happens


@dataclass(frozen=True, slots=True)
class Emergency:
    """Something happened: what, how bad, where (also in words), and how far it reaches."""

    kind: str
    severity: int
    x: float
    y: float
    where: str

    @property
    def radius_m(self) -> float:
        return round(RADIUS_M[self.kind] * (0.4 + 0.2 * self.severity), 1)


def timestamp(start: datetime, t: float) -> str:
    """The moment ``t`` seconds after ``start``, as datasets take it."""
    moment = (start + timedelta(seconds=t)).astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Publishers:
    """The eight publishers; ``reports`` may be asked once, for it moves them."""

    def __init__(
        self,
        city: City,
        seed: int,
        start: datetime,
        speed: float = 1.0,
        rate: float = REPORTS_PER_S,
        storms: Storms | None = None,
    ) -> None:
        if not (speed > 0 and rate > 0):
            raise BadArgument("speed, rate", "numbers above 0", (speed, rate))
        self._city, self._start, self._speed, self._rate = city, start, speed, rate
        self._mobility = Mobility.publishers(city, len(KINDS), seed)
        self._weather = Weather(storms, city, seed) if storms else None
        self._rng = stream(seed, "reports")

    def reports(self) -> Iterator[tuple[float, dict[str, Any]]]:
        """Times in seconds of the run, rising without end, and records for Reports."""
        t, number = 0.0, 0
        while True:
            surge = self._weather.surge(t * self._speed) if self._weather else 1.0
            pause = float(self._rng.exponential(1.0 / self._rate)) / surge
            t, number = t + pause / self._speed, number + 1
            x, y = self._mobility.step(pause)
            yield t, self._report(number, t, self._emergency(t, x, y))

    def _emergency(self, t: float, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Emergency:
        who = int(self._rng.integers(len(KINDS)))
        chance = self._rng.random()
        severity = 1 + sum(chance < share for share in AT_LEAST)
        dx, dy = self._rng.uniform(-_AWAY_M, _AWAY_M, 2).tolist()
        struck = self._weather.strike(t * self._speed) if self._weather else None
        streets, (width, height) = self._city.streets, self._city.size_m
        at = (x[who], y[who]) if struck is None else (streets.x[struck], streets.y[struck])
        spot = min(max(float(at[0]) + dx, 0.0), width), min(max(float(at[1]) + dy, 0.0), height)
        where = self._where(who) if struck is None else self._near(struck)
        return Emergency(KINDS[who], severity, round(spot[0], 1), round(spot[1], 1), where)

    def _report(self, number: int, t: float, emergency: Emergency) -> dict[str, Any]:
        record = {
            "report_id": f"r{number:06d}",
            "kind": emergency.kind,
            "severity": emergency.severity,
            "x": emergency.x,
            "y": emergency.y,
            "radius": emergency.radius_m,
            "text": self._opening(emergency),
            "at": timestamp(self._start, t),
        }
        return record | {"text": self._lengthen(record, emergency.kind)}

    def _opening(self, emergency: Emergency) -> str:
        openings = OPENINGS[emergency.kind]
        what = openings[self._rng.integers(len(openings))]
        return f"{what} at {emergency.where}. Severity {emergency.severity} of 5."

    def _where(self, who: int) -> str:
        """The street on which a publisher is, and the district."""
        city, arc = self._city, int(self._mobility.arc[who])
        district = city.districts[city.district_of_point[city.streets.arc_from[arc]]]
        return f"{city.streets.names[city.streets.street[arc // 2]]}, {district.name}"

    def _near(self, point: int) -> str:
        city = self._city
        return f"{city.streets.names_at(point)[0]}, {city.districts[city.district_of_point[point]].name}"

    def _lengthen(self, record: dict[str, Any], kind: str) -> str:
        """Add advice, each sentence once, until the report has the length that was drawn for it."""
        text, wanted = str(record["text"]), int(self._rng.integers(*_TARGET_BYTES))
        sentences = ADVICE[kind] + ADVICE["any"]
        missing = wanted - size_bytes(record)
        for i in self._rng.permutation(len(sentences)).tolist():
            if missing <= 0:
                break
            text, missing = f"{text} {sentences[i]}", missing - len(sentences[i]) - 1
        return text


def size_bytes(record: dict[str, Any]) -> int:
    """What a record takes as compact JSON."""
    return len(json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode())
