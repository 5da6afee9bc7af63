"""What every route shares: the service, the limits, and the threads in which the service is called.

The service blocks, so each call runs in a thread. Threads come in lanes of their own size, one for each kind
of work, so that slow statements do not hold up ingest, and pulls that wait hold up nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request

from tocsin.datacluster.api.admission import Admission
from tocsin.datacluster.api.limits import ApiLimits
from tocsin.datacluster.api.scripts import ScriptPlaces
from tocsin.datacluster.metrics import Metrics
from tocsin.datacluster.service import ClusterService
from tocsin.tokens import Principal

P = ParamSpec("P")
T = TypeVar("T")

PROBE_THREADS = 2


class Lanes:
    """How many calls of each kind run at once."""

    def __init__(self, limits: ApiLimits) -> None:
        self.ingest = CapacityLimiter(limits.ingest_threads)
        self.statements = CapacityLimiter(limits.statement_threads)
        self.others = CapacityLimiter(limits.other_threads)
        self.waits = CapacityLimiter(limits.waiting_pulls)
        self.probes = CapacityLimiter(PROBE_THREADS)


class Api:
    """One per application, at ``app.state.api``."""

    def __init__(
        self,
        service: ClusterService,
        verify: Callable[[str], Principal],
        limits: ApiLimits,
        metrics: Metrics,
        *,
        insecure: bool,
        open_metrics: bool,
    ) -> None:
        self.service, self.verify, self.limits, self.metrics = service, verify, limits, metrics
        self.insecure, self.open_metrics = insecure, open_metrics or insecure
        self.lanes = Lanes(limits)
        self.admission = Admission(limits.ingest_requests, limits.ingest_inflight_bytes, limits.retry_after_s)
        self.scripts = ScriptPlaces(limits.statement_threads, limits.waiting_scripts, limits.retry_after_s)
        self.waiting_pulls = 0
        self.is_draining = False

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.call_in(self.lanes.others, function, *args, **kwargs)

    async def call_in(self, lane: CapacityLimiter, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await to_thread.run_sync(partial(function, *args, **kwargs), limiter=lane)

    def drain(self) -> None:
        """From here on not ready, and pulls stop waiting."""
        self.is_draining = True


async def _api(request: Request) -> Api:
    api: Api = request.app.state.api
    return api


Shared = Annotated[Api, Depends(_api)]
