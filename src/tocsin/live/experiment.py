"""What is run, and how fast: the setting of section 6.1.2, compressed.

Half an hour of the city passes in ``1800 / speed`` seconds. Two times are compressed less, because Spark on a small
machine does not start a job in a third of a second: the channels' periods are divided by ``period_speed``, and loads
are averaged over their common multiple. Bytes are told by second of the city, so that figures compare with the paper's
setting: what a broker moved in a second of the run, divided by ``speed``.

What the paper does not state: α, β = θ, γ, where the brokers stand (one in the middle of the city, one in each
quarter, as in the simulation) and how many subscribers leave and return (``churn``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from tocsin.errors import BadArgument
from tocsin.lab.debs19.prototype import REPORTS, SPOTS
from tocsin.lab.debs19.schemes import PROTOTYPE_BETA
from tocsin.lab.debs19.simulation import KB
from tocsin.policies.base import Point
from tocsin.scenarios.city import DATASETS, Scenario, Timetable, channels
from tocsin.scenarios.city.channels import SHORTEST_PERIOD_S

PLACEMENTS = {"RND": "random", "RR": "round_robin", "NR": "nearest"}
CHURN = 0.1
MOST = {"subscribers": 100_000, "reports": 10_000_000, "minutes": 1_440, "speed": 1_000, "period_speed": 1_000}


@dataclass(frozen=True, slots=True)
class Experiment:
    """``reports`` come in ``minutes`` of the city; ``beta`` is in bytes a second of the city, and unset it is the
    simulation's, by the number of reports."""

    subscribers: int = 400
    reports: int = REPORTS
    minutes: float = 30.0
    speed: float = 20.0
    period_speed: float = 2.0
    alpha: float = 0.05
    beta: float | None = None
    gamma: float = 0.3
    check_s: float = 0.5  # of the run
    spots: tuple[Point, ...] = SPOTS
    timetable: Timetable = field(default_factory=lambda: Timetable(churn=CHURN))
    channel_names: tuple[str, ...] = ()  # none: all seven

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            if not 0 < getattr(self, name) <= most:
                raise BadArgument(f"{name} of the experiment", f"above 0, at most {most:,}", getattr(self, name))

    @property
    def floor(self) -> float:
        """β and θ."""
        return PROTOTYPE_BETA * self.reports / REPORTS if self.beta is None else self.beta

    @property
    def city_s(self) -> int:
        return round(self.minutes * 60)

    @property
    def run_s(self) -> float:
        return self.city_s / self.speed

    @property
    def window_s(self) -> float:
        """Of the run: a common multiple of the channels' periods."""
        return max(channel.period_s for channel in channels()) / self.period_speed

    def scenario(self, seed: int) -> Scenario:
        return Scenario(
            seed=seed + 1,
            people=self.subscribers,
            subscribers=self.subscribers,
            speed=self.speed,
            reports_per_s=self.reports / self.city_s,
            timetable=self.timetable,
            channel_names=self.channel_names,
            start=datetime.now(UTC),
        )

    def statements(self) -> list[str]:
        """Datasets and channels, each with its period."""
        shortest = min(SHORTEST_PERIOD_S, 10 / self.period_speed)
        made = (
            c.statement(self.period_speed, periodic=True, shortest_period_s=shortest)
            for c in channels(*self.channel_names)
        )
        return [*DATASETS, *made]

    def policies(self, placement: str, scheme: str) -> dict[str, object]:
        """What the coordinator is told for ``NR`` and ``LDM + GSH``: Algorithm 1 and nothing that we add to it."""
        migrate, _, shuffle = scheme.partition(" + ")
        balancing: dict[str, object] = {"options": self.thresholds()}
        if migrate != "No LB":
            balancing["migrate"] = {"name": migrate.lower(), "options": {"stop_cov": f"{self.alpha:g}"}}
        if shuffle:
            balancing["shuffle"] = {"name": shuffle.lower()}
        return {"placement": {"name": PLACEMENTS[placement]}, "balancing": balancing}

    def thresholds(self) -> dict[str, str]:
        floor = f"{self.floor * self.speed:g}"
        off = dict.fromkeys(("window_s", "cooldown_s", "rest_s", "least_gain"), "0")
        return off | {"alpha": f"{self.alpha:g}", "gamma": f"{self.gamma:g}", "beta": floor, "theta": floor}

    def told(self) -> str:
        """One line for readers of a figure."""
        return (
            f"{self.reports:,} reports, {self.speed:g} times faster, channel periods {self.period_speed:g} times; "
            f"α = {self.alpha:g}, β = θ = {self.floor / KB:g} KB/s, γ = {self.gamma:g}; "
            f"check every {self.check_s * self.speed:.0f} s, "
            f"averages over {self.window_s * self.speed:.0f} s of the city"
        )
