"""What people see: a live table on a terminal, a line now and then elsewhere, the summary at the end."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tocsin.demo.heard import Connected
from tocsin.demo.pace import EASY_S, HARD_S
from tocsin.demo.summary import FEEDING, ChannelLine, Summary
from tocsin.units import counted

LINE_S = 5.0
_COLUMNS = (
    ("channel", False), ("runs", False), ("subscrip-\ntions", True), ("distinct", True), ("execu-\ntions", True),
    ("result\nrows", True), ("notifi-\ncations", True), ("latency\np50", True), ("\np99", True),
)  # fmt: skip


class Screen:
    """Says what happens, on a terminal in place and elsewhere line by line, at most every ``LINE_S``."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self._last_line = float("-inf")

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Leave the terminal to others; what is said from here on comes line by line."""
        if self._live:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """Something that stays on the screen."""
        (self._live.console if self._live else self._console).print(text, highlight=False, soft_wrap=True)

    def waiting(self, what: str, seconds: float) -> None:
        """Something takes its time."""
        self._show(Text(f"{what} ... {seconds:.0f} s"), f"{what} ... {seconds:.0f} s")

    def watch(self, summary: Summary) -> None:
        self._show(Group(Text(headline(summary)), table(summary)), headline(summary))

    def living(self, line: str) -> None:
        """In place on a terminal; elsewhere nothing, for this may go on for days."""
        if self._live:
            self._live.update(Text(line))

    def _show(self, live: RenderableType, line: str) -> None:
        if self._live:
            self._live.update(live)
        elif time.monotonic() - self._last_line >= LINE_S:
            self._last_line = time.monotonic()
            self.say(line)


def dashboard_lines(entrance: str | None, seconds: float, *, is_kept: bool) -> list[str]:
    """Where to look, and for how long; nothing where there is no dashboard."""
    if entrance is None:
        return []
    closes = (
        f"It closes when the demonstration ends, after {seconds:g} s of the city (--seconds gives it more); "
        "with --keep (make demo ARGS=--keep) city and dashboard go on until Ctrl-C."
    )
    stays = f"After {seconds:g} s of the city there is a summary; city and dashboard go on until Ctrl-C."
    return ["The dashboard, open to one visitor (others paste a token):", f"  {entrance}", stays if is_kept else closes]


def living_line(reports: int, lag_s: float) -> str:
    """While the city goes on after the summary."""
    lag = f", the channels are {lag_s:.0f} s behind" if lag_s >= 1 else ""
    return f"The city goes on: {counted(reports, 'report')} so far{lag}. Ctrl-C ends everything."


def headline(summary: Summary) -> str:
    executions = sum(line.executions for line in summary.channels)
    notifications = sum(line.notifications for line in summary.channels)
    lag_s = max((line.lag_s for line in summary.channels), default=0.0)
    lag = f", {lag_s:.0f} s behind{_held(summary, lag_s)}" if lag_s >= 1 else ""
    at_clients = f", {summary.connected.notifications:,} at clients" if summary.connected.people else ""
    return (
        f"{summary.phase}, {summary.seconds:.0f} s of the city: {counted(sum(summary.records.values()), 'record')}, "
        f"{counted(executions, 'execution')}, {counted(notifications, 'notification')}, "
        f"{counted(summary.notices, 'notice')}{at_clients}{lag}"
    )


def _held(summary: Summary, lag_s: float) -> str:
    """Why the city does not go on, or not as fast as the clock."""
    if summary.phase != FEEDING or lag_s <= EASY_S:
        return ""
    return ": the feed waits for the channels" if lag_s >= HARD_S else ": the feed is slowed until they catch up"


def table(summary: Summary) -> Table:
    """A row a channel, for terminals of 80 columns."""
    shown = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False, header_style="bold")
    for name, is_number in _COLUMNS:
        shown.add_column(name, justify="right" if is_number else "left")
    for line in summary.channels:
        shown.add_row(*_cells(line))
    return shown


def closing_lines(summary: Summary) -> list[str]:
    """The summary in words."""
    records = ", ".join(f"{count:,} in {name}" for name, count in sorted(summary.records.items()))
    subscriptions = sum(line.subscriptions for line in summary.channels)
    distinct = sum(line.distinct for line in summary.channels)
    lines = [
        *_lag_lines(summary),
        f"Records: {records}.",
        f"Executions: {sum(line.executions for line in summary.channels):,}, each for all subscriptions of its "
        f"channel: {subscriptions:,} subscriptions, {distinct:,} distinct parameter sets.",
        f"Logins: {summary.late_subscriptions:,} of the subscriptions were made by people who came during the run.",
        *_other_lines(summary),
        f"Results: {sum(line.rows for line in summary.channels):,} rows, which are "
        f"{sum(line.notifications for line in summary.channels):,} notifications: one for each subscription that a row "
        f"reaches. All were counted at a broker of the demonstration's own, which the cluster told of new ones "
        f"{_times(summary.notices)}.",
        *_connected_lines(summary.connected),
        "Latency: from a record's receipt to its result in that first broker's hands. Channels with a period wait for "
        "their next tick first, and that wait is included. "
        f"The first {summary.warm_up_reports:,} reports, with which Spark warmed up, are not.",
    ]
    failed = sum(line.failed for line in summary.channels)
    if failed:
        lines.append(f"{counted(failed, 'execution')} failed and {'was' if failed == 1 else 'were'} repeated.")
    if not summary.problems:
        lines.append("Every notification came exactly once: none missing, none doubled.")
    return lines


def _other_lines(summary: Summary) -> list[str]:
    """Else the dashboard and ``tocsin status`` would seem to disagree."""
    if not summary.other_subscriptions:
        return []
    return [
        f"The dashboard and tocsin status count {counted(summary.other_subscriptions, 'subscription')} more: those "
        "that brokers hold for whoever is connected, one at a broker for all who want the same."
    ]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _lag_lines(summary: Summary) -> list[str]:
    """First, for it explains the latencies."""
    if not summary.has_lagged:
        return []
    cut = ", and was cut short" if summary.is_cut else ""
    passed_s = summary.seconds + summary.held_s
    return [
        f"This machine lagged: the feed was held back for {summary.held_s:.0f} of {passed_s:.0f} s{cut}. "
        "The latencies are those of a machine that was too busy."
    ]


def _connected_lines(connected: Connected) -> list[str]:
    if not connected.people:
        return []
    latency = f", {_latency(connected.p50_ms)} after a record's receipt in the median" if connected.p50_ms else ""
    return [
        f"Connections: {connected.people:,} of the {connected.of_people:,} people are also connected by WebSocket, to "
        f"{counted(connected.brokers, 'other broker')}, with {counted(connected.subscriptions, 'subscription')}. "
        f"{counted(connected.notifications, 'notification')} came to their clients{latency}: "
        f"{connected.missing:,} missing, {connected.doubled:,} doubled, "
        f"{connected.out_of_order:,} out of order."
    ]


def _cells(line: ChannelLine) -> list[str]:
    return [
        line.channel,
        line.mode,
        f"{line.subscriptions:,}",
        f"{line.distinct:,}",
        f"{line.executions:,}",
        f"{line.rows:,}",
        f"{line.notifications:,}",
        _latency(line.p50_ms),
        _latency(line.p99_ms),
    ]


def _latency(value_ms: float | None) -> str:
    if value_ms is None:
        return "–"
    return f"{value_ms:.0f} ms" if value_ms < 1000 else f"{value_ms / 1000:.1f} s"
