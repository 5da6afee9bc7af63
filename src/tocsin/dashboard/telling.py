"""Saying something to the pages: samples on the topic ``system``, what moves on the map on ``city``."""

from __future__ import annotations

from typing import Any

import msgspec

from tocsin.broker.ports import Publisher
from tocsin.dashboard import city
from tocsin.dashboard.samples import Sample
from tocsin.tokens import Principal

SYSTEM = "system"
_OURSELVES = Principal("dashboard", (f"publish:{SYSTEM}", f"publish:{city.TOPIC}"))


class Speaker:
    """``positions`` has where each topic stands: a page that got the past goes on from there."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._encode = msgspec.json.Encoder().encode
        self.positions: dict[str, str] = {}

    async def sample(self, sample: Sample) -> None:
        await self._say(SYSTEM, sample)

    async def city(self, message: dict[str, Any]) -> None:
        await self._say(city.TOPIC, message)

    async def _say(self, topic: str, message: Any) -> None:
        self.positions[topic] = await self._publisher.publish(topic, self._encode(message), _OURSELVES)
