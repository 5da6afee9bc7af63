"""What the engine does beside Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from tocsin.datacluster.spark.engine import Engine, EngineOptions, Run

ROWS = pa.table({
    "bs": pa.array([1, 2], pa.int32()), "seq": pa.array([5, 5], pa.int64()), "ord": pa.array([0, 0], pa.int32()),
    "payload": pa.array(["{}", "{}"]),
})  # fmt: skip


def test_two_attempts_of_a_join_never_write_one_file(tmp_path: Path) -> None:
    nothing: Any = SimpleNamespace(_jvm=None)
    engine = Engine(nothing, {}, nothing, EngineOptions(inline_bytes=0))
    run = Run(nothing, {}, 0.0, nothing, None, tmp_path / "1" / "000000000001-1")
    outcomes = [engine._store(run, ROWS) for _ in range(2)]
    assert len({file.path for outcome in outcomes for file in outcome.files}) == 2
    assert len(list((tmp_path / "1").iterdir())) == 2
