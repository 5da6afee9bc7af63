"""The report of a run, as a file."""

from __future__ import annotations

from pathlib import Path

from tocsin.demo import report
from tocsin.demo.plan import SPEED
from tocsin.demo.summary import ChannelLine, Summary

LINE = ChannelLine("ByKind", "continuous", "index", 1_500, 8, 12, 0, 900, 7_000, 42.4, 2_512.0, 0.0)
SUMMARY = Summary("Done", 45.0, {"Reports": 7_500}, [LINE], 24)
BROKER = {"bytes_in": [1, 2], "bytes_out": [3, 4], "online": [5, 6]}
PAST = {
    "n": 2, "began": 100.0, "at": [100.0, 101.0], "cov": [0, 0], "maximum": [1, 2], "mean": [1, 2],
    "brokers": {"b": BROKER},
}  # fmt: skip


def test_it_says_how_fast_the_city_lived(tmp_path: Path) -> None:
    report.write(tmp_path / "report.html", SUMMARY, None)
    text = (tmp_path / "report.html").read_text()
    assert f"45 seconds of a generated city, each standing for {SPEED:g} seconds of it." in text
    assert "7,000" in text


def test_it_needs_nothing_else(tmp_path: Path) -> None:
    report.write(tmp_path / "report.html", SUMMARY, PAST)
    text = (tmp_path / "report.html").read_text()
    assert text.count("<svg") == 4
    assert not any(word in text for word in ("src=", "href=", "@import", "url("))
