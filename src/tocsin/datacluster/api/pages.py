"""Pages of results on the wire.

A payload is JSON already when it leaves the store, and is copied into the answer as it is: neither decoded
nor encoded again, however many rows a page has.
"""

from __future__ import annotations

import msgspec

from tocsin.datacluster.service import ChannelPage, GapView, ResultView
from tocsin.model.position import Position


class Result(msgspec.Struct, frozen=True):
    """One row, and the backend subscriptions that get it."""

    id: str
    position: str
    backends: list[int]
    payload: msgspec.Raw


class Gap(msgspec.Struct, frozen=True):
    """Results after ``after`` up to ``through`` are no longer kept."""

    after: str
    through: str
    count: int | None
    reason: str


class Page(msgspec.Struct, frozen=True):
    """What a channel has after ``after`` up to ``through``; there is more at once unless ``end``."""

    channel: str
    after: str
    through: str
    end: bool
    gap: Gap | None
    results: list[Result]
    life: int


class Pages(msgspec.Struct, frozen=True):
    pages: list[Page]


class Positions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A position per channel."""

    positions: dict[str, str]


MESSAGES = (Page, Pages, Positions)


def page_of(page: ChannelPage) -> Page:
    return Page(
        channel=page.channel,
        after=str(page.after),
        through=str(page.through),
        end=page.is_end,
        gap=_gap(page.gap) if page.gap else None,
        results=[_result(result) for result in page.results],
        life=page.life,
    )


def parse_positions(texts: dict[str, str]) -> dict[str, Position]:
    return {channel: Position.parse(text) for channel, text in texts.items()}


def _result(view: ResultView) -> Result:
    return Result(view.id, str(view.position), list(view.backends), msgspec.Raw(view.payload))


def _gap(view: GapView) -> Gap:
    return Gap(str(view.after), str(view.through), view.count, view.reason)
