"""What a page gets when it opens: the past as columns, and the present whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec

from tocsin.dashboard.samples import BrokerSample, Sample

KEPT = 200  # decisions, plans and moves
NOTHING_DECIDED = "nothing"


class BrokerPast(msgspec.Struct):
    """Zeros where the broker was not there, nothing where nobody told."""

    bytes_in: list[int | None]
    bytes_out: list[int | None]
    online: list[int | None]


class Past(msgspec.Struct):
    """Columns have one entry a sample, at most ``kept``; live samples with a number above ``n`` go on from here.

    ``began`` is when the first sample was taken, which may be kept no longer.
    """

    kept: int
    n: int
    began: float
    at: list[float]
    cov: list[float | None]
    maximum: list[float | None]
    mean: list[float | None]
    brokers: dict[str, BrokerPast]
    now: Sample | None


class Events:
    """The newest of what comes again and again under the same id; ``note`` tells which of them are news.

    Where ``is_same`` holds for two in a row, only the newer counts.
    """

    def __init__(
        self,
        id_of: str,
        kept: int = KEPT,
        is_same: Callable[[dict[str, Any], dict[str, Any]], bool] = lambda older, newer: False,
    ) -> None:
        self._id_of, self._kept, self._is_same = id_of, kept, is_same
        self._known: dict[Any, dict[str, Any]] = {}

    def note(self, newest_first: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those that are new or have changed, oldest first; what is older than the newest ``kept`` is no news."""
        listed = self._distinct(newest_first)[: self._kept]
        news = [one for one in reversed(listed) if self._known.get(one[self._id_of]) != one]
        for one in news:
            last = next(reversed(self._known.values()), None)
            if last is not None and self._is_same(last, one):
                del self._known[last[self._id_of]]
            self._known[one[self._id_of]] = one
        for id in list(self._known)[: max(0, len(self._known) - self._kept)]:
            del self._known[id]
        return news

    def _distinct(self, newest_first: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The newest of those in a row that are the same."""
        kept = newest_first[:1]
        for newer, older in pairwise(newest_first):
            if not self._is_same(older, newer):
                kept.append(older)
        return kept

    @property
    def all(self) -> list[dict[str, Any]]:
        """Oldest first."""
        return list(self._known.values())


class History:
    def __init__(self, length: int) -> None:
        self._samples: deque[Sample] = deque(maxlen=length)
        self._length, self._began = length, 0.0
        self.decisions, self.plans, self.moves = Events("at", is_same=_is_nothing_again), Events("id"), Events("id")

    @property
    def last(self) -> Sample | None:
        return self._samples[-1] if self._samples else None

    def add(self, sample: Sample) -> None:
        if not self._samples:
            self._began = round(sample.at, 2)
        self._samples.append(sample)

    def past(self) -> Past:
        samples = self._samples
        names = dict.fromkeys(broker.name for sample in samples for broker in sample.brokers)
        told = [sample.figures for sample in samples]
        rows = [{broker.name: broker for broker in sample.brokers} for sample in samples]
        return Past(
            kept=self._length,
            n=self.last.n if self.last else 0,
            began=self._began,
            at=[round(sample.at, 2) for sample in samples],
            cov=[None if figures is None else round(figures.cov, 4) for figures in told],
            maximum=[None if figures is None else round(figures.maximum) for figures in told],
            mean=[None if figures is None else round(figures.mean) for figures in told],
            brokers={name: _broker_past([row.get(name) for row in rows]) for name in names},
            now=self._whole(),
        )

    def _whole(self) -> Sample | None:
        """The last sample with all decisions, plans and moves that are remembered."""
        if self.last is None:
            return None
        known = {"decisions": self.decisions.all, "plans": self.plans.all, "moves": self.moves.all}
        return msgspec.structs.replace(self.last, **known)


def _is_nothing_again(older: dict[str, Any], newer: dict[str, Any]) -> bool:
    """Decided every half minute of a quiet day: it would leave no room for what happened before."""
    is_nothing = older["action"] == newer["action"] == NOTHING_DECIDED
    return is_nothing and bool(older["reason"] == newer["reason"])


def _broker_past(found: list[BrokerSample | None]) -> BrokerPast:
    def column(name: str) -> list[int | None]:
        return [0 if one is None else round(getattr(one, name)) if one.is_told else None for one in found]

    return BrokerPast(column("bytes_in"), column("bytes_out"), column("online"))
