"""Starting Spark in a process of its own: what the terminal shows, and what is said when something is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

_START = """
from pathlib import Path
from tocsin.datacluster.feeds.stream import start_feed
from tocsin.datacluster.spark.session import SparkOptions, start_session, stop_session
from tocsin.errors import TocsinError
from tocsin.model.catalog import Column, DatasetSpec, FeedSpec
from tocsin.model.types import SqlType
"""
_TWICE = (
    _START
    + """
for cores in (1, 2):
    spark = start_session(SparkOptions(master=f"local[{cores}]", driver_memory="512m"))
    print(spark.sparkContext.defaultParallelism, spark.sql("SELECT CAST('x' AS INT) AS n, 1 / 0 AS d").collect())
    stop_session(spark)
"""
)
_NO_CONNECTOR = (
    _START
    + """
spark = start_session(SparkOptions(master="local[1]", driver_memory="512m"))
feed = FeedSpec("f", "d", "kafka", (("servers", "h:9092"), ("topic", "t")))
try:
    start_feed(spark, feed, DatasetSpec("d", (Column("id", SqlType("INT")),)), None, Path("never-made"))
except TocsinError as refused:
    print(refused.code, refused)
stop_session(spark)
"""
)
_BAD_MASTER = (
    _START
    + """
try:
    start_session(SparkOptions(master="nonsense://x"))
except TocsinError as refused:
    print(refused.code, refused)
"""
)


def run(program: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=150,
        cwd=directory,
        env={**os.environ, "TMPDIR": str(directory), **environment},
    )


def test_a_session_is_quiet_leaves_nothing_behind_and_can_be_followed_by_another(tmp_path: Path) -> None:
    done = run(_TWICE, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["1 [Row(n=None, d=None)]", "2 [Row(n=None, d=None)]"]
    assert list(tmp_path.iterdir()) == []


def test_a_kafka_feed_without_the_connector_says_what_to_do(tmp_path: Path) -> None:
    done = run(_NO_CONNECTOR, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("unavailable ")
    assert "make kafka" in done.stdout
    assert not (tmp_path / "never-made").exists()


def test_a_master_that_spark_does_not_know_is_named(tmp_path: Path) -> None:
    done = run(_BAD_MASTER, tmp_path)
    assert done.stdout.startswith("unavailable Spark did not start on 'nonsense://x'")
    assert "Master must" in done.stdout
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        pytest.param({"JAVA_HOME": "", "PATH": ""}, "Java 17 or later", id="no Java at all"),
        pytest.param({"JAVA_HOME": "elsewhere"}, "'elsewhere', which has no bin/java", id="JAVA_HOME is wrong"),
    ],
)
def test_a_missing_java_is_one_clear_sentence(environment: dict[str, str], sentence: str, tmp_path: Path) -> None:
    done = run(_BAD_MASTER, tmp_path, **environment)
    assert done.stdout.startswith("unavailable ")
    assert sentence in done.stdout
    assert list(tmp_path.iterdir()) == []
