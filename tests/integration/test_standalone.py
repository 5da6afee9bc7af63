"""The same session code on a real cluster: a standalone master and worker, executors in their own processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

# A process has one Spark session, and the test session may have a local one: this runs in its own.
_PROGRAM = """
import os, sys
import pyarrow as pa
from tocsin.datacluster.spark.session import SparkOptions, start_session, stop_session

def where(batches):
    import tocsin.model.catalog
    for batch in batches:
        here = [f"{os.getppid()}:{sys.executable}"] * batch.num_rows
        yield pa.record_batch([batch.column(0), pa.array(here)], names=["id", "place"])

spark = start_session(SparkOptions(master=sys.argv[1], driver_memory="512m", conf={"spark.executor.memory": "512m"}))
rows = spark.range(0, 1000, 1, 4).mapInArrow(where, "id bigint, place string").toArrow()
print(rows.num_rows, sum(rows["id"].to_pylist()), *sorted({p.split(":", 1)[1] for p in rows["place"].to_pylist()}))
print(spark.sparkContext.master, spark.conf.get("spark.driver.host"))
stop_session(spark)
"""


def test_workers_of_a_cluster_find_python_and_the_package() -> None:
    from standalone import standalone_cluster

    with standalone_cluster() as master:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, master],
            capture_output=True,
            text=True,
            timeout=150,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"1000 {sum(range(1000))} {sys.executable}", f"{master} 127.0.0.1"]
    assert done.stderr == ""
