"""Once a second: ask the coordinator, the data cluster and the brokers how they are, and make a sample of it.

The sampler reads with a token of its own that may ``read`` and nothing else. What does not answer, or answers what
nobody can read, is told as a problem; the rest of the sample stands.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx
import msgspec

from tocsin.config import Dashboard
from tocsin.dashboard import answers, exposition
from tocsin.dashboard.alerts import Budgets, Watch
from tocsin.dashboard.counting import Growth
from tocsin.dashboard.history import History
from tocsin.dashboard.samples import UNKNOWN, BrokerSample, ChannelSample, ClusterSample, Sample, figures_of
from tocsin.unanswered import UNANSWERED

RATE_WINDOW_S, MINUTE_S = 10.0, 60.0
LATENCY = "record_to_result_seconds"
SHOWN_MOVES, SHOWN_DECISIONS = 100, 50
SELDOM = 5  # every so many samples
EVERY = "(all)"  # no channel has such a name


class Sampler:
    """``publish`` gets every sample; ``client`` shows the dashboard's own token."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        coordinator: str,
        cluster: str,
        settings: Dashboard,
        publish: Callable[[Sample], Awaitable[None]],
    ) -> None:
        self._client, self._coordinator, self._cluster = client, coordinator, cluster
        self._settings, self._publish = settings, publish
        self.history = History(settings.history)
        self.channels: list[dict[str, Any]] = []  # as the data cluster last told
        self._watch = Watch(Budgets.of(settings))
        self._rates, self._minute = Growth(RATE_WINDOW_S), Growth(MINUTE_S)
        self._problems: list[str] = []
        self._brokers: list[dict[str, Any]] = []  # as the coordinator last told
        self._kept: dict[str, Any] = {}
        self._n = 0

    async def run(self) -> None:
        every_s = self._settings.sample_every
        while True:
            began = time.monotonic()
            sample = await self.sample()
            self.history.add(sample)
            await self._publish(sample)
            await asyncio.sleep(max(0.0, every_s - (time.monotonic() - began)))

    async def sample(self) -> Sample:
        self._problems, self._n, at = [], self._n + 1, time.time()
        found = await asyncio.gather(
            self._ask(self._coordinator, "/brokers", answers.Brokers),
            self._ask(self._coordinator, "/policies", dict[str, Any]),
            self._ask(self._coordinator, f"/decisions?limit={SHOWN_DECISIONS}", answers.Decisions),
            self._now_and_then("/plans", answers.Plans),
            self._ask(self._coordinator, f"/moves?limit={SHOWN_MOVES}", answers.Moves),
            self._ask(self._cluster, "/status", answers.Status),
            self._ask(self._cluster, "/channels", answers.Channels),
            self._counters(self._cluster, exposition.CLUSTER),
        )
        known, policies, decisions, plans, moves, status, channels, counted = found
        self._brokers = known["brokers"] if known else self._brokers
        self.channels = channels["channels"] if channels else self.channels
        await self._count(counted)
        brokers = [self._broker(one, is_told=known is not None) for one in self._brokers]
        shown = [self._channel(one, is_told=channels is not None) for one in self.channels]
        figures, cluster = figures_of(brokers) if known else None, self._cluster_sample(status)
        return Sample(
            n=self._n,
            at=at,
            brokers=brokers,
            figures=figures,
            channels=shown,
            cluster=cluster,
            policies=policies,
            decisions=self.history.decisions.note(decisions["decisions"] if decisions else []),
            plans=self.history.plans.note(plans["plans"] if plans else []),
            moves=self.history.moves.note(moves["moves"] if moves else []),
            alerts=self._watch.look(at, brokers, figures, shown, cluster),
            problems=sorted(set(self._problems)),
        )

    async def assignments(self) -> dict[str, str] | None:
        """Who is online, and where; None where a part of it was not answered."""
        placed: dict[str, str] = {}
        after: str | None = ""
        while after is not None:
            page = await self._ask(self._coordinator, "/assignments", answers.Assignments, limit=10_000, after=after)
            if page is None:
                return None
            placed |= {one["user"]: one["broker"] for one in page["assignments"] if one["online"] and one["broker"]}
            after = page["next"]
        return placed

    async def _ask(self, url: str, path: str, form: Any, **query: Any) -> Any:
        """The whole answer, where it has at least what ``form`` has."""
        body = await self._get(url, path, **query)
        if body is None:
            return None
        try:
            msgspec.json.decode(body, type=form)
            return msgspec.json.decode(body)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as problem:
            self._tell(url, f"answered something else than {path.partition('?')[0]} is ({problem}).")
            return None

    async def _now_and_then(self, path: str, form: Any) -> Any:
        """What costs the coordinator more than it changes; the last answer in between."""
        if self._n % SELDOM == 1 or self._kept.get(path) is None:
            self._kept[path] = await self._ask(self._coordinator, path, form)
        return self._kept[path]

    async def _counters(self, url: str, wanted: frozenset[str]) -> dict[str, float]:
        body = await self._get(url, "/metrics")
        return exposition.read(body.decode(errors="replace"), wanted) if body else {}

    async def _get(self, url: str, path: str, **query: Any) -> bytes | None:
        try:
            answer = await self._client.get(url + path, params=query or None)
        except (*UNANSWERED, httpx.InvalidURL) as problem:
            self._tell(url, f"does not answer ({type(problem).__name__}).")
            return None
        if answer.status_code != 200:
            self._tell(url, f"answered {answer.status_code}.")
            return None
        return answer.content

    def _tell(self, url: str, what: str) -> None:
        part = "coordinator" if url == self._coordinator else "data cluster" if url == self._cluster else "broker"
        self._problems.append(f"The {part} at {url} {what}")

    async def _count(self, cluster: dict[str, float]) -> None:
        """Rates and losses follow from counters of the cluster and of brokers that serve."""
        serving = [one for one in self._brokers if one["state"] in ("live", "draining")]
        read = await asyncio.gather(*(self._counters(one["url"], exposition.BROKER) for one in serving))
        named = {
            f"{name} {one['name']}": value
            for one, found in zip(serving, read, strict=True)
            for name, value in found.items()
        }
        now = time.monotonic()
        self._rates.note(now, named)
        self._minute.note(now, cluster | _totals(cluster) | named)
        listed = {EVERY, *(one["name"] for one in [*self._brokers, *self.channels])}
        for counters in (self._rates, self._minute):
            counters.keep(listed)

    def _broker(self, one: dict[str, Any], *, is_told: bool) -> BrokerSample:
        name, load = one["name"], one["load"]
        lost = self._minute.grown(f"broker_shed_total {name}") + self._minute.grown(f"broker_gaps_total {name}")
        return BrokerSample(
            name=name,
            state=one["state"] if is_told else UNKNOWN,
            users=one["users"],
            online=one["online"],
            bytes_in=round(load["model_in_per_s"], 1),
            bytes_out=round(load["model_out_per_s"], 1),
            loop_lag_s=round(load["loop_lag_s"], 4),
            capacity=one["capacity"],
            location=one["location"],
            deliveries_per_s=round(self._rates.per_s(f"broker_deliveries_total {name}"), 1),
            lost=round(lost),
        )

    def _channel(self, one: dict[str, Any], *, is_told: bool) -> ChannelSample:
        name, rates = one["name"], self._minute

        def per_s(counter: str) -> float | None:
            return round(rates.per_s(f"{counter} {name}"), 2) if is_told else None

        def mean_ms(histogram: str) -> float | None:
            return rates.mean_ms(f"{histogram} {name}") if is_told else None

        return ChannelSample(
            name=name,
            mode=one["mode"],
            state=one["state"] if is_told else UNKNOWN,
            strategy=one["strategy"],
            subscriptions=one["subscriptions"],
            backends=one["backends"],
            executions=one["executions"],
            lag_s=round(one["lag_s"], 2) if is_told else None,
            results_per_s=per_s("results_total"),
            matched_per_s=per_s("matched_total"),
            considered_per_s=per_s("considered_total"),
            execution_ms=mean_ms("execution_seconds"),
            problem=one["problem"] if is_told else None,
            latency_ms=mean_ms(LATENCY),
            lost=round(rates.grown(f"lost_results {name}")),
        )

    def _cluster_sample(self, status: dict[str, Any] | None) -> ClusterSample:
        if status is None:
            return ClusterSample(False, "it does not answer")
        return ClusterSample(
            status["ready"], status["reason"], status["started_at"], status["spark"], status["totals"],
            self._minute.mean_ms(f"{LATENCY} {EVERY}"),
        )  # fmt: skip


def _totals(cluster: Mapping[str, float]) -> dict[str, float]:
    """The latency of all channels together; nothing where nothing was read of any."""
    ends = (f"{LATENCY}_sum", f"{LATENCY}_count")
    found = {end: [value for name, value in cluster.items() if name.startswith(f"{end} ")] for end in ends}
    return {f"{end} {EVERY}": sum(values) for end, values in found.items() if values}
