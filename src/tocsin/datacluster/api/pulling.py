"""Waiting for results.

A pull that may wait asks the service in slices of ``SLICE_S``, always from the caller's own cursors. Between
two slices it looks whether the caller has gone or the cluster is draining, so a dead connection holds its
thread for one slice and no longer, and a drain is not held up by those who wait. Only so many pulls may wait
at once; one more is refused with 429, for if it queued it would find out about results late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
from starlette.requests import Request

from tocsin.datacluster.api.context import Api
from tocsin.datacluster.service import ChannelPage
from tocsin.errors import LimitExceeded

SLICE_S = 1.0

Ask = Callable[[float], list[ChannelPage]]


async def pull_waiting(api: Api, request: Request, wait_s: float, ask: Ask) -> list[ChannelPage]:
    """What ``ask`` finds within ``wait_s``; it is given the seconds it may take."""
    with _waiting(api):
        deadline = anyio.current_time() + wait_s
        while True:
            left = max(0.0, deadline - anyio.current_time())
            pages = await api.call_in(api.lanes.waits, ask, 0.0 if api.is_draining else min(left, SLICE_S))
            over = left <= SLICE_S or api.is_draining
            if over or has_news(pages) or await request.is_disconnected():
                return pages


def has_news(pages: list[ChannelPage]) -> bool:
    return any(page.results or page.gap for page in pages)


@contextmanager
def _waiting(api: Api) -> Iterator[None]:
    limits = api.limits
    if api.waiting_pulls >= limits.waiting_pulls:
        raise LimitExceeded("pulls that wait", limits.waiting_pulls, retry_after_s=limits.retry_after_s)
    api.waiting_pulls += 1
    try:
        yield
    finally:
        api.waiting_pulls -= 1
