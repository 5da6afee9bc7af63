"""What peers send, on its way to the hub: held back until the hub knows the stream, and never with a hole.

What is held back of a stream is bounded. What is beyond that counts as missing, and is sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from tocsin.broker.ports import Delivery
from tocsin.protocol.messages import Gap, Notification

_LOOK_S, _LOOKS = 0.01, 500  # how often and how long to look whether the hub knows a stream
_HELD_BYTES = 4_000_000  # of a stream
_MESSAGE_BYTES = 500  # of a message beside its payload, roughly


@dataclass(slots=True)
class _Held:
    messages: list[Notification | Gap] = field(default_factory=list)
    size_bytes: int = 0
    is_whole: bool = True

    def add(self, message: Notification | Gap) -> None:
        self.is_whole = self.is_whole and self.size_bytes < _HELD_BYTES
        if self.is_whole:
            self.messages.append(message)
            payload = bytes(message.payload) if isinstance(message, Notification) else b""
            self.size_bytes += _MESSAGE_BYTES + len(payload)


class Inlet:
    """``missing`` hears of a stream that was held back and does not fit what the hub has."""

    def __init__(self, delivery: Delivery, missing: Callable[[str], None]) -> None:
        self._delivery, self._missing = delivery, missing
        self._held: dict[str, _Held] = {}

    def take(self, message: Notification | Gap) -> bool:
        """False where something before ``message`` is missing: then it was not taken."""
        held = self._held.get(message.stream)
        if held is None and self._delivery.position(message.stream) is None:
            held = self._held[message.stream] = _Held()
            self._later(message.stream, _LOOKS)
        if held is None:
            return self._give(message)
        held.add(message)
        return True

    def drop(self, stream: str) -> None:
        """Nobody wants it any more."""
        self._held.pop(stream, None)

    def _later(self, stream: str, looks: int) -> None:
        asyncio.get_running_loop().call_later(_LOOK_S, self._look, stream, looks)

    def _look(self, stream: str, looks: int) -> None:
        if stream not in self._held:
            return
        if self._delivery.position(stream) is not None:
            held = self._held.pop(stream)
            if not (all(self._give(message) for message in held.messages) and held.is_whole):
                self._missing(stream)
        elif looks:
            self._later(stream, looks - 1)
        else:
            del self._held[stream]

    def _give(self, message: Notification | Gap) -> bool:
        position = self._delivery.position(message.stream)
        if isinstance(message, Gap):
            self._delivery.gap(message.stream, message.holes, message.reason)
        elif position is not None and message.after > position:
            return False
        else:
            self._delivery.deliver(message.stream, [(message.through, bytes(message.payload))])
        return True
