"""Topics that are not settled at once."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tocsin.broker.tasks import Tasks
from tocsin.broker.upstream.backoff import Backoff
from tocsin.broker.upstream.settling import Settling
from tocsin.clock import SystemClock
from tocsin.errors import Unavailable


def test_a_topic_that_stays_unsettled_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """While all brokers stop there is nobody to settle it with, and it is tried over and over."""
    failed: list[str] = []
    settled = asyncio.Event()

    async def bring(topic: str) -> None:
        await asyncio.sleep(0)
        if len(failed) < 5:
            raise Unavailable("its owner is away")
        settled.set()

    async def story() -> None:
        tasks = Tasks("b1")
        settling = Settling(tasks, SystemClock(), lambda: Backoff(0.0, 0.0), bring, failed.append, lambda topic: True)
        settling.later("news")
        await asyncio.wait_for(settled.wait(), 10)
        await tasks.stop()

    with caplog.at_level(logging.INFO, "tocsin.broker.upstream.settling"):
        asyncio.run(story())
    assert caplog.messages == ["the topic news is not settled yet: its owner is away"]
    assert failed == ["news"] * 5
