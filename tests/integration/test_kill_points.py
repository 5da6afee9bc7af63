"""Kill the storage at every durable step, start it again, and find nothing lost and nothing twice."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import storage_world as world

from tocsin.datacluster.storage import faults

HITS = (1, 2, 3, 5, 8)
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def kills(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    counted: Counter[str] = Counter()
    yield counted
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\n{counted.total()} kills at {len(counted)} points")


@pytest.fixture(scope="module")
def processes() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["storage_world"])
    return context


@pytest.mark.parametrize("point", sorted(faults.POINTS), ids=lambda p: f"killed when {faults.POINTS[p]}")
def test_nothing_is_lost_or_doubled(
    point: str, tmp_path: Path, kills: Counter[str], processes: multiprocessing.context.ForkServerContext
) -> None:
    for hit in (*HITS, 0):
        process = processes.Process(target=world.live, args=(str(tmp_path), point, hit))
        process.start()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        kills[point] += process.exitcode != 0
        world.check(tmp_path)
        if process.exitcode == 0:
            break
    assert kills[point], "the work never passes this point"
    world.check_finished(tmp_path)
