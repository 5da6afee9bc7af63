"""A hub that remembers: what upstreams deliver, as one who follows every stream would see it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tocsin.protocol.messages import Hole


class Remembered:
    """Keeps the promises of ``Delivery``, and fails where an upstream breaks its own."""

    def __init__(self) -> None:
        self._positions: dict[str, str] = {}
        self.items: dict[str, list[tuple[str, bytes]]] = {}
        self.ended: dict[str, list[str]] = {}
        self.holes: dict[str, list[tuple[Hole, str]]] = {}

    def open(self, stream: str, position: str) -> None:
        """Someone holds ``stream`` from now on."""
        self._positions.setdefault(stream, position)
        self.items.setdefault(stream, [])
        self.holes.setdefault(stream, [])

    def close(self, stream: str) -> None:
        self._positions.pop(stream, None)

    def deliver(self, stream: str, items: Sequence[tuple[str, bytes]]) -> None:
        for position, payload in items:
            if stream in self._positions and position > self._positions[stream]:
                self._positions[stream] = position
                self.items[stream].append((position, payload))

    def gap(self, stream: str, holes: Sequence[Hole], reason: str) -> None:
        for hole in holes:
            if stream in self._positions and hole.through > self._positions[stream]:
                assert hole.after >= self._positions[stream]
                self._positions[stream] = hole.through
                self.holes[stream].append((hole, reason))

    def end(self, stream: str, code: str, detail: str) -> None:
        self.ended.setdefault(stream, []).append(code)
        self.close(stream)

    def position(self, stream: str) -> str | None:
        return self._positions.get(stream)

    def streams(self) -> Collection[str]:
        return self._positions.keys()
