"""What users hold: subscriptions made durable, shared by all sessions of their user, and ended.

Whoever asks for an end need not wait for it: it is carried out though its connection is gone, for nobody else would
let go of what the subscription holds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from tocsin.broker.holding import Holding
from tocsin.broker.ports import Directory
from tocsin.broker.stream import Stream
from tocsin.broker.tasks import Tasks
from tocsin.broker.users import Making, Subscription, User, Users
from tocsin.errors import AlreadyExists, LimitExceeded, NotFound, Refused, TocsinError, Unavailable
from tocsin.protocol.messages import Ended, Wanted
from tocsin.protocol.names import check_name
from tocsin.protocol.targets import target_key
from tocsin.tokens import Principal

if TYPE_CHECKING:
    from tocsin.broker.session import Session

log = logging.getLogger(__name__)


class Subscribing:
    """``max_subscriptions`` is for each user; a peer may hold as many as it needs."""

    def __init__(
        self, users: Users, holding: Holding, directory: Directory, max_subscriptions: int, tasks: Tasks
    ) -> None:
        self._users, self._holding, self._directory = users, holding, directory
        self._max_subscriptions, self._tasks = max_subscriptions, tasks

    async def subscribe(
        self,
        user: User,
        wanted: Wanted,
        principal: Principal | None,
        *,
        is_trusted: bool = False,
        is_said: bool = False,
        may_make: bool = True,
    ) -> Subscription:
        """Make ``wanted`` one of the user's, durably. Repeating it is harmless.

        ``principal`` is asked whether it may, save where it ``is_trusted`` with what the user holds already; without
        one, the coordinator asks. Where it ``may_make`` none, what has ended meanwhile is NotFound, and nothing is told
        of what may have: nobody asked for it. One that is ended while it is made is given too, though nobody holds it.
        Where it ``is_said``, the coordinator is told though it is kept: another broker may be about to tell an end that
        the user said there before.
        """
        key = target_key(wanted.target)
        held = _known(user, check_name("subscription", wanted.id), key)
        if principal is not None and not (is_trusted and held is not None):
            await self._holding.upstream(wanted.target).check(wanted.target, principal, wanted.position)
        held = _known(user, wanted.id, key)  # again: other sessions have gone on meanwhile
        if held is None and not may_make:
            raise NotFound("subscription", wanted.id)
        held = held or await self._hold(user, wanted, key)
        if user.subscriptions.get(wanted.id) is held:
            if principal is None:
                held.is_kept = held.is_kept or not user.has_ended
            elif (is_said or not held.is_kept) and not user.is_peer and (may_make or held.keeping):
                await self._keep(user, held)
        return held

    async def unsubscribe(self, user: User, ids: Iterable[str], by: Session) -> None:
        """End these, all at once, and tell the user's other sessions; harmless where there are none.

        Those that are not held may be durable, and in the making here: the user was placed here just now.
        """
        reason = "another session of the user ended it"
        names = [check_name("subscription", id) for id in ids]
        user.has_ended = True
        for making in [user.making.pop(id) for id in names if id in user.making]:
            making.is_ended = True
        taken = [(id, self._taken(user, id, Ended(id, "unsubscribed", reason), by)) for id in names]
        await self._tasks.finish(self._end_all(user, taken))

    async def forget(self, user: User, by: Session) -> None:
        """End all that the user holds, wherever: who holds it elsewhere hears of it from the coordinator.

        What is kept and not held here is the coordinator's to tell. Unavailable where it cannot; then what is held here
        has ended, as it would one by one.
        """
        await self._tasks.finish(self._forget(user, by))

    async def _forget(self, user: User, by: Session) -> None:
        kept, problem = await self._kept_elsewhere(user)
        await self.unsubscribe(user, {*user.subscriptions, *user.making, *kept}, by)
        if problem is not None:
            raise problem

    async def _kept_elsewhere(self, user: User) -> tuple[Collection[str], TocsinError | None]:
        """What the coordinator keeps for the user, after all that was told of it here; why where that is not known."""
        if user.is_peer:
            return (), None
        try:
            return await self._directory.kept_of(user.name, {*user.subscriptions, *user.making}), None
        except NotFound:
            return (), None
        except TocsinError as problem:
            return (), problem

    def end_stream(self, stream: Stream, code: str, detail: str) -> None:
        """End every subscription that ``stream`` serves, those of offline users too, and tell whoever is online."""
        self._holding.end(stream)
        for user in self._users.all():
            for id in [s.id for s in user.subscriptions.values() if s.stream is stream]:
                subscription = self._taken(user, id, Ended(id, code, detail))
                if subscription is not None:
                    user.has_ended = True
                    self._tasks.spawn(self._end(user, id, subscription))

    async def recheck(self, session: Session, principal: Principal) -> None:
        """Let a session keep only what its new ``principal`` may follow; other sessions of the user keep theirs.

        All are asked about; raises the first error where some could not be told.
        """
        subscriptions = list(session.subscriptions.values())
        checks = (self._holding.upstream(s.target).check(s.target, principal) for s in subscriptions)
        problems = dict(zip(subscriptions, await asyncio.gather(*checks, return_exceptions=True), strict=True))
        for subscription, problem in problems.items():
            if isinstance(problem, Refused):
                session.lose(subscription, Ended(subscription.id, problem.code, str(problem)))
        for problem in problems.values():
            if isinstance(problem, BaseException) and not isinstance(problem, Refused):
                raise problem

    def put_back(self, user: User, subscription: Subscription) -> None:
        """It was acknowledged where its stream has never been: whoever comes for the user goes on from here."""
        subscription.acked = subscription.stream.position
        if not user.is_peer:
            self._directory.acknowledged(user.name, subscription.id, subscription.acked, is_back=True)

    async def ended_elsewhere(self, user: User, subscriptions: Sequence[Subscription]) -> None:
        """Hold these no longer, which are durable no more, and tell the user's sessions."""
        reason = "it was ended elsewhere"
        for subscription in subscriptions:
            log.info("the subscription %s of %s ends here: %s", subscription.id, user.name, reason)
        await self._let_go(self._taken(user, s.id, Ended(s.id, "unsubscribed", reason)) for s in subscriptions)

    async def let_go_all(self, user: User) -> None:
        """Hold nothing for ``user`` any more, without ending its subscriptions."""
        await self._let_go(self._taken(user, id) for id in list(user.subscriptions))

    async def _let_go(self, taken: Iterable[Subscription | None]) -> None:
        for subscription in list(taken):  # all at once
            if subscription is not None:
                await self._holding.let_go(subscription.stream, subscription.target)

    def _taken(self, user: User, id: str, ended: Ended | None = None, by: Session | None = None) -> Subscription | None:
        """The subscription, from now on nobody's; sessions other than ``by`` hear of it."""
        subscription = user.subscriptions.pop(id, None)
        if subscription is not None:
            for session in list(user.sessions):
                session.lose(subscription, ended if session is not by else None)
            self._users.changed(user)
        return subscription

    async def _end_all(self, user: User, taken: Sequence[tuple[str, Subscription | None]]) -> None:
        ended = await asyncio.gather(*(self._end(user, id, one) for id, one in taken), return_exceptions=True)
        for problem in ended:
            if isinstance(problem, BaseException):
                raise problem

    async def _end(self, user: User, id: str, subscription: Subscription | None) -> None:
        try:
            if not user.is_peer:
                await self._directory.drop(user.name, id)
        finally:
            if subscription is not None:
                await self._holding.let_go(subscription.stream, subscription.target)

    async def _hold(self, user: User, wanted: Wanted, key: str) -> Subscription:
        self._check_room(user, len(user.making) + (wanted.id not in user.making))
        making = user.making.setdefault(wanted.id, Making())
        making.count += 1
        try:
            return await self._held(user, wanted, key, making)
        finally:
            making.count -= 1
            if not making.count and user.making.get(wanted.id) is making:
                del user.making[wanted.id]

    async def _held(self, user: User, wanted: Wanted, key: str, making: Making) -> Subscription:
        stream = await self._holding.hold(wanted.target)
        try:
            is_beyond = await self._is_beyond(stream, wanted.position)
            if not self._holding.has(stream, wanted.target):
                raise Unavailable("what it follows ended just now")
            known = _known(user, wanted.id, key)
            self._check_room(user, 0 if known or making.is_ended else 1)
        except BaseException:
            await self._tasks.finish(self._holding.let_go(stream, wanted.target))
            raise
        made = known or Subscription(wanted.id, wanted.target, key, stream, wanted.position or stream.position)
        if known is not None or making.is_ended:  # another session was quicker
            await self._holding.let_go(stream, wanted.target)
            return made
        user.subscriptions[wanted.id] = made
        self._users.changed(user)
        if is_beyond:
            self.put_back(user, made)
        return made

    async def _is_beyond(self, stream: Stream, position: str | None) -> bool:
        """Whether the stream has never been at ``position``. Where nobody can tell, who comes with it is put back."""
        if position is None or position <= stream.position:
            return False
        try:
            return await self._holding.is_beyond(stream, position)
        except TocsinError:
            return False

    async def _keep(self, user: User, held: Subscription) -> None:
        """Make it durable; what is refused is not held either."""
        held.keeping += 1
        try:
            await self._directory.keep(user.name, held.wanted())
            held.is_kept = True
        except TocsinError:
            if not held.is_kept and user.subscriptions.get(held.id) is held:
                self._taken(user, held.id)
                await self._tasks.finish(self._holding.let_go(held.stream, held.target))
            raise
        finally:
            held.keeping -= 1

    def _check_room(self, user: User, more: int) -> None:
        """LimitExceeded if the user would hold too much with ``more``; Unavailable if it is held here no more."""
        if user.is_peer:
            return
        if self._users.get(user.name) is not user:
            raise Unavailable(f"{user.name!r} was placed elsewhere meanwhile")
        if len(user.subscriptions) + more > self._max_subscriptions:
            raise LimitExceeded("subscriptions of one user", self._max_subscriptions)


def _known(user: User, id: str, key: str) -> Subscription | None:
    """What the user holds by this id; AlreadyExists where that is another target."""
    known = user.subscriptions.get(id)
    if known is not None and known.key != key:
        raise AlreadyExists("subscription", id, "end it first or choose another id")
    return known
