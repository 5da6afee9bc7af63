"""A few seeds of the fault runs, as `make chaos` runs hundreds: nothing missing, doubled or out of order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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
