"""Kill the storage at every durable step, start it again, and find nothing lost and nothing twice."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
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
    context.set_forkserver_preload(["pandas", "storage_world"])
    return context


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: a killed process leaves the system's buffers as they are."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


@pytest.mark.parametrize("point", sorted(faults.POINTS), ids=lambda p: f"killed when {faults.POINTS[p]}")
def test_nothing_is_lost_or_doubled(
    point: str, root: Path, kills: Counter[str], processes: multiprocessing.context.ForkServerContext
) -> None:
    for hit in (*HITS, 0):
        process = processes.Process(target=world.live, args=(str(root), point, hit))
        process.start()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        kills[point] += process.exitcode != 0
        world.check(root)
        if process.exitcode == 0:
            break
    assert kills[point], "the work never passes this point"
    world.check_finished(root)
