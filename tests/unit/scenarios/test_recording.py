from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tocsin.errors import Corrupt, Unavailable
from tocsin.scenarios import recording
from tocsin.scenarios.recording import Event, about, record, replay

EVENTS = [Event(0.0, "a", {"text": "größer"}), Event(0.5, "b", [1, 2.5, None]), Event(0.5, "end", None)]
HEADER = '{"format":"tocsin-recording","version":1,"about":{}}\n'


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
def test_what_was_recorded_is_replayed(tmp_path: Path, name: str) -> None:
    assert record(tmp_path / name, EVENTS, {"seed": 1}) == 3
    assert list(replay(tmp_path / name)) == EVENTS
    assert about(tmp_path / name) == {"seed": 1}


def test_the_same_events_give_the_same_bytes(tmp_path: Path) -> None:
    one, other = tmp_path / "one.gz", tmp_path / "other.gz"
    for path in (one, other):
        record(path, EVENTS, {})
    assert one.read_bytes() == other.read_bytes()


def test_no_events_are_a_recording_too(tmp_path: Path) -> None:
    record(tmp_path / "r.jsonl", [], {})
    assert list(replay(tmp_path / "r.jsonl")) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "stops before its end", id="an empty file"),
        pytest.param('{"format":"other"}\n', "first line with format", id="another format"),
        pytest.param(HEADER.replace(":1,", ":9,"), "expected version 1, got 9", id="another version"),
        pytest.param(HEADER, "stops before its end", id="no end line"),
        pytest.param(HEADER + '[0.0,"a",1]\n[1.0,"a"', "stops before its end", id="cut within a line"),
        pytest.param(HEADER + "nonsense\n", "Expecting value", id="not JSON"),
        pytest.param(HEADER + '["a",0.0,1]\n', r"expected \[t, kind, payload\]", id="not an event"),
        pytest.param(HEADER + '[NaN,"a",1]\n', r"expected \[t, kind, payload\]", id="never"),
        pytest.param("[" * 100_000 + "\n", "recursion", id="nested without end"),
        pytest.param(HEADER.replace("{}", "[1]"), "expected settings by name", id="settings without names"),
        pytest.param(HEADER + '["end",2]\n', "expected 2 events, found 0", id="lines are missing"),
    ],
)
def test_a_damaged_recording_is_noticed(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Corrupt, match=problem):
        list(replay(path))


@pytest.mark.parametrize("name", ["nowhere/r.jsonl", "nowhere/r.jsonl.gz", ""])
def test_where_nothing_can_be_written_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unavailable, match=f"recording {tmp_path / name} cannot be written: "):
        record(tmp_path / name, EVENTS, {})


@pytest.mark.parametrize("name", ["nowhere.jsonl", "nowhere.jsonl.gz", ""])
def test_what_is_no_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unavailable, match="cannot be read"):
        about(tmp_path / name)


def test_a_cut_archive_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(gzip.compress((HEADER + '[0.0,"a",1]\n' * 50).encode())[:-20])
    with pytest.raises(Corrupt, match=r"r\.jsonl\.gz"):
        list(replay(path))


def test_a_line_without_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_LINE", 1_000)
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * 1_000_000))
    with pytest.raises(Corrupt, match="at most 1,000 characters"):
        list(replay(path))
