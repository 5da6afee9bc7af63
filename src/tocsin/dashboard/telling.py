"""Saying something to the pages: samples on the topic ``system``, what moves on the map on ``city``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from tocsin.broker.ports import Publisher
from tocsin.dashboard import city
from tocsin.dashboard.samples import Sample
from tocsin.tokens import Principal

SYSTEM = "system"
BYTES_EACH = 4  # of a person
_OURSELVES = Principal("dashboard", (f"publish:{SYSTEM}", f"publish:{city.TOPIC}"))


class People(msgspec.Struct, frozen=True, tag_field="k", tag="people"):
    """Where everybody is."""

    t: float
    xy: bytes


class _World(msgspec.Struct, frozen=True, tag_field="k", tag="world"):
    """There is another city."""


class Speaker:
    """Everything that pages are told goes through here, be it of the dashboard or of a visitor who feeds the map.

    So it knows what a page that opens now has to: in ``positions`` where each topic stands, from which it goes on, and
    in ``people`` where everybody was last, who may not move again for long.
    """

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._encode = msgspec.json.Encoder().encode
        self.positions: dict[str, str] = {}
        self.people: People | None = None

    async def publish(self, topic: str, payload: bytes, principal: Principal) -> str:
        position = await self._publisher.publish(topic, payload, principal)
        self.positions[topic] = position
        if topic == city.TOPIC:
            self._note(payload)
        return position

    async def sample(self, sample: Sample) -> None:
        await self._say(SYSTEM, sample)

    async def city(self, message: dict[str, Any]) -> None:
        await self._say(city.TOPIC, message)

    async def _say(self, topic: str, message: Any) -> None:
        await self.publish(topic, self._encode(message), _OURSELVES)

    def _note(self, payload: bytes) -> None:
        """Pages make what they can of the rest, which may be anything that a visitor says."""
        with suppress(msgspec.MsgspecError):
            found = msgspec.json.decode(payload, type=People | _World)
            if isinstance(found, _World):
                self.people = None
            elif len(found.xy) % BYTES_EACH == 0:
                self.people = found
