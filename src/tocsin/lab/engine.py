"""The simulator: a virtual clock of whole seconds around the same policy objects that the coordinator runs.

In each second, in this order: people log in and are placed; subscriptions are made; channels that are due yield, and
brokers fetch each backend subscription once and send it to each who wants it; migrations that are due are carried out;
at a check the framework sees rates averaged over the window and may answer a plan.

Arrays carry it: a second costs backend subscriptions × brokers, whatever the number of subscribers, and a check what
its snapshot costs. A plan is carried out at once, or at ``moves_per_s``. Meanwhile thresholds are held against the
loads that it leads to, and a plan that comes of it takes its place, as in the coordinator.

Brokers with a limit are queues: bytes come at the start of a second and leave first come, first served. What comes
behind ``b`` bytes waits ``b / limit``, so that a burst of ``a`` waits ``a (b + a / 2) / limit`` byte-seconds in all.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from tocsin.errors import BadArgument
from tocsin.lab.limits import WEEK_S, check_within
from tocsin.lab.moving import Moving
from tocsin.lab.trace import Decided, Trace
from tocsin.lab.world import World
from tocsin.policies.base import Assign, BrokerView, Newcomer, PlacementPolicy, PlacementView
from tocsin.policies.multistage import counting
from tocsin.policies.multistage.framework import Action, Framework, Verdict
from tocsin.policies.multistage.load import LoadModel
from tocsin.policies.multistage.memory import Memory
from tocsin.policies.multistage.snapshot import Floats, Snapshot


@dataclass(frozen=True, slots=True)
class Pace:
    """How often the framework looks and over what; no ``moves_per_s`` is at once, no ``limit_bytes_s`` no queue.

    Without ``sharing`` a broker fetches what several want for each of them. Policies reckon with sharing all the same.
    """

    check_s: int = 10
    window_s: int = 60
    moves_per_s: int | None = None
    limit_bytes_s: float | None = None
    sharing: bool = True

    def __post_init__(self) -> None:
        check_within(self, {"check_s": (1, WEEK_S), "window_s": (1, WEEK_S)})
        if self.window_s % self.check_s:
            raise BadArgument("window_s", f"a multiple of the check period, {self.check_s} s", self.window_s)
        if self.moves_per_s is not None and self.moves_per_s < 1:
            raise BadArgument("moves_per_s", "a number from 1 on", self.moves_per_s)
        if self.limit_bytes_s is not None and not 0 < self.limit_bytes_s < np.inf:
            raise BadArgument("limit_bytes_s", "a finite number above 0", self.limit_bytes_s)


def simulate(
    world: World, placement: PlacementPolicy, framework: Framework | None, pace: Pace | None = None, seed: int = 0
) -> Trace:
    """Play the world from its first second to its last. Without a framework nobody moves."""
    run = _Run(world, placement, framework, pace or Pace(), Random(seed))
    for second in range(world.duration_s):
        run.step(second)
    return run.trace()


class _Run:
    def __init__(
        self, world: World, placement: PlacementPolicy, framework: Framework | None, pace: Pace, rng: Random
    ) -> None:
        self.world, self.framework, self.pace, self.rng = world, framework, pace, rng
        self._placing = _Placing(world, placement, rng)
        self._counts = np.zeros(world.q * world.m, np.int32)
        self._memory, self._moving = Memory(), Moving(world.n, pace.moves_per_s)
        self._yields = deque[Floats](maxlen=pace.window_s // pace.check_s)
        self._yielded = np.zeros(world.q)
        shape = (world.duration_s, world.m)
        self._received, self._sent = np.zeros(shape), np.zeros(shape)
        limited = shape if pace.limit_bytes_s else (0, world.m)
        self._queued, self._waited = np.zeros(limited), np.zeros(limited)
        self._moved = np.zeros(world.duration_s, np.int64)
        self._users, self._decided = list[Floats](), list[Decided]()
        self._fetches = self._deliveries = 0

    def step(self, second: int) -> None:
        if self._placing.expects(second):
            self._placing.admit(second, self._loads_before(second))
        self._subscribe(second)
        self._execute(second)
        self._migrate(second)
        if (second + 1) % self.pace.check_s == 0:
            self._check(second)

    def _loads_before(self, second: int) -> Floats:
        recent = slice(max(0, second - self.pace.window_s), second)
        loads: Floats = (self._received[recent] + self._sent[recent]).sum(axis=0) / self.pace.window_s
        return loads

    def _subscribe(self, second: int) -> None:
        order, starts = self.world.arrivals
        new = order[starts[second] : starts[second + 1]]
        keys = self.world.what[new].astype(np.int64) * self.world.m + self._placing.assigned[self.world.who[new]]
        np.add.at(self._counts, keys, 1)

    def _execute(self, second: int) -> None:
        results = self.world.results.at(second)
        due = np.flatnonzero(results)
        counts = self._counts.reshape(self.world.q, self.world.m)[due]
        fetched = counts > 0 if self.pace.sharing else counts
        self._received[second], self._sent[second] = results[due] @ fetched, results[due] @ counts
        self._fetches += int(fetched.sum())
        self._deliveries += int(counts.sum())
        self._yielded += results
        if self.pace.limit_bytes_s:
            self._wait(second, self.pace.limit_bytes_s)

    def _wait(self, second: int, limit: float) -> None:
        before = self._queued[second - 1] if second else np.zeros(self.world.m)
        came = self._received[second] + self._sent[second]
        self._waited[second] = came * (before + came / 2) / limit
        self._queued[second] = np.maximum(before + came - limit, 0.0)

    def _migrate(self, second: int) -> None:
        moves = self._moving.due(second + 1.0)
        if not moves:
            return
        offsets, items = self.world.rows(second)
        none, nobody = np.zeros(self.world.q), np.zeros(self.world.m)
        for i, target in moves:
            source = int(self._placing.assigned[i])
            counting.transfer(i, source, target, offsets, items, none, self._counts, nobody)
            self._placing.assigned[i] = target
        self._moved[second] += len(moves)

    def _check(self, second: int) -> None:
        self._yields.append(self._yielded)
        self._yielded = np.zeros(self.world.q)
        self._users.append(self._placing.users())
        if self.framework is not None:
            self._decide(second, self.framework)

    def _decide(self, second: int, framework: Framework) -> None:
        snapshot = self._snapshot(second, framework.rest_s)
        loads = LoadModel(snapshot, self._moving.heading(snapshot.assigned)).loads
        verdict, self._memory = framework.decide(snapshot, self._memory, self.rng, second + 1.0, loads)
        if verdict.plan is not None or verdict.discarded:
            self._decided.append(_told(second, verdict))
        if verdict.plan is not None:
            self._moving.begin(verdict.action, verdict.plan)
            if self.pace.moves_per_s is None:
                self._migrate(second)

    def _snapshot(self, second: int, rest_s: float) -> Snapshot:
        offsets, items = self.world.rows(second)
        rates = np.sum(self._yields, axis=0) / (len(self._yields) * self.pace.check_s)
        assigned = np.maximum(self._placing.assigned, 0)  # who has not come yet wants nothing
        resting = self._moving.resting(second + 1.0, rest_s)
        return Snapshot(offsets, items, rates, assigned, np.ones(self.world.m), resting)

    def trace(self) -> Trace:
        users = np.array(self._users).reshape(-1, self.world.m).astype(np.int64)
        return Trace(
            *(self.pace.check_s, self.pace.window_s, self._received, self._sent, users, self._moved),
            *(tuple(self._decided), dict(self._moving.made), self._fetches, self._deliveries),
            frontend=int(self._counts.sum()),
            backend=int(self._counts.reshape(self.world.q, self.world.m).any(axis=1).sum()),
            upstream=int((self._counts > 0).sum()),
            queued=self._queued,
            waited=self._waited,
        )


class _Placing:
    """Who is where, and the placement policy's view, kept up to date newcomer by newcomer."""

    def __init__(self, world: World, policy: PlacementPolicy, rng: Random) -> None:
        self._world, self._policy, self._rng = world, policy, rng
        self._names = [f"b{j:03d}" for j in range(world.m)]
        self._number = {name: j for j, name in enumerate(self._names)}
        self._last: str | None = None
        order = np.argsort(world.logins, kind="stable")
        self._order, self._starts = order, np.searchsorted(world.logins[order], np.arange(world.duration_s + 2))
        self.assigned = np.full(world.n, -1, np.int32)

    def users(self) -> Floats:
        return np.bincount(self.assigned[self.assigned >= 0], minlength=self._world.m).astype(np.float64)

    def expects(self, second: int) -> bool:
        """Somebody logs in then."""
        return bool(self._starts[second] < self._starts[second + 1])

    def admit(self, second: int, loads: Floats) -> None:
        new = self._order[self._starts[second] : self._starts[second + 1]]
        views = [
            BrokerView(name, spot, float(load), int(users))
            for name, spot, load, users in zip(self._names, self._world.brokers, loads, self.users(), strict=True)
        ]
        homes = self._world.homes[new].tolist()
        for i, (x, y) in zip(new.tolist(), homes, strict=True):
            decision = self._policy.place(Newcomer(str(i), (x, y)), self._view(views), self._rng, float(second))
            if not isinstance(decision, Assign):
                raise BadArgument("placement", "a broker for everybody", decision)
            j = self._number[decision.broker]
            self.assigned[i], self._last = j, decision.broker
            views[j] = replace(views[j], users=views[j].users + 1, newcomers=views[j].newcomers + 1)

    def _view(self, views: list[BrokerView]) -> PlacementView:
        return PlacementView(tuple(views), self._last)


def _told(second: int, verdict: Verdict) -> Decided:
    refused = tuple(plan.reason for plan in verdict.discarded)
    if verdict.plan is None:
        return Decided(second + 1, Action.NOTHING, verdict.reason, 0, verdict.cov, verdict.cov, 0.0, 0.0, refused)
    before = LoadModel(verdict.plan.snapshot)
    after = LoadModel(verdict.plan.snapshot, verdict.plan.assigned)
    return Decided(
        *(second + 1, verdict.action, verdict.reason, len(verdict.plan)),
        *(before.cov, after.cov, before.maximum, after.maximum),
        discarded=refused,
    )
