"""A few seeds of the fault runs, as `make chaos` runs hundreds: nothing missing, doubled or out of order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.integration]

SEEDS = os.environ.get("TOCSIN_TEST_SEEDS", "6:7")  # a coordinator and a broker die, a broker drains


def test_what_had_to_arrive_arrived_once_and_in_order(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tocsin.cli.main", "chaos", "--seeds", SEEDS, "--json", "--dir", "chaos"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    *seeds, totals = lines
    assert totals["failed_seeds"] == [], [seed["problems"] for seed in seeds]
    assert done.returncode == 0
    assert totals["runs"] == len(seeds) >= 1
    assert totals["expected"] == totals["delivered"] + sum(totals["gapped"].values())
    assert totals["delivered"] > 200
    assert totals["missing"] == totals["doubled"] == totals["out_of_order"] == 0
    assert [path.name for path in (tmp_path / "chaos").iterdir()] == ["cluster"], "a seed that went well left something"


def test_sigterm_ends_a_run_with_everything_that_it_started(tmp_path: Path) -> None:
    """It comes when processes have been started and nothing is ready yet; a second one changes nothing."""
    command = [sys.executable, "-m", "tocsin.cli.main", "chaos", "--seeds", "6", "--verbose", "--dir", "chaos"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    said = running.stderr.readline()
    assert "started" in said
    assert _of(tmp_path), "nothing was started"
    running.send_signal(signal.SIGTERM)
    running.send_signal(signal.SIGTERM)
    _, rest = running.communicate(timeout=60)
    assert (running.returncode, "Traceback" in rest) == (128 + signal.SIGTERM, False), rest
    assert _of(tmp_path) == []


def _of(directory: Path) -> list[int]:
    """Processes that were told something of ``directory``."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if str(directory).encode() in Path(f"/proc/{entry}/cmdline").read_bytes():
                found.append(int(entry))
    return found
