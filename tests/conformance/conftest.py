"""One event loop for all stories, so that they share a Node process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from conformance.drivers import NodeDriver


@pytest.fixture(scope="session")
def stage() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner
        if NodeDriver.node is not None:
            runner.run(NodeDriver.node.stop())
            NodeDriver.node = None
