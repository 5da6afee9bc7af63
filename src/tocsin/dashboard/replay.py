"""A recorded scenario as the dashboard would show it: people where the recording has them, brokers that are made up.

The recording tells who moves where and what is reported, not at which broker anybody was. So brokers stand in the city,
people go to the nearest, loads follow from how many are there and from the reports around them, and every
``SHUFFLE_S`` people are arranged anew: evenly, then at the nearest again. No policy has a part in that, and none is
named. No system is needed to look at it, and the pages say that it is played and made up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from tocsin.dashboard import city
from tocsin.dashboard.city import Scene
from tocsin.dashboard.samples import BrokerSample, ChannelSample, ClusterSample, Figures, Sample
from tocsin.errors import BadArgument, Corrupt
from tocsin.scenarios import recording
from tocsin.scenarios.city.audience import user_name
from tocsin.scenarios.recording import Event

BROKERS = 10
SHUFFLE_S = 30.0
BYTES_EACH = 420.0  # a second, that a person gets in the mean
FADE = 0.85
Floats = NDArray[np.float64]


class _Spot(TypedDict):
    x: float
    y: float


class _Report(_Spot):
    report_id: str
    kind: str
    severity: float
    radius: float


@dataclass(frozen=True, slots=True)
class Moment:
    """One second of it."""

    t: float
    people: dict[str, Any]
    placed: Mapping[str, str]
    reports: dict[str, Any] | None
    sample: Sample


class Replay:
    def __init__(self, path: Path, brokers: int = BROKERS) -> None:
        about = recording.about(path)
        if about.get("scenario") != "city":
            raise BadArgument("recording", "one of the city", about.get("scenario"))
        self._path = path
        self.brokers = tuple(f"broker_{number}" for number in range(1, brokers + 1))
        self.scene = _scene(path, about)
        self._spots = spots(brokers, self.scene.size_m)

    def moments(self) -> Iterator[Moment]:
        """From the beginning on."""
        crowd = _Crowd(self._spots, self.brokers)
        told: list[dict[str, Any]] = []
        is_empty = True
        for event in recording.replay(self._path):
            if event.kind == "report":
                told.append(self._read(event, _Report))
            elif event.kind == "locations":
                yield self._moment(event, crowd, told)
                told, is_empty = [], False
        if is_empty:
            raise Corrupt(f"recording {self._path}: nobody is anywhere in it")

    def _read(self, event: Event, form: Any) -> Any:
        try:
            return msgspec.convert(event.payload, form)
        except msgspec.ValidationError as problem:
            raise Corrupt(f"recording {self._path}: {event.kind} at {event.t:g} s: {problem}") from None

    def _moment(self, event: Event, crowd: _Crowd, told: Sequence[dict[str, Any]]) -> Moment:
        found = self._read(event, list[_Spot])
        if not 0 < len(found) == self.scene.people:
            raise Corrupt(f"recording {self._path}: expected {self.scene.people} people, found {len(found)}")
        xy = np.nan_to_num(np.array([(one["x"], one["y"]) for one in found]))
        decisions = crowd.advance(event.t, xy, len(told))
        return Moment(
            event.t,
            city.people(event.t, xy[:, 0].tolist(), xy[:, 1].tolist(), self.scene.size_m),
            crowd.placed,
            city.reports(event.t, told) if told else None,
            Sample(
                n=0,
                at=0.0,
                brokers=crowd.samples(),
                figures=Figures(),
                channels=[_channel(len(told))],
                cluster=ClusterSample(True, ""),
                decisions=decisions,
            ),
        )


class _Crowd:
    """Who is at which broker, and what that costs it."""

    def __init__(self, spots: Floats, names: Sequence[str]) -> None:
        self._spots, self._names = spots, names
        self._at: NDArray[np.int64] | None = None
        self._loads: Floats | None = None
        self._even = False
        self._next_s = SHUFFLE_S

    def advance(self, t: float, xy: Floats, reports: int) -> list[dict[str, Any]]:
        """Move on to ``t``; what was decided."""
        ways = ((xy[:, None, :] - self._spots[None, :, :]) ** 2).sum(axis=2)
        nearest = ways.argmin(axis=1)
        if self._at is None:
            self._at = nearest
        decided = []
        if t >= self._next_s:
            self._next_s += SHUFFLE_S
            self._even = not self._even
            decided = [self._shuffle(t, ways if self._even else None, nearest)]
        counts = np.bincount(self._at, minlength=len(self._names))
        swing = 1 + 0.15 * np.sin(t / 7 + np.arange(len(self._names)))
        now = counts * BYTES_EACH * swing * (1 + reports / 50)
        self._loads = now if self._loads is None else FADE * self._loads + (1 - FADE) * now
        return decided

    def _shuffle(self, t: float, ways: Floats | None, nearest: NDArray[np.int64]) -> dict[str, Any]:
        assert self._at is not None
        before = self._at
        self._at = evenly(ways) if ways is not None else nearest
        done = "everyone is spread evenly" if ways is not None else "everyone is at the nearest broker again"
        changed = int((before != self._at).sum())
        return {
            "at": t,
            "action": "made up",
            "reason": f"{done}, {changed:,} of {len(before):,} at another than before",
        }

    @property
    def placed(self) -> Mapping[str, str]:
        assert self._at is not None
        return {user_name(person): self._names[number] for person, number in enumerate(self._at.tolist())}

    def samples(self) -> list[BrokerSample]:
        assert self._at is not None
        assert self._loads is not None
        counts = np.bincount(self._at, minlength=len(self._names)).tolist()
        return [
            BrokerSample(
                name=name,
                state="live",
                users=count,
                online=count,
                bytes_in=round(float(load) * 0.2, 1),
                bytes_out=round(float(load) * 0.8, 1),
                loop_lag_s=0.0,
                capacity=None,
                location=(float(spot[0]), float(spot[1])),
                deliveries_per_s=round(float(load) / 400, 1),
            )
            for name, count, load, spot in zip(self._names, counts, self._loads, self._spots, strict=True)
        ]


def _scene(path: Path, about: Mapping[str, Any]) -> Scene:
    """The city that the recording was made in."""
    try:
        return msgspec.convert({name: about[name] for name in Scene.__struct_fields__}, Scene)
    except (KeyError, msgspec.ValidationError) as problem:
        raise Corrupt(f"recording {path}: its settings make no city: {problem}") from None


def spots(count: int, size_m: tuple[float, float]) -> Floats:
    """Where brokers stand: one in the middle, the others around it."""
    width, height = size_m
    around = [2 * math.pi * number / max(1, count - 1) for number in range(count - 1)]
    ring = [(width * (0.5 + 0.34 * math.cos(a)), height * (0.5 + 0.34 * math.sin(a))) for a in around]
    return np.array([(width / 2, height / 2), *ring])


def evenly(ways: Floats) -> NDArray[np.int64]:
    """Everybody to a broker, near ones first, none with more than its share."""
    people, brokers = ways.shape
    share = -(-people // brokers)
    left, at = np.full(brokers, share), np.full(people, -1)
    for person in np.argsort(ways.min(axis=1)).tolist():
        for broker in np.argsort(ways[person]).tolist():
            if left[broker]:
                left[broker] -= 1
                at[person] = broker
                break
    return at


def _channel(reports: int) -> ChannelSample:
    return ChannelSample(
        name="Reports (played)",
        mode="continuous",
        state="running",
        strategy="recording",
        subscriptions=0,
        backends=0,
        executions=0,
        lag_s=0.0,
        results_per_s=float(reports),
        matched_per_s=float(reports),
        considered_per_s=float(reports),
        execution_ms=None,
        problem=None,
    )
