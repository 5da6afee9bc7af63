"""A broker's link to the coordinator: register, report, carry out instructions.

Rules kept here:

* Nothing that a client asks waits for a coordinator that is known to be away: placements are then unknown, and
  what is to be kept durably is noted and handed in with the next report that is answered. A broker that stops tries
  for a while to hand it in, and says what it could not. What cannot be noted any more is refused.
* What is told of one subscription arrives in its order: nothing newer overtakes what is noted, or under way. What the
  coordinator is asked about one, it answers after all of that.
* Changes of holdings and rates are told once; after a report that failed, the next one is full.
* The outcome of an instruction (``obeying``) is reported until the coordinator has it.
* A broker that starts while the coordinator is away asks other brokers who lives, so that it serves topics too.
* A coordinator that does not know this life of the broker is registered with again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tocsin.broker.coordinator_client import CoordinatorClient
from tocsin.broker.gates import Gates
from tocsin.broker.keeping import Keeper, NotKept
from tocsin.broker.noted import Key, Noted, pieces
from tocsin.broker.obeying import Obeying
from tocsin.broker.ports import Residents
from tocsin.broker.tasks import Tasks
from tocsin.broker.upstream.backoff import Backoff
from tocsin.errors import BadArgument, NotFound, TocsinError, Unavailable
from tocsin.protocol.coordination import (
    Acknowledged,
    Arrival,
    BrokerInfo,
    Instruction,
    Kept,
    Outcome,
    Placement,
    Registration,
    Report,
    Topology,
)
from tocsin.protocol.messages import Wanted

log = logging.getLogger(__name__)


class Followers(Protocol):
    """What hears from the coordinator besides the residents."""

    def set_topology(self, brokers: Sequence[BrokerInfo], leaving: Sequence[BrokerInfo] = ()) -> None: ...

    async def ask_around(self) -> None:
        """The coordinator does not answer: learn from others who lives, unless that is known."""
        ...

    def restore(self) -> None:
        """This broker was taken for dead: its subscriptions at the data cluster may be gone."""
        ...


@dataclass(frozen=True, slots=True)
class CoordinationOptions:
    incarnation: str
    wait_s: float
    backoff_min_s: float
    backoff_max_s: float
    keep_bytes: int
    report_bytes: int
    noted_bytes: int
    location: tuple[float, float] | None = None
    capacity: float | None = None
    drain_s: float | None = None  # how long a stopping broker waits for its users to leave
    hand_in_s: float = 5.0  # how long it tries then to tell what it noted


class Coordination:
    """``Directory`` over a coordinator. ``start`` it when the broker listens and its residents are known."""

    def __init__(
        self,
        client: CoordinatorClient,
        me: Callable[[], BrokerInfo],
        followers: Followers,
        options: CoordinationOptions,
    ) -> None:
        self._client, self._me, self._followers, self._options = client, me, followers, options
        self._residents: Residents | None = None
        self._obeys: Obeying | None = None
        self._noted = Noted(options.noted_bytes)
        self._is_away, self._is_full, self._is_draining = True, True, False
        self._is_told_away = self._is_told_full = False  # in the log
        self._leaves_at: float | None = None
        self._interval_s = 1.0
        self._urgent, self._registered = asyncio.Event(), asyncio.Event()
        self._answered = asyncio.Event()  # replaced with every report
        self._words: Gates[Key] = Gates()
        self._tasks = Tasks("coordination")
        self._keeper = Keeper(client, options.keep_bytes, self._tasks)
        self._is_briefed = False
        self._is_unsure = False  # whether a registration may have been taken whose answer did not come
        self.refused: str | None = None
        self._asking: asyncio.Task[None] | None = None

    def start(self, residents: Residents) -> None:
        self._residents, self._obeys = residents, Obeying(residents, self._tasks, self._ended)
        self._tasks.spawn(self._reporting(residents))
        self._tasks.spawn(self._obeying(self._obeys))

    async def stop(self, is_hurried: asyncio.Event | None = None) -> None:
        """Report once more. Where that fails and something is noted, it is tried again, unless it ``is_hurried``."""
        await self._tasks.stop()
        if self._residents is not None and not (self._is_away and self._noted.is_empty):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._options.hand_in_s):
                    await self._report_last(self._residents, is_hurried or asyncio.Event())
        self._tell_loss()
        self._went_away()  # nobody waits for another
        await self._client.close()

    @property
    def is_away(self) -> bool:
        return self._is_away

    @property
    def is_briefed(self) -> bool:
        """Whether everybody whom the coordinator placed here has been heard of."""
        return self._is_briefed and self._obeys is not None and self._obeys.is_idle

    # --- Directory ----------------------------------------------------------------------------------------

    async def where(self, user: str) -> Placement | None:
        if self._is_away:
            return None
        try:
            return await self._client.place(user)
        except Unavailable:
            self._went_away()
            return None

    async def keep(self, user: str, wanted: Wanted) -> None:
        await self._keep(Kept(user, wanted.id, wanted))

    async def drop(self, user: str, id: str) -> None:
        with contextlib.suppress(NotKept):  # there was none, or nobody who could have one
            await self._keep(Kept(user, id))

    async def kept_of(self, user: str, ids: Collection[str]) -> Mapping[str, Wanted]:
        async with contextlib.AsyncExitStack() as words:
            for key in [(user, id) for id in sorted(ids)]:
                await words.enter_async_context(self._words.passed(key))
                await self._until_taken(key)
            if self._is_away:
                raise Unavailable("the coordinator is away")
            try:
                return {wanted.id: wanted for wanted in await self._client.subscriptions(user)}
            except Unavailable:
                self._went_away()
                raise

    async def said(self, user: str, ids: Collection[str]) -> None:
        for id in ids:
            await self._words.idle((user, id))

    def logged_in(self, user: str, session: str, *, is_admitted_unasked: bool) -> None:
        if is_admitted_unasked:
            self._noted.admitted[user] = session

    def logged_out(self, user: str, session: str) -> None:
        if self._noted.admitted.get(user) == session:
            del self._noted.admitted[user]

    def acknowledged(self, user: str, id: str, position: str, *, is_back: bool = False) -> None:
        self._noted.acknowledge(Acknowledged(user, id, position, is_back))

    def arrived(self, user: str, version: int) -> None:
        self._noted.arrivals[user] = Arrival(user, version)
        self._urgent.set()

    def drained(self) -> bool:
        self._is_draining = True
        if self._options.drain_s is not None:
            self._leaves_at = asyncio.get_running_loop().time() + self._options.drain_s
        self._urgent.set()
        return True

    async def _keep(self, kept: Kept) -> None:
        """Tell it now, or note it for later; what is newer takes the place of what was noted before."""
        key = (kept.user, kept.id)
        async with self._words.passed(key):
            await self._until_taken(key)
            if self._is_away:
                self._note(kept)
                return
            try:
                await self._keeper.tell(kept)
            except Unavailable:
                self._went_away()
                self._note(kept)

    def _note(self, kept: Kept) -> None:
        """Unavailable where there is no room: what a client is told to stand, or to have ended, is noted."""
        if self._noted.keep(kept):
            return
        if not self._is_told_full:
            log.warning("no more is noted for the coordinator: %d bytes are (upstream.noted)", self._noted.kept_bytes)
        self._is_told_full = True
        raise Unavailable("the coordinator is away, and no more can be noted for it")

    async def _until_taken(self, key: Key) -> None:
        """Returns when nothing older is noted that the coordinator, which is there, could be told after this."""
        while key in self._noted.kept and not self._is_away:
            self._urgent.set()
            await self._answered.wait()

    def _leaves_in_s(self) -> float | None:
        return None if self._leaves_at is None else max(0.0, self._leaves_at - asyncio.get_running_loop().time())

    # --- reporting ----------------------------------------------------------------------------------------

    async def _reporting(self, residents: Residents) -> None:
        backoff = self._backoff()
        while True:
            try:
                if not self._registered.is_set():
                    await self._register()
                await self._report(residents)
                backoff.succeeded()
                await self._until_due()
            except TocsinError as problem:
                if not self._is_told_away:
                    log.warning("the coordinator is away, and the broker goes on without it: %s", problem)
                self._is_told_away = True
                self._went_away()
                self._ask_around()
                await backoff.pause()
            except Exception:
                log.exception("a report failed; trying again")
                await backoff.pause()

    async def _register(self) -> None:
        me = self._me()
        told = Registration(self._options.incarnation, me.url, self._options.location, self._options.capacity)
        is_unsure, self._is_unsure = self._is_unsure, True
        try:
            registered = await self._client.register(told)
        except BadArgument as refused:  # such as a name that another broker has
            self.refused = str(refused)
            log.error("the coordinator does not take this broker, and nobody is sent here: %s", refused)
            raise
        self.refused, self._is_unsure = None, False
        log.info("registered with the coordinator as %s", me.name)
        self._interval_s = registered.report_interval_s
        self._followers.set_topology(registered.brokers, registered.leaving)
        if registered.was_given_up or is_unsure:
            self._followers.restore()
        self._is_full = True
        self._registered.set()

    async def _report(self, residents: Residents) -> bool:
        """Tell what changed, or everything; what the coordinator did not take is told again. Whether it took all."""
        is_full, self._is_full = self._is_full, False
        holdings, rates = list(residents.holdings(is_full=is_full)), residents.rates(is_full=is_full)
        report = self._noted.report(
            self._options.incarnation, residents.load(), holdings, rates,
            is_full=is_full, is_draining=self._is_draining, leaves_in_s=self._leaves_in_s(),
        )  # fmt: skip
        for piece in pieces(report, self._options.report_bytes):
            if not await self._hand_in(piece):
                return False
        return True

    async def _hand_in(self, report: Report) -> bool:
        """Whether the coordinator has taken it."""
        try:
            answer = await self._client.report(report)
        except BadArgument as problem:  # sent again, it would be refused again
            log.error("the coordinator refused a report, and what it told is lost: %s", problem)
            self._noted.taken(report)
            raise
        except BaseException:
            self._is_full = True
            raise
        self._is_away = self._is_told_away = self._is_told_full = False
        if answer.is_known:
            self._noted.taken(report)
        else:
            self._is_full = True
            self._registered.clear()
        self._wake()
        return answer.is_known

    async def _report_last(self, residents: Residents, is_hurried: asyncio.Event) -> None:
        backoff = self._backoff()
        while not await self._is_told(residents) and not is_hurried.is_set():
            pause = self._tasks.spawn(backoff.pause())
            hurried = self._tasks.spawn(_when(is_hurried))
            await asyncio.wait({pause, hurried}, return_when="FIRST_COMPLETED")
            await self._tasks.stop()

    async def _is_told(self, residents: Residents) -> bool:
        """Whether a stopping broker is through: the coordinator has its report, or lacks nothing that it would keep."""
        try:
            if not self._registered.is_set():
                await self._register()
            return await self._report(residents)
        except TocsinError as problem:
            if self._noted.is_empty:
                log.warning("the last report was not taken: %s", problem)
            return self._noted.is_empty

    def _tell_loss(self) -> None:
        if not self._noted.is_empty:
            log.error(
                "the coordinator could not be told of %d subscriptions that were made or ended, nor how far %d are "
                "acknowledged; clients that come back bring their own",
                len(self._noted.kept), len(self._noted.acknowledged),
            )  # fmt: skip

    async def _until_due(self) -> None:
        if self._registered.is_set():
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._urgent.wait()
            except TimeoutError:
                return
            self._urgent.clear()

    def _ask_around(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = self._tasks.spawn(self._followers.ask_around())

    def _went_away(self) -> None:
        self._is_away, self._is_full = True, True
        self._wake()

    def _wake(self) -> None:
        """Whoever waits for a report to be answered looks again."""
        answered, self._answered = self._answered, asyncio.Event()
        answered.set()

    # --- obeying ------------------------------------------------------------------------------------------

    async def _obeying(self, obeying: Obeying) -> None:
        after, backoff = 0, self._backoff()
        while True:
            await self._registered.wait()
            try:
                given = await self._client.instructions(self._options.incarnation, after, self._options.wait_s)
            except (NotFound, BadArgument):
                self._registered.clear()
                self._urgent.set()
                await backoff.pause()
            except TocsinError:
                await backoff.pause()
            except Exception:
                log.exception("instructions could not be had; asking again")
                await backoff.pause()
            else:
                backoff.succeeded()
                for instruction in given.instructions:
                    after = max(after, instruction.number)
                    self._heed(obeying, instruction)
                self._is_briefed = True

    def _heed(self, obeying: Obeying, instruction: Instruction) -> None:
        """Whatever is wrong with one instruction, those after it are carried out."""
        try:
            if isinstance(instruction, Topology):
                self._followers.set_topology(instruction.brokers, instruction.leaving)
            else:
                obeying.begin(instruction)
        except Exception:
            log.exception("the instruction %d could not be begun", instruction.number)

    def _ended(self, outcome: Outcome) -> None:
        self._noted.outcomes[outcome.number] = outcome
        self._urgent.set()

    def _backoff(self) -> Backoff:
        return Backoff(self._options.backoff_min_s, self._options.backoff_max_s)


async def _when(event: asyncio.Event) -> None:
    await event.wait()
