"""Balancing by itself: at every check one look at the world, one decision in a thread, one plan at most.

The event loop only copies what is seen and proposes what was decided. Meanwhile the world may have changed: a move is
refused if its user is not where it was seen, or is on another move. A plan takes the place of what the last one planned
and did not begin.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, TypeVar

import msgspec

from tocsin.clock import Clock
from tocsin.coordinator.choices import BalancingChoice, PolicyChoice
from tocsin.coordinator.decisions import Decision, Trials, Waits
from tocsin.coordinator.events import WantedMove
from tocsin.coordinator.metrics import Metrics
from tocsin.coordinator.sight import Sight, look
from tocsin.coordinator.world import World
from tocsin.errors import Unavailable

if TYPE_CHECKING:
    from tocsin.coordinator.deciding import Decided, Decider

log = logging.getLogger(__name__)
T = TypeVar("T")
NOTHING = "nothing"  # Action.NOTHING, without what its module imports
USUAL = PolicyChoice("xbal")

Propose = Callable[[Sequence[WantedMove], str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class BalancingOptions:
    configured: BalancingChoice = field(default_factory=BalancingChoice)
    every_s: float = 30.0
    moves_per_plan: int = 10_000
    kept_decisions: int = 1_000


class Balancer:
    """``propose`` makes a plan that balances, from moves and their cause, and says its id when it is durable."""

    def __init__(
        self, world: World, propose: Propose, clock: Clock, metrics: Metrics, options: BalancingOptions
    ) -> None:
        self._world, self._propose, self._clock, self._metrics = world, propose, clock, metrics
        self._options = options
        self._decisions: deque[Decision] = deque(maxlen=options.kept_decisions)
        self._thread = ThreadPoolExecutor(1, "balancing")
        self._one = asyncio.Lock()

    @property
    def configured(self) -> str:
        """The choice in the configuration as one text: what was chosen while running holds until this changes."""
        return msgspec.json.encode(self._options.configured, order="sorted").decode()

    @property
    def choice(self) -> BalancingChoice:
        chosen = self._world.counters.balancing
        return chosen.choice if chosen and chosen.configured == self.configured else self._options.configured

    @property
    def every_s(self) -> float:
        return self._options.every_s

    def latest(self, count: int) -> list[Decision]:
        """Newest first."""
        return list(islice(reversed(self._decisions), count))

    def by_plan(self) -> dict[str, Decision]:
        """Those that are remembered and made a plan, by its id."""
        return {one.plan: one for one in self._decisions if one.plan}

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            await asyncio.sleep(self._options.every_s)
            try:
                if not self.choice.is_off:
                    await self.check()
            except Unavailable:
                return  # the program ends, and says why
            except Exception:
                log.exception("balancing failed")
                self._note(Decision(self._clock.now(), NOTHING, Waits.FAILED))

    async def check(self) -> Decision:
        """Decide, and begin to carry it out."""
        async with self._one:
            sight, choice, now_s = look(self._world, self._clock.now()), self.choice, self._clock.monotonic()
            if sight.unheard:
                return self._note(Decision(sight.at, NOTHING, Waits.UNHEARD))
            return await self._begin(await self._apart(lambda decider: decider.decide(choice, sight, now_s)))

    async def compare(self, policies: Sequence[PolicyChoice]) -> Trials:
        """What each would do now; nothing is done."""
        sight, choice, now_s = self._whole_sight(), self.choice, self._clock.monotonic()
        return (await self._apart(lambda decider: decider.compare(choice, policies, sight, now_s))).trials

    async def rebalance(self, policy: PolicyChoice | None = None) -> Trials:
        """Do now what ``policy`` says, by default the one that migrates, whatever the thresholds."""
        async with self._one:
            sight, choice, now_s = self._whole_sight(), self.choice, self._clock.monotonic()
            chosen = policy or choice.migrate or choice.shuffle or USUAL
            tried = await self._apart(lambda decider: decider.ask(choice, chosen, sight, now_s))
            decision = await self._begin(tried.decided) if tried.decided else None
        return msgspec.structs.replace(tried.trials, plan=decision.plan if decision else None)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    @cached_property
    def _decider(self) -> Decider:
        """Brings numba and kernels, so it is made where nobody waits for it: in the thread."""
        from tocsin.coordinator.deciding import Decider

        return Decider(self._options.moves_per_plan, Random(self._world.rng.getrandbits(64)))

    def _whole_sight(self) -> Sight:
        """Unavailable while a broker has yet to report: it would be taken for empty, and be sent everybody."""
        sight = look(self._world, self._clock.now())
        if sight.unheard:
            raise Unavailable(f"{Waits.UNHEARD}: {', '.join(sight.unheard)}; ask again in some seconds")
        return sight

    async def _apart(self, work: Callable[[Decider], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._decider))

    async def _begin(self, decided: Decided) -> Decision:
        decision = decided.decision
        if decided.moves:
            cause = f"{decision.action} by {decision.policy}: {decision.reason}"
            plan = await self._propose(decided.moves, cause)
            decision = msgspec.structs.replace(decision, plan=plan)
        return self._note(decision)

    def _note(self, decision: Decision) -> Decision:
        self._decisions.append(decision)
        self._metrics.decided(decision.action, decision.reason, decision.milliseconds / 1000)
        self._metrics.refused(decision.rejected, [(one.policy, one.reason) for one in decision.discarded])
        return decision
