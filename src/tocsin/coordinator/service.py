"""The coordinator around its state: clock, store, tickets, and the carrying out of effects.

Everything runs in one event loop, except commits. An answer is given when what it says is durable, be it that nothing
had to change or that something is refused: what that rests on may be in a commit under way.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any, TypeVar

import msgspec

from tocsin.clock import Clock, SystemClock
from tocsin.coordinator import events
from tocsin.coordinator.asking import Asking
from tocsin.coordinator.balancer import Balancer, BalancingOptions
from tocsin.coordinator.brokers import BrokerState
from tocsin.coordinator.committing import Committer
from tocsin.coordinator.detaching import Cluster, Detaching
from tocsin.coordinator.events import Ask, Detach, Effect, Event, Forget, Restart, Say, Tell
from tocsin.coordinator.metrics import Metrics, tally
from tocsin.coordinator.plans import PlanKind
from tocsin.coordinator.queues import Queue
from tocsin.coordinator.state import State
from tocsin.coordinator.store.base import Store
from tocsin.coordinator.world import World
from tocsin.errors import NotFound, TocsinError, Unavailable
from tocsin.protocol.coordination import (
    Instruction,
    Placement,
    PlacementRequest,
    Registered,
    Registration,
    Report,
    Reported,
    Send,
)
from tocsin.protocol.tickets import issue_ticket

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    report_interval_s: float = 1.0
    tick_s: float = 0.25
    ticket_ttl_s: float = 300.0
    ask_timeout_s: float = 1.0
    page_instructions: int = 2_000
    max_instructions: int = 2_000_000
    balancing: BalancingOptions = field(default_factory=BalancingOptions)


class Coordinator:
    def __init__(
        self,
        state: State,
        store: Store,
        cluster: Cluster,
        *,
        secret: bytes,
        options: ServiceOptions | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self.state, self._secret = state, secret
        self._options, self._clock = options or ServiceOptions(), clock or SystemClock()
        self.metrics = metrics or Metrics()
        self.metrics.before_scrape = self._gauge
        self._committer = Committer(store, on_failure)
        self._detaching = Detaching(cluster, self._is_dead, self._detached)
        self._queues: dict[str, Queue] = {}
        self._news: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._asking = Asking(self._options.ask_timeout_s, self._refused)
        self._tasks: set[asyncio.Task[None]] = set()
        self.balancer = Balancer(state.world, self._balance, self._clock, self.metrics, self._options.balancing)
        self.is_stopping = False
        state.load(store.load(), self._clock.now())

    # --- running ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Go on with what the last run left, and tick until cancelled."""
        await self._committer.commit(self.state.world.take_changes(), lambda: None)
        self._spawn(self.balancer.run())
        last_s = self._clock.monotonic()
        while True:
            await asyncio.sleep(0 if self.state.living.is_housing else self._options.tick_s)
            now_s = self._clock.monotonic()
            await self.tick(now_s - last_s)
            last_s = now_s

    async def tick(self, elapsed_s: float) -> None:
        try:
            await self.handle(events.Ticked(elapsed_s))
        except Unavailable:
            raise
        except Exception:
            log.exception("a tick failed")

    async def stop(self) -> None:
        self.wake_all()
        for task in list(self._tasks):
            task.cancel()
        await self._asking.close()
        await self._detaching.close()

    def close(self) -> None:
        """Let go of the store, when the loop has ended."""
        self.balancer.close()
        self._committer.close()

    def wake_all(self) -> None:
        """Requests that wait are answered at once, from here on."""
        self.is_stopping = True
        for news in self._news.values():
            news.set()

    @property
    def failure(self) -> Unavailable | None:
        return self._committer.failure

    async def handle(self, event: Event) -> None:
        """Returns when what ``event`` changed, or found, is durable and its effects are on their way."""
        await self._decided(event, lambda world: None)

    async def handle_all(self, told: Sequence[Callable[[], Event]]) -> list[TocsinError | None]:
        """As ``handle``, for many in one commit: what each of them was refused with, when it was made or decided."""
        if self._committer.failure is not None:
            raise self._committer.failure
        effects = list[Effect]()
        try:
            return [self._refusal(make, effects) for make in told]
        finally:  # where one has failed, too: those before it were decided
            await self._committer.commit(self.state.world.take_changes(), lambda: self._carry_out(effects))

    def _refusal(self, make: Callable[[], Event], effects: list[Effect]) -> TocsinError | None:
        """What the event was refused with; what follows from it where it was not is added to ``effects``."""
        started = time.perf_counter()
        try:
            event = make()
            effects += self.state.handle(event, self._clock.now())
        except TocsinError as refused:
            return refused
        self.metrics.handled(type(event).__name__, time.perf_counter() - started)
        return None

    async def _decided(self, event: Event, read: Callable[[World], T]) -> T:
        """As ``handle``, with what ``read`` saw before anything else was decided, which is durable now."""
        if self._committer.failure is not None:
            raise self._committer.failure
        started = time.perf_counter()
        try:
            effects = self.state.handle(event, self._clock.now())
        except TocsinError:
            await self._committer.settled()
            raise
        changes, seen = self.state.world.take_changes(), read(self.state.world)
        if changes or effects:
            await self._committer.commit(changes, lambda: self._carry_out(effects))
        elif _is_vouched_for(event):
            await self._committer.settled()
        self.metrics.handled(type(event).__name__, time.perf_counter() - started)
        return seen

    async def settled(self) -> None:
        """Before something is read: what is seen now is durable."""
        await self._committer.settled()

    # --- brokers ---------------------------------------------------------------------------------------

    async def register(self, name: str, registration: Registration) -> Registered:
        async with self._detaching.lock(name):
            was_given_up = self._is_dead(name)
            self._detaching.give_up(name)
            event = events.BrokerRegistered(name, registration)
            members, leaving = await self._decided(event, lambda world: (world.members(), world.leaving()))
        return Registered(self._options.report_interval_s, members, was_given_up, leaving)

    async def report(self, name: str, report: Report) -> Reported:
        is_known = self.state.knows(name, report.incarnation)
        if is_known:
            await self.handle(events.BrokerReported(name, report))
        return Reported(is_known)

    async def instructions(self, name: str, incarnation: str, after: int, wait_s: float) -> Sequence[Instruction]:
        """Waits until there are some; NotFound where that life of the broker has to register first."""
        deadline = self._clock.monotonic() + wait_s
        while True:
            queue = self._queues.get(name)
            if queue is None or queue.incarnation != incarnation or not self.state.knows(name, incarnation):
                raise NotFound("registration of broker", name)
            found = queue.after(after, self._options.page_instructions)
            left_s = deadline - self._clock.monotonic()
            if found or left_s <= 0 or self.is_stopping:
                return [self._with_ticket(one) for one in found]
            await self._wait(name, left_s)

    async def _wait(self, name: str, seconds: float) -> None:
        news = self._news[name]
        news.clear()
        try:
            async with asyncio.timeout(seconds):
                await news.wait()
        except TimeoutError:
            return

    # --- users -----------------------------------------------------------------------------------------

    async def place(self, user: str, asked: PlacementRequest) -> Placement:
        event = events.PlacementAsked(user, asked.location, asked.latencies_ms)
        placement = await self._decided(event, lambda world: self._placement(world, user))
        if placement is None:
            raise Unavailable("no broker lives that could take the user")
        return placement

    def _placement(self, world: World, user: str) -> Placement | None:
        found = world.users[user]
        broker = world.brokers.get(found.broker) if found.broker else None
        if broker is None or broker.is_ended:
            return None
        ticket = self._ticket(user, broker.name, found.version)
        return Placement(user, broker.name, broker.url, found.version, ticket, found.reason)

    def _ticket(self, user: str, broker: str, version: int) -> str:
        ends_at = self._clock.now() + self._options.ticket_ttl_s
        return issue_ticket(self._secret, user, broker, version, token_urlsafe(12), ends_at)

    def _with_ticket(self, instruction: Instruction) -> Instruction:
        if not isinstance(instruction, Send):
            return instruction
        ticket = self._ticket(instruction.user, instruction.to.name, instruction.version)
        return msgspec.structs.replace(instruction, ticket=ticket)

    # --- plans -----------------------------------------------------------------------------------------

    async def propose(self, moves: Sequence[events.WantedMove], cause: str, kind: PlanKind = PlanKind.ASKED) -> str:
        """The id of the plan that was made."""
        return await self._decided(events.PlanProposed(moves, cause, kind), lambda world: world.plans.names()[-1])

    async def _balance(self, moves: Sequence[events.WantedMove], cause: str) -> str:
        return await self.propose(moves, cause, PlanKind.BALANCE)

    # --- effects ---------------------------------------------------------------------------------------

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        restarted = list[str]()
        for effect in effects:
            match effect:
                case Restart(broker, incarnation):
                    self._queues[broker] = Queue(incarnation, self._options.max_instructions)
                    restarted.append(broker)
                    self._news[broker].set()
                case Forget(broker):
                    self._queues.pop(broker, None)
                    self._news[broker].set()
                case Tell(broker, instruction):
                    self._put(broker, instruction)
                case Detach(broker):
                    self._detaching.begin(broker)
                case Ask(broker, url):
                    self._asking.begin(broker, url)
                case Say(text, is_warning):
                    log.log(logging.WARNING if is_warning else logging.INFO, text)
        for broker in restarted:
            self._queues[broker].end_briefing()

    def _put(self, broker: str, instruction: Instruction) -> None:
        queue = self._queues.get(broker)
        if queue is None:
            return  # it has to register first, and then hears everything
        queue.put(instruction)
        if queue.is_overfull:
            log.warning("broker %s does not take its instructions; it has to register again", broker)
            del self._queues[broker]
            self._spawn(self._handled(events.BrokerDistrusted(broker)))
        self._news[broker].set()

    async def _refused(self, broker: str) -> None:
        await self._handled(events.BrokerRefused(broker))

    async def _detached(self, broker: str) -> None:
        await self._handled(events.BrokerDetached(broker))

    async def _handled(self, event: Event) -> None:
        try:
            await self.handle(event)
        except Unavailable:
            return  # the program ends, and says why

    def _is_dead(self, name: str) -> bool:
        broker = self.state.world.brokers.get(name)
        return broker is not None and broker.is_ended

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _gauge(self) -> None:
        world = self.state.world
        states = tally([b.state for b in world.brokers], list(BrokerState))
        online = sum(len(presence.holdings) for presence in world.presence.values())
        waiting = sum(len(queue) for queue in self._queues.values())
        self.metrics.moves_ended(world.moves.ended)
        self.metrics.gauge(states, len(world.users), online, len(world.moves.active), waiting)


def _is_vouched_for(event: Event) -> bool:
    """Whether somebody goes by our answer: nobody waits for a tick, nor for a report that tells nothing to be kept."""
    match event:
        case events.Ticked():
            return False
        case events.BrokerReported(_, report):
            return bool(report.admitted or report.kept or report.acknowledged or report.outcomes or report.arrivals)
        case _:
            return True
