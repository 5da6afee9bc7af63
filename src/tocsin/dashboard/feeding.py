"""What runs beside the server: a sampler of the living system and of who is where, or a recording that is played."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from tocsin.config import Dashboard
from tocsin.dashboard.alerts import Budgets, Watch
from tocsin.dashboard.city import Spot
from tocsin.dashboard.history import History, Past
from tocsin.dashboard.replay import Replay
from tocsin.dashboard.samples import ClusterSample, Sample, figures_of
from tocsin.dashboard.sampling import Sampler
from tocsin.dashboard.stage import Stage
from tocsin.dashboard.telling import Speaker

SHORTEST_S = 1.0  # a recording is not begun anew sooner, however short it is


class Live:
    """``is_watched``: somebody looks at the map."""

    def __init__(
        self, sampler: Sampler, stage: Stage, speaker: Speaker, is_watched: Callable[[], bool], every_s: float
    ) -> None:
        self._sampler, self._stage, self._speaker = sampler, stage, speaker
        self._is_watched, self._every_s = is_watched, every_s

    @property
    def channels(self) -> list[dict[str, Any]]:
        return self._sampler.channels

    def past(self) -> Past:
        return self._sampler.history.past()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sampler.run())
            tasks.create_task(self._place())

    async def _place(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            last = self._sampler.history.last
            if self._stage.scene is None or last is None or not self._is_watched():
                continue
            where = await self._sampler.assignments()
            if where is not None and (placed := self._stage.place(where, _spots(last))):
                await self._speaker.city(placed)


def _spots(sample: Sample) -> dict[str, Spot | None]:
    """Brokers that serve, by name, and where they stand, if they say so."""
    return {broker.name: broker.location for broker in sample.brokers if broker.is_serving}


class Playing:
    """A recording in its own time, again and again from the beginning."""

    def __init__(self, replay: Replay, settings: Dashboard, stage: Stage, speaker: Speaker) -> None:
        self._replay, self._stage, self._speaker = replay, stage, speaker
        self._history, self._watch = History(settings.history), Watch(Budgets.of(settings))
        self.channels: list[dict[str, Any]] = []
        self._n = 0

    def past(self) -> Past:
        return self._history.past()

    async def run(self) -> None:
        await self._stage.set(self._replay.scene)
        while True:
            await self._once()

    async def _once(self) -> None:
        began = time.monotonic()
        await self._speaker.city({"k": "begins"})
        for moment in self._replay.moments():
            await asyncio.sleep(max(0.0, began + moment.t - time.monotonic()))
            await self._speaker.city(moment.people)
            if placed := self._stage.place(moment.placed, _spots(moment.sample)):
                await self._speaker.city(placed)
            if moment.reports is not None:
                await self._speaker.city(moment.reports)
            await self._sampled(moment.sample)
        await asyncio.sleep(max(0.0, began + SHORTEST_S - time.monotonic()))

    async def _sampled(self, made: Sample) -> None:
        self._n += 1
        figures, cluster, at = figures_of(made.brokers), ClusterSample(True, "replaying a recording"), time.time()
        sample = Sample(
            n=self._n,
            at=at,
            brokers=made.brokers,
            figures=figures,
            channels=made.channels,
            cluster=cluster,
            decisions=self._history.decisions.note([one | {"at": at} for one in made.decisions]),
            moves=self._history.moves.note(made.moves),
            alerts=self._watch.look(at, made.brokers, figures, made.channels, cluster),
        )
        self._history.add(sample)
        await self._speaker.sample(sample)
