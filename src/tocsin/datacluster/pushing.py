"""What is sent for a notice that waits: the notice itself, and for a PUSH channel the results that fit."""

from __future__ import annotations

import json
from typing import Any

from tocsin.datacluster.channels import Channels
from tocsin.datacluster.service import ResultView
from tocsin.datacluster.serving import Serving
from tocsin.model.position import Position


class Pushing:
    """``max_bytes`` bounds the payload of one notice; what does not fit is pulled."""

    def __init__(self, channels: Channels, serving: Serving, max_bytes: int) -> None:
        self._channels, self._serving, self._max_bytes = channels, serving, max_bytes

    def message(self, broker_id: int, body: bytes) -> dict[str, Any]:
        """A stored notice as the broker gets it."""
        notice: dict[str, Any] = json.loads(body)
        if notice.pop("push", False) and notice["channel"] in self._channels:
            execution = Position.parse(notice["through"]).execution
            notice["results"] = self._results(broker_id, notice["channel"], execution)
        return notice

    def _results(self, broker_id: int, channel: str, execution: int) -> list[dict[str, Any]]:
        page = self._serving.results_of(broker_id, channel, execution, self._max_bytes)
        mine = (result for result in page.results if result.position.execution == execution)
        return [_pushed(result) for result in mine if len(result.payload) <= self._max_bytes]  # a page always has one


def _pushed(result: ResultView) -> dict[str, Any]:
    return {
        "id": result.id,
        "position": str(result.position),
        "backends": list(result.backends),
        "payload": json.loads(result.payload),
    }
