"""The demonstration as a newcomer runs it, shortened: real processes, real Spark, real HTTP."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

_DEMO = (sys.executable, "-m", "tocsin.cli.main", "demo")
_CHANNELS = ["ByKind", "NearPlace", "NearMe", "WithShelters"]


def test_a_short_run_delivers_everything_exactly_once_and_leaves_nothing_running(tmp_path: Path) -> None:
    done = subprocess.run(
        [*_DEMO, "--seconds", "4", "--people", "150", "--subscriptions", "600", "--connected", "30", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["problems"] == []
    assert [line["channel"] for line in summary["channels"]] == _CHANNELS
    for line in summary["channels"]:
        assert line["executions"] >= 1
        assert line["notifications"] >= line["rows"] > 0
        assert line["subscriptions"] >= line["distinct"] > 0
    assert sum(line["subscriptions"] for line in summary["channels"]) == 600 or summary["is_cut"]
    assert 0 < summary["late_subscriptions"] < 200
    connected = summary["connected"]
    assert (connected["people"], connected["brokers"]) == (30, 2) or summary["is_cut"]
    assert connected["notifications"] > connected["subscriptions"] > connected["people"]
    assert connected["missing"] == connected["doubled"] == connected["out_of_order"] == 0
    assert summary["records"]["Reports"] > summary["warm_up_reports"] > 0
    assert "Starting Spark" in done.stderr
    assert "make demo ARGS=--keep" in done.stderr
    assert re.search(r"^ +http://127\.0\.0\.1:\d+/#enter=\S+$", done.stderr, re.MULTILINE)
    _check_report((tmp_path / ".demo" / "report.html").read_text(), summary)
    assert not _is_locked(tmp_path / ".demo" / "data" / "lock")


def _check_report(text: str, summary: dict[str, Any]) -> None:
    """It stands alone, and has the summary, the channels, and plots of what the dashboard saw."""
    assert "Every notification came exactly once" in text
    for line in summary["channels"]:
        assert f"<td>{line['channel']}</td>" in text
        assert f">{line['notifications']:,}</td>" in text
    assert text.count("<svg") == 4
    assert "broker_1" in text
    assert "broker_2" in text
    assert all("L" in path for path in re.findall(r'<path d="([^"]*)"', text))
    assert not any(word in text for word in ("src=", "href=", "@import", "url("))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_ends_demonstration_and_cluster(tmp_path: Path, number: signal.Signals, code: int) -> None:
    lock = tmp_path / ".demo" / "data" / "lock"
    demo = subprocess.Popen([*_DEMO, "--json"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        cluster = _holder(lock, demo)
        demo.send_signal(number)
        out, errors = demo.communicate(timeout=90)
    finally:
        demo.kill()
    assert (demo.returncode, out) == (code, b""), errors
    assert b"Traceback" not in errors
    assert not _is_locked(lock)
    with pytest.raises(ProcessLookupError):
        os.kill(cluster, 0)


def _is_locked(lock: Path) -> bool:
    """Whether a running cluster holds the data directory."""
    try:
        with lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _holder(lock: Path, demo: subprocess.Popen[bytes]) -> int:
    """The cluster's process, once it has its data directory; read, for trying the lock might take it away."""
    deadline = time.monotonic() + 90
    while not (lock.exists() and lock.read_text().endswith("\n")):
        assert demo.poll() is None, demo.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return int(lock.read_text())
