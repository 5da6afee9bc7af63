"""The lab's runs on Spark are those of this process."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tocsin.datacluster.spark import fanout
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
