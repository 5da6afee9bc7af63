"""The world of section 6.2: 10 brokers, 10,000 subscribers, 10 channels of 100 subscriptions, half an hour.

What the paper states is a default here. What it leaves open is settled so: rates are Normal with 20 ± 5 KB/s, so that
the mean load passes β = 300 MB/s within the first minutes; a rate is bytes a second whatever the period, so that an
execution yields rate × period (``per_execution`` reads it as bytes an execution instead); a rate that rises doubles at
once, and only one that neither rose nor waits to rise can be chosen; the brokers' shares of subscribers by nearest
placement are one skewed draw, with one broker above 2,000 and some below 500.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tocsin.errors import BadArgument
from tocsin.lab.limits import MOST_CELLS, WEEK_S, Ranges, check_cells, check_rising, check_within
from tocsin.lab.world import World, distinct_interests
from tocsin.policies.multistage.snapshot import Floats, Ints
from tocsin.scenarios.seeding import stream

SHARES = (2218, 1541, 1366, 1200, 1073, 885, 709, 492, 340, 176)
KB = 1000.0
RANGES: Ranges = {
    "brokers": (1, 1000),
    "subscribers": (1, MOST_CELLS),
    "channels": (1, MOST_CELLS),
    "per_channel": (1, MOST_CELLS),
    "periods_s": (1, WEEK_S),
    "subscriptions": (0, MOST_CELLS),
    "duration_s": (1, WEEK_S),
    "subscribe_s": (0, WEEK_S),
    "rate_kb_s": (0, 10**9),
    "rate_sd_kb_s": (0, 10**9),
    "risen": (0, 10**6),
    "share_rising": (0, 1),
    "rise_within_s": (0, WEEK_S),
    "high_for_s": (0, WEEK_S),
    "shares": (0, 10**12),
}


@dataclass(frozen=True, slots=True)
class Simulation:
    """Every number of section 6.2.1; bounds include both ends."""

    brokers: int = 10
    subscribers: int = 10_000
    channels: int = 10
    per_channel: int = 100
    periods_s: tuple[int, ...] = (5, 10, 20, 30, 60)
    subscriptions: tuple[int, int] = (10, 30)
    duration_s: int = 1800
    subscribe_s: int = 480
    rate_kb_s: float = 20.0
    rate_sd_kb_s: float = 5.0
    per_execution: bool = False
    risen: float = 2.0
    share_rising: float = 0.25
    rise_within_s: int = 180
    high_for_s: tuple[int, int] = (240, 360)
    shares: tuple[float, ...] = SHARES

    def __post_init__(self) -> None:
        check_within(self, RANGES)
        check_rising(self, "subscriptions", "high_for_s")
        if len(self.shares) != self.brokers or not sum(self.shares) > 0:
            raise BadArgument("shares", f"{self.brokers} from 0 on, one for each broker, some above 0", self.shares)
        if self.subscriptions[1] > self.q:
            raise BadArgument("subscriptions", f"at most the {self.q:,} that there are", self.subscriptions)
        check_cells(
            subscribers_x_subscriptions=self.subscribers * self.subscriptions[1],
            channels_x_per_channel_x_brokers=self.q * self.brokers,
            duration_s_x_brokers=self.duration_s * self.brokers,
        )

    @property
    def q(self) -> int:
        return self.channels * self.per_channel

    def world(self, seed: int) -> World:
        rng = stream(seed, "simulation")
        sizes = rng.integers(self.subscriptions[0], self.subscriptions[1] + 1, self.subscribers)
        who, what = distinct_interests(sizes, self.q, rng)
        since = rng.integers(0, self.subscribe_s + 1, len(who))
        spots = self._spots()
        shares = np.array(self.shares) / sum(self.shares)
        near = rng.choice(self.brokers, self.subscribers, p=shares)
        homes = np.array(spots)[near] + rng.normal(0.0, 0.01, (self.subscribers, 2))
        logins = np.zeros(self.subscribers, np.int64)
        return World(self.duration_s, spots, homes, logins, who, what, since, self.q, Fluctuating(self, seed))

    def _spots(self) -> tuple[tuple[float, float], ...]:
        """Brokers on a circle, much farther from each other than their neighbours are from them."""
        angles = np.linspace(0, 2 * np.pi, self.brokers, endpoint=False)
        return tuple(zip(np.cos(angles).tolist(), np.sin(angles).tolist(), strict=True))


class Fluctuating:
    """Results whose rates rise and fall: every minute a share is chosen, each rises within minutes and falls later."""

    def __init__(self, settings: Simulation, seed: int) -> None:
        rng = stream(seed, "rates")
        channel = np.arange(settings.q) // settings.per_channel
        self.periods = np.array(settings.periods_s)[channel % len(settings.periods_s)]
        rates = np.maximum(rng.normal(settings.rate_kb_s, settings.rate_sd_kb_s, settings.q), 0.0) * KB
        self.sizes: Floats = rates if settings.per_execution else rates * self.periods
        self._risen = settings.risen
        self._spans = _spans(settings, rng)

    def at(self, second: int) -> Floats:
        """A channel is due when a whole period has passed."""
        due = (second + 1) % self.periods == 0
        return np.where(due, self.sizes * self.factors(second), 0.0)

    def factors(self, second: int) -> Floats:
        """By how much each rate is raised at this second."""
        rises, falls, which = self._spans
        high = which[(rises <= second) & (second < falls)]
        factors = np.ones(len(self.sizes))
        factors[high] = self._risen
        return factors


def _spans(settings: Simulation, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """When a rate rises, when it falls again, and whose it is."""
    busy_until = np.zeros(settings.q, np.int64)
    spans = [np.empty((3, 0), np.int64)]
    for minute in range(0, settings.duration_s, 60):
        chosen = rng.choice(settings.q, int(settings.q * settings.share_rising), replace=False)
        chosen = chosen[busy_until[chosen] <= minute]
        up = minute + rng.integers(0, settings.rise_within_s + 1, len(chosen))
        down = up + rng.integers(settings.high_for_s[0], settings.high_for_s[1] + 1, len(chosen))
        busy_until[chosen] = down
        spans.append(np.array([up, down, chosen]))
    rises, falls, which = np.hstack(spans)
    return rises, falls, which
