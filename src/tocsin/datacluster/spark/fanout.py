"""The lab's runs, beside each other on Spark: a task each."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from tocsin.datacluster.spark.session import SparkOptions, start_session, stop_session
from tocsin.lab.jobs import Job, Runner
from tocsin.lab.trace import Trace


def on(session: SparkSession) -> Runner:
    """A runner on this session."""

    def run(jobs: Sequence[Job]) -> list[Trace]:
        tasks = session.sparkContext.parallelize(jobs, max(1, len(jobs)))
        traces: list[Trace] = tasks.map(Job.run).collect()
        return traces

    return run


def at(master: str) -> Runner:
    """A runner with a session of its own, started and stopped around the runs."""

    def run(jobs: Sequence[Job]) -> list[Trace]:
        session = start_session(SparkOptions(master=master, app_name="tocsin-lab"))
        try:
            return on(session)(jobs)
        finally:
            stop_session(session)

    return run
