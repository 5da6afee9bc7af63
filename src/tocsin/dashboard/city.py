"""The city on the map: what stands still as JSON, once; people and their brokers as a few bytes each, every second.

The world is made from the same settings as the scenario that feeds it, so it is told by these and never sent. What
moves goes over the topic ``city``:

======== ============================================================================================
``k``    the rest of the message
======== ============================================================================================
world    the world has changed: ask for it again
begins   a recording begins, or begins anew: what was reported before is over
people   ``t``; ``xy``: for each person two unsigned 16-bit numbers, little endian, as parts of the city's
         size, in base64
placed   ``brokers``: names; ``at``: for each ``[x, y]`` in whole metres, or null where it does not say; ``of``: for
         each person a byte, the number of the broker or 255, in base64
reports  ``t``; ``reports``: ``[id, kind, severity, x, y, radius]`` each
======== ============================================================================================
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np

from tocsin.scenarios.city import City
from tocsin.scenarios.city.audience import user_name

TOPIC = "city"
NOWHERE = 255
MAX_BROKERS = 255
_RIVER_POINTS = 80
Spot = tuple[float, float]


class Scene(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From what the city was made; people are ``u00000`` and on."""

    seed: Annotated[int, msgspec.Meta(ge=0)] = 1
    size_m: tuple[float, float] = (10_000, 8_000)
    districts: Annotated[int, msgspec.Meta(ge=1, le=200)] = 12
    shelters: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 200
    people: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0

    def drawn(self) -> dict[str, Any]:
        """Everything that stands still, positions in whole metres."""
        return drawing(City.generate(self.seed, self.size_m, self.districts, self.shelters)) | {"people": self.people}


def drawing(city: City) -> dict[str, Any]:
    streets = city.streets
    across = np.linspace(0, city.size_m[0], _RIVER_POINTS)
    return {
        "size_m": list(city.size_m),
        "points": np.stack([streets.x, streets.y], axis=1).round().astype(int).ravel().tolist(),
        "edges": np.stack([streets.a, streets.b, streets.rank], axis=1).ravel().tolist(),
        "river": {
            "points": np.stack([across, city.river.height_at(across)], axis=1).round().astype(int).ravel().tolist(),
            "width_m": 2 * city.river.half_width_m,
        },
        "parks": [[park.name, round(park.x), round(park.y), round(park.radius_m)] for park in city.parks],
        "districts": [[district.name, round(district.x), round(district.y)] for district in city.districts],
        "shelters": [[s.name, round(s.x), round(s.y), s.capacity] for s in city.shelters],
    }


def people(t: float, x: Sequence[float], y: Sequence[float], size_m: tuple[float, float]) -> dict[str, Any]:
    """Where everybody is."""
    spots = np.stack([np.asarray(x) / size_m[0], np.asarray(y) / size_m[1]], axis=1)
    packed = (spots.clip(0.0, 1.0) * 65_535).round().astype("<u2").tobytes()
    return {"k": "people", "t": round(t, 2), "xy": b64encode(packed).decode()}


def placed(count: int, where: Mapping[str, str], brokers: Mapping[str, Spot | None]) -> dict[str, Any]:
    """At which broker each of ``count`` people is, and where brokers stand, as far as they say."""
    shown = list(brokers)[:MAX_BROKERS]
    numbers = {name: number for number, name in enumerate(shown)}
    of = bytes(numbers.get(where.get(user_name(person), ""), NOWHERE) for person in range(count))
    at = [None if (spot := brokers[name]) is None else [round(spot[0]), round(spot[1])] for name in shown]
    return {"k": "placed", "brokers": shown, "at": at, "of": b64encode(of).decode()}


def reports(t: float, found: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    fields = ("report_id", "kind", "severity", "x", "y", "radius")
    return {"k": "reports", "t": round(t, 2), "reports": [[one[name] for name in fields] for one in found]}


def encoded(message: Scene | dict[str, Any]) -> bytes:
    return msgspec.json.encode(message)
