"""Seed after seed on one cluster, in a directory made fresh.

::

    .chaos/cluster/       the data cluster of all seeds: secret, data, log
    .chaos/seed-17/       of a seed that failed: journal.jsonl, what coordinator and brokers kept and said
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tocsin.chaos.run import SeedResult, run_seed
from tocsin.chaos.schedule import story
from tocsin.chaos.world import ClusterHost
from tocsin.errors import Unavailable


async def play(
    seeds: Iterable[int], root: Path, *, keep: bool = False, echo: Callable[[str], None] | None = None
) -> AsyncIterator[SeedResult]:
    """The result of each seed as it comes; directories of seeds that went well are removed unless ``keep``."""
    with alone(root):
        make_room(root)
        host = ClusterHost(root / "cluster")
        try:
            for seed in seeds:
                result = await run_seed(host, story(seed), root / f"seed-{seed}", echo)
                if not (keep or result.has_failed):
                    shutil.rmtree(root / f"seed-{seed}")
                yield result
        finally:
            await host.stop()


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Hold the directory's own lock, which ends with this process: another run would remove what this one writes."""
    root.mkdir(parents=True, exist_ok=True)
    held = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(held, root)
        yield
    finally:
        os.close(held)


def _lock(held: int, root: Path) -> None:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Unavailable(f"other fault runs use {root} at this moment; wait for them, or name another --dir") from None


def make_room(root: Path) -> None:
    """Remove what earlier runs left, and nothing else."""
    for path in root.iterdir():
        if not path.is_dir() or not (path.name == "cluster" or path.name.startswith("seed-")):
            raise Unavailable(f"{root} is not from earlier fault runs (it holds {path.name}); name another --dir")
    for path in root.iterdir():
        shutil.rmtree(path)
