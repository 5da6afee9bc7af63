"""The prototype experiment, tiny: real processes, real connections, one run, measured."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path

import pytest

from tocsin.lab.debs19.simulation import KB
from tocsin.live import cost, run
from tocsin.live.experiment import Experiment
from tocsin.scenarios.city import Timetable

pytestmark = pytest.mark.integration

TINY = Experiment(
    subscribers=20,
    reports=1_500,
    speed=150.0,
    period_speed=10.0,
    beta=0.001 * KB,
    spots=((0.5, 0.5), (0.9, 0.9)),
    timetable=Timetable(login_s=150.0, subscribe_s=150.0),
    channel_names=("ByKind", "NearPlace"),
)


def test_a_skewed_placement_is_measured_and_balanced(tmp_path: Path) -> None:
    notes = asyncio.run(run.measure(TINY, ["NR LDM"]))["NR LDM"][0]
    trace = notes.trace(TINY)
    assert notes.problems == []
    assert (notes.holes, notes.gaps, notes.breaks) == (0, 0, 0)
    assert (trace.loads[-1] > 0).all()
    assert trace.users.sum(axis=1).max() >= TINY.subscribers
    assert notes.notifications > trace.frontend >= trace.backend > 0
    assert trace.migrations == len(notes.done) > 0
    files = cost.draw([notes], tmp_path)
    with (tmp_path / "migrations.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(notes.handovers) > 0
    assert all(float(row["ms"]) > 0 and int(row["subscriber_bytes"]) > 200 for row in rows)
    assert {path.name for path in files} == {"migrations.csv", "migrations.png"}
