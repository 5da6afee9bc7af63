"""What stands for the coordinator at a broker that has none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from tocsin.protocol.coordination import BrokerInfo, Placement
from tocsin.protocol.messages import Wanted


class Alone:
    """``Directory`` of a broker without a coordinator: everybody belongs here, nothing is durable."""

    def __init__(self, broker: Callable[[], BrokerInfo]) -> None:
        self._broker = broker

    is_briefed = True
    refused: str | None = None

    async def where(self, user: str) -> Placement | None:
        me = self._broker()
        return Placement(user, me.name, me.url, 0, "", "there is no coordinator")

    async def keep(self, user: str, wanted: Wanted) -> None:
        return

    async def drop(self, user: str, id: str) -> None:
        return

    async def kept_of(self, user: str, ids: Collection[str]) -> Mapping[str, Wanted]:
        return {}

    async def said(self, user: str, ids: Collection[str]) -> None:
        return

    def logged_in(self, user: str, session: str, *, is_admitted_unasked: bool) -> None:
        return

    def logged_out(self, user: str, session: str) -> None:
        return

    def acknowledged(self, user: str, id: str, position: str, *, is_back: bool = False) -> None:
        return

    def arrived(self, user: str, version: int) -> None:
        return

    def drained(self) -> bool:
        return False
