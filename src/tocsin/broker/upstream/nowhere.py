"""What stands for the data cluster at a broker that has none: channels and records are refused, topics go on."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.broker.ports import Attached, Page
from tocsin.errors import Refused
from tocsin.protocol.targets import Target
from tocsin.tokens import Principal

_WHY = "this broker has no data cluster (setting broker.cluster): it serves topics only"


class Nowhere:
    """``Upstream``, ``Recorder`` and ``Notices`` without a data cluster."""

    async def check(self, target: Target, principal: Principal, position: str | None = None) -> None:
        raise Refused(_WHY)

    async def attach(self, target: Target) -> Attached:
        raise Refused(_WHY)

    async def detach(self, target: Target) -> None:
        return

    async def replay(self, stream: str, after: str, through: str) -> Page:
        raise Refused(_WHY)

    async def is_beyond(self, stream: str, position: str) -> bool:
        raise Refused(_WHY)

    async def records(self, dataset: str, records: Sequence[bytes], principal: Principal) -> tuple[int, int]:
        raise Refused(_WHY)

    async def noticed(self, body: bytes, principal: Principal) -> None:
        raise Refused(_WHY)

    def restore(self) -> None:
        return
