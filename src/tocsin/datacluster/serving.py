"""Results for brokers: pull what is attached, replay what was missed, acknowledge. Never Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tocsin.datacluster.brokers import Brokers
from tocsin.datacluster.channel import Channel
from tocsin.datacluster.channels import Channels
from tocsin.datacluster.service import ChannelPage, GapView, ResultView
from tocsin.datacluster.storage import acks, executions, holes
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.results import Gap, ResultPage, ResultStore, Wanted
from tocsin.datacluster.storage.transaction import Tx
from tocsin.errors import BadArgument, Refused
from tocsin.model.position import START, Position

_ANY_EXECUTION = 2**62


class Serving:
    def __init__(
        self, ledger: Ledger, results: ResultStore, channels: Channels, brokers: Brokers, max_rows: int, max_bytes: int
    ) -> None:
        self._ledger, self._results, self._channels, self._brokers = ledger, results, channels, brokers
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self._committed = threading.Condition()

    def committed(self) -> None:
        """An execution was committed: wake whoever waits for results."""
        with self._committed:
            self._committed.notify_all()

    def pull(
        self, broker: str, cursors: Mapping[str, Position], max_rows: int | None, max_bytes: int | None, wait_s: float
    ) -> list[ChannelPage]:
        """Waits for the first result, or until a channel is dropped or replaced; then it is asked for anew."""
        broker_id = self._brokers.id_of(broker)
        deadline = time.monotonic() + wait_s
        while True:
            heads = self._heads(cursors)
            pages = self._pages(
                broker_id, self._asked(cursors), max_rows or self._max_rows, max_bytes or self._max_bytes
            )
            if any(p.results or p.gap for p in pages):
                return pages
            with self._committed:
                arrived = self._committed.wait_for(
                    lambda seen=heads: self._heads(cursors) != seen,  # type: ignore[misc]
                    timeout=max(0.0, deadline - time.monotonic()),
                )
            if not arrived:
                return pages

    def replay(
        self, channel_name: str, backend: int, after: Position, through: Position | None, limit: int,
        brokers: Sequence[int] | None = None,
    ) -> ChannelPage:  # fmt: skip
        """One backend subscription's results: all, or those that one of ``brokers`` gets.

        A page ends where a hole begins that nobody held it in, and the next one begins with its gap.
        """
        channel = self._channels[channel_name]
        wanted = self._held(channel, backend, brokers) if brokers is not None else _one(backend)
        self._check_cursor(channel, after)
        last = through or Position.end_of(channel.head)
        first, hole = self._ledger.read(lambda tx: holes.whole_span(tx, channel.id, backend, after))
        stop = min(last, hole) if hole else last
        page = self._results.page(channel.id, first, wanted, min(limit, self._max_rows), self._max_bytes, stop)
        if first > after:
            gap = Gap(after, page.gap.through if page.gap else first, None, holes.UNHELD)
            page = replace(page, after=after, gap=gap)
        return replace(_page(channel, page), is_end=page.through >= last or (page.is_end and stop == last))

    def acknowledge(self, broker: str, positions: Mapping[str, Position]) -> None:
        broker_id = self._brokers.id_of(broker)
        rows = [(self._channels[name], position) for name, position in positions.items()]
        for channel, position in rows:
            self._check_cursor(channel, position)

        def work(tx: Tx) -> None:
            for channel, position in rows:
                acks.acknowledge(tx, broker_id, channel.id, position)

        self._ledger.write(work)

    def acknowledged(self, broker: str) -> dict[str, Position]:
        broker_id = self._brokers.id_of(broker)
        stored = self._ledger.read(lambda tx: acks.acknowledged(tx, broker_id))
        return {c.spec.name: stored.get(c.id, START) for c in self._channels.values() if c.id in stored}

    def results_of(self, broker_id: int, channel_name: str, execution: int, max_bytes: int) -> ChannelPage:
        """One execution's results for one broker, for a push."""
        channel = self._channels[channel_name]
        after = Position.end_of(execution - 1)
        page = self._results.page(channel.id, after, self._wanted(channel, broker_id), self._max_rows, max_bytes)
        return _page(channel, page)

    def _heads(self, names: Iterable[str]) -> list[tuple[int, int] | None]:
        """Where channels stand now, whichever goes by each name; None where none does."""
        present = {channel.spec.name.lower(): channel for channel in self._channels.values()}
        found = [present.get(name.lower()) for name in names]
        return [(channel.id, channel.head) if channel else None for channel in found]

    def _asked(self, cursors: Mapping[str, Position]) -> list[tuple[Channel, Position]]:
        """Each channel once: names ignore case, and of two cursors the earlier one counts."""
        asked: dict[int, tuple[Channel, Position]] = {}
        for name, cursor in cursors.items():
            channel = self._channels[name]
            self._check_cursor(channel, cursor)
            asked[channel.id] = (channel, min(cursor, asked.get(channel.id, (channel, cursor))[1]))
        return list(asked.values())

    def _check_cursor(self, channel: Channel, cursor: Position) -> None:
        """A position may lie in the execution that runs now: a subscription made meanwhile begins after it."""
        if cursor.execution > channel.head:
            last = self._ledger.read(lambda tx: executions.started_head(tx, channel.id))
            if cursor.execution > last:
                raise BadArgument(channel.spec.name, f"a position at or before {Position.end_of(last)}", str(cursor))

    def _pages(
        self, broker_id: int, asked: list[tuple[Channel, Position]], max_rows: int, max_bytes: int
    ) -> list[ChannelPage]:
        pages = []
        for channel, cursor in asked:
            page = self._results.page(channel.id, cursor, self._wanted(channel, broker_id), max_rows, max_bytes)
            max_rows -= len(page.rows)
            max_bytes -= sum(len(r.payload) for r in page.rows)
            pages.append(_page(channel, page))
            if max_rows <= 0 or max_bytes <= 0:
                break
        return pages

    def _wanted(self, channel: Channel, broker_id: int) -> Wanted:
        def wanted(execution: int, backends: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
            return channel.subscriptions.attachments.wanted(broker_id, execution, backends)

        return wanted

    def _held(self, channel: Channel, backend: int, brokers: Sequence[int]) -> Wanted:
        """What any of ``brokers`` gets of ``backend``; Refused where none of them holds it."""
        of_brokers = [self._wanted(channel, broker) for broker in brokers]
        asked = np.array([backend & 0xFFFFFFFF], np.uint32)
        if not any(wanted(_ANY_EXECUTION, asked)[0] for wanted in of_brokers):
            raise Refused(f"replaying backend subscription {backend} of {channel.spec.name!r} needs the capability "
                          "'read', or that of a broker that holds it")  # fmt: skip
        return lambda no, ids: (ids == backend) & np.logical_or.reduce([wanted(no, ids) for wanted in of_brokers])


def _one(backend: int) -> Wanted:
    return lambda _, ids: ids == backend


def _page(channel: Channel, page: ResultPage) -> ChannelPage:
    gap = GapView(page.gap.after, page.gap.through, page.gap.count, page.gap.reason) if page.gap else None
    rows = tuple(ResultView(r.row_id, r.position, tuple(r.backends), r.payload) for r in page.rows)
    return ChannelPage(channel.spec.name, page.after, page.through, rows, page.is_end, gap, channel.id)
