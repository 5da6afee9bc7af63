"""The summary of a run as an HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tocsin.dashboard import report
from tocsin.demo.plan import SPEED
from tocsin.demo.summary import ChannelLine, Summary
from tocsin.demo.view import closing_lines

COLUMNS = ("channel", "runs", "subscriptions", "distinct", "executions", "rows", "notifications", "p50", "p99")


def write(path: Path, summary: Summary, past: Mapping[str, Any] | None) -> None:
    """``past`` is what the dashboard has seen of it; without it there are no plots."""
    sections = [report.said("What happened", closing_lines(summary))]
    if summary.problems:
        sections.append(report.said("What was not as it should be", list(summary.problems), is_bad=True))
    sections.append(report.table("Channels", COLUMNS, map(_row, summary.channels)))
    sections += report.plots(past) if past else []
    lead = f"{summary.seconds:.0f} seconds of a generated city, each standing for {SPEED:g} seconds of it."
    path.write_text(report.page("A city on Tocsin", lead, sections), encoding="utf-8")


def _row(line: ChannelLine) -> tuple[object, ...]:
    return (
        line.channel, line.mode, line.subscriptions, line.distinct, line.executions, line.rows, line.notifications,
        _latency(line.p50_ms), _latency(line.p99_ms),
    )  # fmt: skip


def _latency(value_ms: float | None) -> str:
    return "–" if value_ms is None else f"{value_ms:,.0f} ms"
