"""The lab's runs on Spark are those of this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tocsin.datacluster.spark import fanout
from tocsin.lab import study
from tocsin.lab.debs19.simulation import Simulation
from tocsin.lab.jobs import Job, local
from tocsin.policies.multistage.framework import Framework
from tocsin.policies.multistage.gsh import Gsh
from tocsin.policies.multistage.ldm import Ldm
from tocsin.policies.placement.nearest import Nearest

pytestmark = pytest.mark.spark


def test_traces_are_the_same_and_in_order(spark: SparkSession) -> None:
    world = Simulation(brokers=2, subscribers=50, per_channel=3, duration_s=120, shares=(3, 1))
    jobs = [Job(world, Nearest(), Framework(Ldm(), Gsh(), window_s=0), seed) for seed in (1, 2)]
    here, there = local(jobs), fanout.on(spark)(jobs)
    assert [trace.sent.tobytes() for trace in here] == [trace.sent.tobytes() for trace in there]
    assert [trace.decided for trace in here] == [trace.decided for trace in there]
    assert here[0].migrations > 0


STUDY = """
seeds = 2
[world]
brokers = 2
subscribers = 50
per_channel = 3
duration_s = 120
shares = [3, 1]
[pace]
moves_per_s = 1
[[schemes]]
name = "nothing"
[[schemes]]
name = "both"
migrate = "xbal"
shuffle = "simsh"
shuffle_options = { warm = true }
"""


def test_a_study_on_spark_is_the_study_here(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(STUDY)
    asked = study.Study.read(tmp_path / "my.toml")
    rows, _ = study.run(asked, tmp_path / "there", fanout.on(spark))
    assert rows == study.run(asked, tmp_path / "here")[0]
    assert [row[:2] for row in rows] == [("nothing", 0), ("nothing", 1), ("both", 0), ("both", 1)]
    assert rows[2][5] > 0  # migrations
