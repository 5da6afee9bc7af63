"""What the coordinator may ask of a broker, and what it is told of those who live there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tocsin.broker.core import Core
from tocsin.broker.session import Session
from tocsin.broker.users import Subscription, User
from tocsin.errors import BadArgument, NotFound, TocsinError, Unavailable
from tocsin.protocol.coordination import BrokerInfo, Holding, Load
from tocsin.protocol.messages import Ended, Move, Wanted
from tocsin.protocol.targets import ChannelTarget, target_key

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Sent:
    """Where a user's sessions are told to go."""

    to: BrokerInfo
    ticket: str


class LocalResidents:
    """``tocsin.broker.ports.Residents`` over the core."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._sent: dict[str, _Sent] = {}  # by user, while sessions of it are here
        self._leaving: dict[str, list[asyncio.Future[None]]] = {}
        self._rated: set[str] = set()  # streams whose rate was told
        core.on_welcome, core.on_left = self._welcomed, self._left

    async def adopt(self, user: str, version: int, subscriptions: Sequence[Wanted]) -> None:
        """Answered after what is being told of these: what the user has ended just now may be held again by this, and
        the coordinator, where it hears of an end before the answer, says so once more.
        """
        held = self._core.users.get(user)
        if held is not None and held.version > version:
            return
        entered = self._core.users.enter(user, version)
        self._wake(user)  # what was sent under an older version is void
        entered.adoptions += 1
        try:
            unsettled = await self._settle(entered, subscriptions)
            made = (self._hold(entered, wanted) for wanted in subscriptions)
            results = await asyncio.gather(*made, return_exceptions=True)
            await self._core.directory.said(user, [wanted.id for wanted in subscriptions])
        finally:
            entered.adoptions -= 1
        for result in (*results, unsettled):
            if isinstance(result, BaseException):
                raise result

    async def _settle(self, user: User, named: Sequence[Wanted]) -> TocsinError | None:
        """Let go of what has ended elsewhere; the problem where that could not be told.

        What is held and was not named may be newer than these words, so the coordinator is asked, and only about that.
        Whoever asks for it meanwhile has it kept anew: it is not known to be.
        """
        doubted = _beyond(user, named)
        if not doubted:
            return None
        for subscription in doubted:
            subscription.is_kept = False
        try:
            kept = await self._core.directory.kept_of(user.name, [s.id for s in doubted])
        except NotFound:
            return None  # the user was removed, and is let go of whole
        except TocsinError as problem:
            return problem
        for subscription in doubted:
            subscription.is_kept = _is_among(subscription, kept)
        ended = [s for s in doubted if not s.is_kept and not s.keeping and user.subscriptions.get(s.id) is s]
        await self._core.subscribing.ended_elsewhere(user, ended)
        return None

    async def _hold(self, user: User, wanted: Wanted) -> None:
        """Hold it, or end it where it can never be held again; its user is told, if it is connected."""
        try:
            await self._core.subscribing.subscribe(user, wanted, None)
        except TocsinError as problem:
            code = _lost_as(wanted, problem)
            if code is None:
                raise
            if wanted.id in user.subscriptions:  # made anew meanwhile
                return
            log.warning("the subscription %s of %s ends here: %s", wanted.id, user.name, problem)
            for session in list(user.sessions):
                session.outlet.say(Ended(wanted.id, code, str(problem)))
            await self._core.directory.drop(user.name, wanted.id)

    async def send(self, user: str, version: int, to: BrokerInfo, ticket: str) -> None:
        held = self._core.users.get(user)
        if held is None or held.version > version:
            return
        sent = self._sent[user] = _Sent(to, ticket)
        for session in [one for one in held.sessions if one.is_welcome]:
            self._send(session, sent)
        try:
            while held.sessions and held.version <= version:
                future = asyncio.get_running_loop().create_future()
                self._leaving.setdefault(user, []).append(future)
                await future
        finally:
            if self._sent.get(user) is sent:
                del self._sent[user]

    def _welcomed(self, user: User, session: Session) -> None:
        """Who comes while its user is sent away is told to go, too: no client moves before its welcome."""
        sent = self._sent.get(user.name)
        if sent is not None:
            self._send(session, sent)

    def _send(self, session: Session, sent: _Sent) -> None:
        ticket = self._core.admission.ticket_for(session.id, sent.ticket)
        session.outlet.say(Move(sent.to.name, sent.to.url, ticket))

    async def release(self, user: str, version: int) -> None:
        held = self._core.users.get(user)
        if held is None or held.version > version:
            return
        ids = list(held.subscriptions)
        self._core.users.remove(held)
        for session in list(held.sessions):
            session.release()
        await self._core.subscribing.let_go_all(held)
        await self._core.directory.said(user, ids)  # before the coordinator hears that they are held no more
        back = self._core.users.get(user)
        if back is not None and back.version <= version:
            raise Unavailable(f"{user} came back while it was let go of")

    def users(self) -> Collection[str]:
        return self._core.users.names()

    def subscriptions(self, user: str) -> Sequence[Wanted]:
        held = self._core.users.get(user)
        return [s.wanted() for s in held.subscriptions.values()] if held else []

    def sessions(self) -> int:
        return sum(len(user.sessions) for user in self._core.users.all())

    def load(self) -> Load:
        return self._core.meters.load(len(self._core.outlets), self._core.now())

    def holdings(self, *, is_full: bool = False) -> Iterable[Holding]:
        changed = self._core.users.take_changed()
        if is_full:
            return [Holding(u.name, u.streams()) for u in self._core.users.all() if u.sessions]
        return [Holding(name, self._streams(name)) for name in sorted(changed)]

    def rates(self, *, is_full: bool = False) -> dict[str, float]:
        """Of streams whose rate has changed, or of all; 0 for those that have gone since they were told."""
        now, streams = self._core.now(), list(self._core.hub.all())
        known = {stream.name for stream in streams}
        told = dict.fromkeys(() if is_full else sorted(self._rated - known), 0.0)
        for stream in streams:
            rate = stream.rate.value(now)
            if is_full or abs(rate - stream.reported_rate) > self._core.settings.rate_change * max(
                1.0, stream.reported_rate
            ):
                told[stream.name] = stream.reported_rate = rate
        self._rated = (self._rated | told.keys()) & known
        return told

    def _streams(self, name: str) -> Sequence[str] | None:
        user = self._core.users.get(name)
        return user.streams() if user and user.sessions else None

    def _left(self, user: User) -> None:
        if not user.sessions:
            self._wake(user.name)

    def _wake(self, user: str) -> None:
        """Whoever waits for the user to leave looks again."""
        for future in self._leaving.pop(user, ()):
            if not future.done():
                future.set_result(None)


def _beyond(user: User, named: Sequence[Wanted]) -> list[Subscription]:
    """What ``user`` holds beyond ``named``, save what is being told just now."""
    if not user.subscriptions:
        return []
    keys = {wanted.id: target_key(wanted.target) for wanted in named}
    return [s for s in user.subscriptions.values() if keys.get(s.id) != s.key and not s.keeping]


def _is_among(subscription: Subscription, kept: Mapping[str, Wanted]) -> bool:
    wanted = kept.get(subscription.id)
    return wanted is not None and target_key(wanted.target) == subscription.key


def _lost_as(wanted: Wanted, problem: TocsinError) -> str | None:
    """What became of the channel, where that is why: nothing else is for good, such as a broker that is not known."""
    if not isinstance(wanted.target, ChannelTarget):
        return None
    if isinstance(problem, NotFound) and problem.kind == "channel":
        return "dropped"
    return "replaced" if isinstance(problem, BadArgument) and problem.code == BadArgument.code else None
