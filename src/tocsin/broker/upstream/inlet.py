"""What peers send, on its way to the hub: held back until the hub knows the stream, and never with a hole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tocsin.broker.ports import Delivery
from tocsin.protocol.messages import Gap, Notification

_LOOK_S, _LOOKS = 0.01, 500  # how often and how long to look whether the hub knows a stream


class Inlet:
    """``missing`` hears of a stream that was held back and does not fit what the hub has."""

    def __init__(self, delivery: Delivery, missing: Callable[[str], None]) -> None:
        self._delivery, self._missing = delivery, missing
        self._held: dict[str, list[Notification | Gap]] = {}

    def take(self, message: Notification | Gap) -> bool:
        """False where something before ``message`` is missing: then it was not taken."""
        if message.stream in self._held:
            self._held[message.stream].append(message)
            return True
        if self._delivery.position(message.stream) is None:
            self._held[message.stream] = [message]
            self._later(message.stream, _LOOKS)
            return True
        return self._give(message)

    def drop(self, stream: str) -> None:
        """Nobody wants it any more."""
        self._held.pop(stream, None)

    def _later(self, stream: str, looks: int) -> None:
        asyncio.get_running_loop().call_later(_LOOK_S, self._look, stream, looks)

    def _look(self, stream: str, looks: int) -> None:
        if stream not in self._held:
            return
        if self._delivery.position(stream) is not None:
            if not all(self._give(message) for message in self._held.pop(stream)):
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
