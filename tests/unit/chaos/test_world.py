"""The processes of a fault run, when somebody does not wait for their end."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from tocsin.chaos.world import ClusterHost
from tocsin.system.process import Process

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(120)"


def test_a_cluster_that_takes_its_time_to_end_is_killed_at_a_further_ctrl_c(tmp_path: Path) -> None:
    async def story() -> int | None:
        host, log = ClusterHost(tmp_path / "cluster"), tmp_path / "log"
        process = Process("cluster", [sys.executable, "-c", DEAF], "http://127.0.0.1:1", log=log)
        host._process = process
        while "deaf" not in log.read_text():
            await asyncio.sleep(0.01)
        ending = asyncio.create_task(host.stop())
        await asyncio.sleep(0.1)
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)
        return process.code

    assert asyncio.run(story()) == -signal.SIGKILL
