"""The datasets and the seven channels of the emergency city, in the language of Tocsin.

Three datasets: where users are, what was reported, where shelters stand. The channels combine event
type, event location, user location and shelters, with periods of 10, 20 and 30 s as in the paper's
test-bed (section 6.1.2), whose queries are not public; these are ours. ``speed`` divides the periods, down to
the shortest that is wanted.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.errors import BadArgument, NotFound
from tocsin.units import format_duration

REPORTS = """CREATE ACTIVE DATASET Reports (
    report_id STRING, kind STRING, severity INT, x DOUBLE, y DOUBLE, radius DOUBLE, text STRING, at TIMESTAMP
) RETAIN '1 hour'"""
USER_LOCATIONS = """CREATE DATASET UserLocations (
    user STRING, x DOUBLE, y DOUBLE, at TIMESTAMP
) PRIMARY KEY (user)"""
SHELTERS = """CREATE DATASET Shelters (
    name STRING, x DOUBLE, y DOUBLE, capacity INT
) PRIMARY KEY (name)"""
DATASETS = (REPORTS, USER_LOCATIONS, SHELTERS)

SHORTEST_PERIOD_S = 1.0


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of the scenario; ``appeal`` is how often people choose it, relative to the others."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    period_s: float
    query: str
    appeal: float
    continuous: bool = False

    def statement(
        self, speed: float = 1.0, *, periodic: bool = False, shortest_period_s: float = SHORTEST_PERIOD_S
    ) -> str:
        """CREATE CHANNEL; ``periodic`` gives a continuous channel its period instead."""
        if not (speed > 0 and shortest_period_s > 0):
            raise BadArgument("speed, shortest period", "numbers above 0", (speed, shortest_period_s))
        parameters = ", ".join(f"{name} {sql_type}" for name, sql_type in self.parameters)
        if self.continuous and not periodic:
            return f"CREATE CONTINUOUS CHANNEL {self.name}({parameters}) AS\n{self.query}"
        period = format_duration(round(max(self.period_s / speed, shortest_period_s), 3))
        return f"CREATE CHANNEL {self.name}({parameters}) PERIOD '{period}' AS\n{self.query}"


_KIND = (("kind", "STRING"),)
_CIRCLE = (("x", "DOUBLE"), ("y", "DOUBLE"), ("radius", "DOUBLE"))
_USER = (("user", "STRING"),)

BY_KIND = """SELECT r.report_id, r.at, r.kind, r.severity, r.x, r.y, r.text
FROM Reports r
WHERE r.kind = :kind"""

NEAR_PLACE = """SELECT r.report_id, r.at, r.kind, r.severity, r.x, r.y, r.text
FROM Reports r
WHERE r.kind = :kind AND distance(r.x, r.y, :x, :y) < :radius"""

NEAR_ME = """SELECT r.report_id, r.at, r.kind, r.severity, r.x, r.y, r.text, distance(r.x, r.y, u.x, u.y) AS metres
FROM Reports r JOIN UserLocations u ON distance(r.x, r.y, u.x, u.y) < r.radius
WHERE u.user = :user"""

WITH_SHELTERS = """SELECT r.report_id, r.at, r.kind, r.severity, r.x, r.y, n.shelters
FROM Reports r, LATERAL (
    SELECT collect_list(struct(name, d)) AS shelters
    FROM (SELECT s.name, distance(s.x, s.y, r.x, r.y) AS d FROM Shelters s ORDER BY d LIMIT 3)
) n
WHERE r.kind = :kind AND distance(r.x, r.y, :x, :y) < :radius"""

SEVERE_OF_KIND = """SELECT r.report_id, r.at, r.kind, r.severity, r.x, r.y, r.text
FROM Reports r
WHERE r.kind = :kind AND r.severity >= :severity"""

NEAR_ME_OF_KIND = """SELECT r.report_id, r.at, r.kind, r.severity, r.x, r.y, r.text,
    distance(r.x, r.y, u.x, u.y) AS metres
FROM Reports r JOIN UserLocations u ON distance(r.x, r.y, u.x, u.y) < r.radius
WHERE u.user = :user AND r.kind = :kind"""

MY_SHELTERS = """SELECT r.report_id, r.at, r.kind, r.severity, distance(r.x, r.y, u.x, u.y) AS metres, n.shelters
FROM Reports r JOIN UserLocations u ON distance(r.x, r.y, u.x, u.y) < r.radius, LATERAL (
    SELECT collect_list(struct(name, d)) AS shelters
    FROM (SELECT s.name, distance(s.x, s.y, r.x, r.y) AS d FROM Shelters s ORDER BY d LIMIT 3)
) n
WHERE u.user = :user"""

CHANNELS = (
    Channel("ByKind", _KIND, 10, BY_KIND, 3.0, continuous=True),
    Channel("NearPlace", _KIND + _CIRCLE, 10, NEAR_PLACE, 3.0),
    Channel("NearMe", _USER, 10, NEAR_ME, 0.8),
    Channel("WithShelters", _KIND + _CIRCLE, 10, WITH_SHELTERS, 2.0),
    Channel("SevereOfKind", (*_KIND, ("severity", "INT")), 20, SEVERE_OF_KIND, 2.0),
    Channel("NearMeOfKind", _USER + _KIND, 20, NEAR_ME_OF_KIND, 0.3),
    Channel("MyShelters", _USER, 30, MY_SHELTERS, 0.5),
)
DEMO = ("ByKind", "NearPlace", "NearMe", "WithShelters")


def channels(*names: str) -> tuple[Channel, ...]:
    """The named channels, in their order; all seven without names."""
    known = {channel.name: channel for channel in CHANNELS}
    for name in names:
        if name not in known:
            raise NotFound("channel of the city", name, known)
    return tuple(known[name] for name in names or known)
