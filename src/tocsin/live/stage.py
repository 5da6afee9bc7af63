"""Runs beside each other: the city's events in their time, for every company at once, while somebody takes notes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from tocsin.broker.metering import MovingRate
from tocsin.demo.pace import EASY_S, Pace
from tocsin.live.company import Company
from tocsin.live.experiment import Experiment
from tocsin.live.notes import Notes
from tocsin.live.world import World
from tocsin.policies.base import Point
from tocsin.scenarios.city import records_of
from tocsin.scenarios.recording import Event

STEP_S = 0.1
SAMPLE_S = 0.5
LAG_S = 0.5
CAUGHT_UP_S = 1.0
SLOWEST = 0.02  # progress below which a load says nothing


class Stage:
    """One of the systems for each of ``labels``; ``play`` once, then ``clear``."""

    def __init__(self, world: World, experiment: Experiment, events: Sequence[Event], labels: Sequence[str]) -> None:
        self._world, self._experiment, self._events = world, experiment, deque(events)
        self._where: dict[str, Point] = {}
        self._companies = [
            Company(world, system, experiment, label, self._where)
            for system, label in zip(world.systems, labels, strict=False)
        ]
        self._pace, self._lag_s, self._batches = Pace(), 0.0, 0
        self._progress = MovingRate(experiment.window_s, time.monotonic())

    async def play(self) -> list[Notes]:
        """Every event; then what was noted, by label."""
        for company in self._companies:
            await company.begin()
        helpers = [asyncio.create_task(work) for work in (self._sample(), self._watch())]
        try:
            await self._feed()
        finally:
            for helper in helpers:
                helper.cancel()
        return [await company.notes(self._pace.held_s) for company in self._companies]

    async def clear(self) -> None:
        """Wait until the channels have seen everything; then nobody is there any more."""
        while await self._world.lag_s() > CAUGHT_UP_S:
            self._world.check()
            await asyncio.sleep(LAG_S)
        await asyncio.gather(*(company.clear() for company in self._companies))

    async def _feed(self) -> None:
        """Time goes slower while the channels are behind by more than loads are averaged over."""
        began = last = time.monotonic()
        while self._pace.run_s < self._experiment.run_s:
            await asyncio.sleep(STEP_S)
            self._world.check()
            now, before = time.monotonic(), self._pace.run_s
            lag_s = self._lag_s * EASY_S / self._experiment.window_s
            self._progress.add(self._pace.advance(now - last, lag_s) - before, now)
            last = now
            for dataset, records in self._due():
                self._batches += 1
                await self._world.append(dataset, records, f"{began:.3f}-{self._batches}")
                if dataset == "UserLocations":
                    self._where.update({record["user"]: (record["x"], record["y"]) for record in records})

    def _due(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Records by dataset, what reports are joined with first; what is none is done by everybody's namesake."""
        found: dict[str, list[dict[str, Any]]] = {"Shelters": [], "UserLocations": [], "Reports": []}
        while self._events and self._events[0].t <= self._pace.run_s:
            event = self._events.popleft()
            if (brought := records_of(event)) is not None:
                found[brought[0]] += brought[1]
            else:
                for company in self._companies:
                    company.act(event)
        yield from ((dataset, records) for dataset, records in found.items() if records)

    async def _watch(self) -> None:
        while True:
            self._lag_s = await self._world.lag_s()
            await asyncio.sleep(LAG_S)

    async def _sample(self) -> None:
        while True:
            progress = max(self._progress.value(time.monotonic()), SLOWEST)
            await asyncio.gather(*(company.sample(self._pace.run_s, progress) for company in self._companies))
            await asyncio.sleep(SAMPLE_S)
