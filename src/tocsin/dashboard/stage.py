"""The city that is on the map now, if there is one, and who of its people is where."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tocsin.dashboard import city
from tocsin.dashboard.city import Scene, Spot


class Stage:
    def __init__(self) -> None:
        self.scene: Scene | None = None
        self._drawn: dict[str, Any] | None = None
        self._placed: dict[str, Any] | None = None

    async def set(self, scene: Scene) -> None:
        """Put another city on the map; drawing it takes a second of a thread."""
        if scene != self.scene:
            self._drawn = await asyncio.to_thread(scene.drawn)
            self.scene, self._placed = scene, None

    def place(self, where: Mapping[str, str], brokers: Mapping[str, Spot | None]) -> dict[str, Any] | None:
        """What to tell of where people are, if it has changed."""
        if self.scene is None:
            return None
        placed = city.placed(self.scene.people, where, brokers)
        if placed == self._placed:
            return None
        self._placed = placed
        return placed

    @property
    def shown(self) -> dict[str, Any] | None:
        """All that a page needs to begin."""
        return None if self._drawn is None else self._drawn | {"placed": self._placed}
