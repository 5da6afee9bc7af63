"""Pauses that something can end early."""

import asyncio

import pytest

from tocsin.broker.upstream.backoff import Backoff


async def pausing(wake):
    while True:
        await Backoff(10.0, 10.0).pause(wake)
        wake.clear()


@pytest.mark.parametrize("is_woken", [True, False], ids=["woken at that moment", "asleep"])
def test_whoever_pauses_can_be_cancelled(is_woken):
    async def cancelled():
        wake = asyncio.Event()
        task = asyncio.create_task(pausing(wake))
        await asyncio.sleep(0.01)
        if is_woken:
            wake.set()
            await asyncio.sleep(0)
        task.cancel()
        async with asyncio.timeout(5):
            await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert asyncio.run(cancelled())
