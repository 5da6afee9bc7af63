"""When and where a client that lost its broker comes back."""

from __future__ import annotations

from random import Random

from tocsin.config import Client
from tocsin.protocol import codes
from tocsin.protocol.client_link import Link


class ComingBack:
    """Pauses with full jitter: anything from nothing to a bound that doubles at each failure.

    A broker that is lost is tried once more; then, and where its code says so, the coordinator is asked.
    """

    def __init__(
        self, settings: Client, rng: Random, url: str | None, *, has_coordinator: bool, can_renew: bool
    ) -> None:
        self._settings, self._rng = settings, rng
        self._has_coordinator, self._can_renew = has_coordinator, can_renew
        self._failures = 0
        self._was_renewed = False
        self.url = url
        self.asks = has_coordinator or url is None  # whether the coordinator is asked next
        self.at: float | None = 0.0  # when; None while something is under way

    def welcomed(self) -> None:
        self._was_renewed = False

    def plan(self, now: float, pause_s: float, *, asks: bool) -> None:
        self.at, self.asks = now + pause_s, (asks and self._has_coordinator) or self.url is None

    def plan_after(self, now: float, link: Link, code: int) -> None:
        """Plan by how ``link`` ended."""
        if link.was_ready_at is not None and now - link.was_ready_at >= self._settings.stable_after:
            self._failures = 0
        is_sent_away, problem = codes.asks_where(code), link.problem
        if is_sent_away and problem and problem.url:
            self.url = problem.url
        is_first = self._failures == 0
        pause_s = self.pause_s()
        if is_sent_away and is_first:
            pause_s = 0.0
        if problem and problem.retry_after_s:
            pause_s += problem.retry_after_s
        self.plan(now, pause_s, asks=is_sent_away or link.was_ready_at is None)

    def pause_s(self) -> float:
        self._failures += 1
        return self.drawn_s(self._failures)

    def drawn_s(self, failures: int) -> float:
        """A pause after so many failures."""
        bound = min(self._settings.backoff_max, self._settings.backoff_min * 2.0 ** min(failures - 1, 40))
        return self._rng.uniform(0.0, bound)

    def may_renew(self, code: int = codes.BAD_TOKEN.number) -> bool:
        """Whether another token may help: once, where the application can give one."""
        may = code == codes.BAD_TOKEN.number and self._can_renew and not self._was_renewed
        self._was_renewed = self._was_renewed or may
        return may

    def renew_at(self, now: float, lasts_s: float | None) -> float | None:
        """When a token that lasts so long is to be replaced. A pause at least: it may be the same one as before."""
        if lasts_s is None or not self._can_renew:
            return None
        return now + max(lasts_s - self._settings.renew_before, 0.8 * lasts_s, self._settings.backoff_min)
