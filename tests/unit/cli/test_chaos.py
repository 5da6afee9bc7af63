"""Fault runs that are told to end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

from tocsin.chaos.run import SeedResult


@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_that_comes_while_something_else_runs_ends_the_run_in_order(
    run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, signals: int
) -> None:
    """What a run did beside lives on until the run has ended it."""
    ended: list[str] = []

    async def beside(ending: asyncio.Event) -> None:
        for _ in range(signals):
            os.kill(os.getpid(), signal.SIGTERM)
        await ending.wait()
        ended.append("beside")

    async def play(*_: object, **__: object) -> AsyncIterator[SeedResult]:
        ending = asyncio.Event()
        task = asyncio.create_task(beside(ending))
        try:
            await asyncio.sleep(60)
            yield  # type: ignore[misc]
        finally:
            await asyncio.sleep(0.01)
            ending.set()
            await task
            ended.append("run")

    monkeypatch.setattr("tocsin.chaos.series.play", play)
    result = run("chaos", "--seeds", "1")
    assert (result.exit_code, ended) == (128 + signal.SIGTERM, ["beside", "run"])
    assert not caplog.records
