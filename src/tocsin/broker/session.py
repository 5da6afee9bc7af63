"""One login: the requests that come, their answers, and the streams that the session follows.

::

    new --login--> busy --welcome--> open --logout, close, an end by us--> over

Requests that change what is held (login, subscribe, unsubscribe, list, confirm, refresh, logout) are carried out
one after the other, in the order of their coming; publications and records run beside them; a ping is answered and
an ack, which has no answer, is noted at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from tocsin.broker.admission import Admitted, Moved
from tocsin.broker.follow import Follow
from tocsin.broker.payloads import check_payload
from tocsin.broker.requests import Requests
from tocsin.broker.standing import Stood, stand_all
from tocsin.broker.stream import Stream
from tocsin.broker.users import Subscription, User
from tocsin.errors import BadArgument, LimitExceeded, NotFound, TocsinError, Unauthenticated
from tocsin.protocol.codec import from_client
from tocsin.protocol.codes import (
    BAD_MESSAGE,
    BAD_TOKEN,
    CROWDED,
    GOING_AWAY,
    INTERNAL,
    LOGGED_OUT,
    LOGIN_FIRST,
    MOVED,
    RELEASED,
    Code,
)
from tocsin.protocol.messages import (
    Accepted,
    Ack,
    Confirm,
    Done,
    Ended,
    Failed,
    ListSubscriptions,
    Login,
    Logout,
    Ping,
    Pong,
    Publish,
    Published,
    Records,
    Refresh,
    Standing,
    Subscribe,
    Subscribed,
    Subscriptions,
    Unsubscribe,
    Wanted,
    Welcome,
)
from tocsin.protocol.names import check_name
from tocsin.tokens import Principal

if TYPE_CHECKING:
    from tocsin.broker.core import Core
    from tocsin.broker.outlet import Outlet

_CLOSES: Mapping[str, Code] = {
    "unauthenticated": BAD_TOKEN,
    "bad-argument": BAD_MESSAGE,
    "moved": MOVED,
    "limit-exceeded": CROWDED,
    "unavailable": GOING_AWAY,
}


Request = Login | Subscribe | Unsubscribe | ListSubscriptions | Publish | Records | Refresh | Confirm | Logout
M = TypeVar("M", Request, Publish | Records)


class Session:
    __slots__ = (
        "_early", "_ends_at", "_outlet", "_requests", "core", "follows", "id", "is_released", "is_welcome",
        "principal", "subscriptions", "user",
    )  # fmt: skip

    def __init__(self, core: Core, outlet: Outlet) -> None:
        self.core, self._outlet = core, outlet
        self.id = ""
        self.user: User | None = None
        self.principal: Principal | None = None
        self.subscriptions: dict[str, Subscription] = {}
        self.follows: dict[Stream, Follow] = {}
        self.is_released = False  # the user is another broker's, and waits here for its last answers
        self.is_welcome = False
        self._ends_at = core.now() + core.settings.login_timeout
        self._requests: Requests | None = None
        self._early: dict[str, str] | None = None  # by stream, acknowledged beyond what was sent here

    @property
    def is_peer(self) -> bool:
        return self.user is not None and self.user.is_peer

    @property
    def outlet(self) -> Outlet:
        return self._outlet

    def deadline(self) -> tuple[float, Code]:
        """When the session ends by itself, and why."""
        if self.is_released:
            return self._ends_at, RELEASED
        return self._ends_at, LOGIN_FIRST if self.user is None else BAD_TOKEN

    def resort(self) -> None:
        """The way out became slow, or fast again."""
        for follow in self.follows.values():
            follow.resort()

    def took(self, positions: Mapping[str, str]) -> None:
        """The client has what left for it up to ``positions``: as if it had said so."""
        self._acknowledge(positions)

    def release(self) -> None:
        """The user is another broker's now: end, once publications and records that are under way are answered.

        Whatever changes what is held has to be asked of the other one, what is under way too: it is not answered.
        """
        is_idle = self._requests is None or not self._requests.cancel_ordered()
        if is_idle and not self._outlet.is_behind:
            self._outlet.end(RELEASED)
            return
        self.is_released = True
        self._ends_at = min(self._ends_at, self.core.now() + self.core.settings.login_timeout)
        self.core.wheel.add(self._outlet, self._ends_at)

    def left(self) -> None:
        """The connection is over: the session goes, what its user holds stays."""
        self._acknowledge({})
        for follow in self.follows.values():
            follow.stop()
        self.follows.clear()
        if self._requests is not None:
            self._requests.cancel()
        if self.user is not None:
            self.core.leave(self, self.user)

    # --- in -----------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        try:
            message = from_client(data)
        except BadArgument as problem:
            self._outlet.say(Failed("bad-message", str(problem)[:500]))
            self._outlet.end(BAD_MESSAGE)
            return
        if self.principal is None and self._requests is None and not isinstance(message, Login):
            self._outlet.end(LOGIN_FIRST)
        elif isinstance(message, Ping):
            self._outlet.say(Pong(message.request))
        elif isinstance(message, Ack):
            self._acknowledge(message.positions)
        elif self.user is not None and isinstance(message, Publish | Records):
            self._under_way.run(partial(self._answered, self._beside, message))
        elif self.is_released:
            self._outlet.end(RELEASED)
        else:
            self._under_way.enqueue(partial(self._answered, self._in_order, message))

    @property
    def _under_way(self) -> Requests:
        if self._requests is None:
            limit = self.core.settings.max_requests
            self._requests = Requests(self._outlet.hold, limit, self._idle, lambda: self._outlet.end(INTERNAL))
        return self._requests

    def _idle(self) -> None:
        self._requests = None
        if self.is_released and not self._outlet.is_behind:
            self._outlet.end(RELEASED)

    async def _answered(self, carry_out: Callable[[M], Awaitable[None]], message: M) -> None:
        try:
            await carry_out(message)
        except TocsinError as error:
            self._outlet.say(failed(error, message.request))
            if self.user is None and (code := _CLOSES.get(error.code)):
                self._outlet.end(code)

    # --- requests -----------------------------------------------------------------------------------------

    async def _in_order(self, message: Request) -> None:
        match message:
            case Login() if self.user is None:
                await self.login(message, {})
            case Subscribe():
                await self._subscribe(message)
            case Unsubscribe():
                await self.core.subscribing.unsubscribe(self._known, [message.id], self)
                self._outlet.say(Done(message.request))
            case ListSubscriptions():
                held = [self._standing(s) for s in self._known.subscriptions.values()]
                self._outlet.say(Subscriptions(message.request, held))
            case Refresh():
                await self._refresh(message.token)
                self._outlet.say(Done(message.request))
            case Confirm():
                self.core.confirmed(self._known)
                self._outlet.say(Done(message.request))
            case Logout():
                await self._logout(message)
            case Publish() | Records():  # came before the login was through
                self._under_way.run(partial(self._answered, self._beside, message))
            case _:
                raise BadArgument("message", "one login a connection", "another")

    async def _beside(self, message: Publish | Records) -> None:
        principal = self.principal
        assert principal is not None
        if isinstance(message, Publish):
            payload = bytes(message.payload)
            if not self.is_peer:  # whose own client was told
                check_payload(payload)
            position = await self.core.publisher.publish(message.topic, payload, principal)
            self._outlet.say(Published(message.request, position))
            return
        records = [bytes(r) for r in message.records]
        self.core.meters.records_in.add(sum(map(len, records)), self.core.now())
        accepted, rejected = await self.core.recorder.records(message.dataset, records, principal)
        self._outlet.say(Accepted(message.request, accepted, rejected))

    async def login(self, message: Login, positions: Mapping[str, str]) -> None:
        """Let the client in, say welcome, and start what it follows. ``positions`` are by stream."""
        named = check_name("session", message.session) if message.session else None
        brought = _by_id(message.subscriptions)
        admitted = await self.core.admission.admit(message.token, message.ticket, named)
        self.id = named or (admitted.ticket and admitted.ticket.session) or uuid4().hex
        try:
            stood = await self._enter(message, brought, admitted, positions)
        except BaseException:
            self.core.admission.unused(admitted)
            raise
        stood.start()
        self.is_welcome = True
        self.core.wheel.add(self._outlet, self._ends_at)
        self.core.welcomed(self)

    async def _enter(
        self, message: Login, brought: Mapping[str, Wanted], admitted: Admitted, positions: Mapping[str, str]
    ) -> Stood:
        """Everything up to the welcome."""
        self.user = self.core.enter(self, admitted)
        self.principal = admitted.principal
        if admitted.is_peer:
            self._outlet.trust()
        self._ends_at = self.core.monotonic_of(admitted.ends_at)
        held = {s.id: Wanted(s.id, s.target) for s in self.user.subscriptions.values()}
        wanted = list({**held, **brought}.values())
        self._outlet.check_room(one.target for one in wanted)
        unasked = held.keys() - brought.keys()
        stood = await stand_all(self, wanted, positions, is_trusted=not admitted.has_token, unasked=unasked)
        standings = [stood.standing(s) for s in self.subscriptions.values()]
        self._outlet.say(
            Welcome(
                message.request,
                self.user.name,
                self.core.name,
                self.id,
                self.core.settings.ping,
                standings,
                stood.refused,
                self.core.settings.max_message_bytes,
            )
        )
        return stood

    async def _subscribe(self, message: Subscribe) -> None:
        wanted = Wanted(message.id, message.target, message.position)
        stood = await stand_all(self, [wanted], {}, is_trusted=False, is_said=True)
        if stood.errors:
            raise stood.errors[0]
        if message.id not in self.subscriptions:  # another session of the user ended it meanwhile
            stood.start()  # others of this session may share its stream
            raise NotFound("subscription", message.id)
        self._outlet.say(Subscribed(message.request, stood.standing(self.subscriptions[message.id])))
        stood.start()

    def lose(self, subscription: Subscription, ended: Ended | None = None) -> None:
        """Follow a subscription of the user no longer, and say so unless the client knows."""
        if self.subscriptions.get(subscription.id) is subscription:
            if ended is not None:
                self._outlet.say(ended)
            del self.subscriptions[subscription.id]
            if all(s.stream is not subscription.stream for s in self.subscriptions.values()):
                follow = self.follows.pop(subscription.stream, None)
                if follow is not None:
                    follow.stop()

    def _standing(self, subscription: Subscription) -> Standing:
        """As it stands for this session; one that another session of the user made is where it was acknowledged."""
        follow = self.follows.get(subscription.stream) if subscription.id in self.subscriptions else None
        position = follow.position if follow else subscription.acked
        return Standing(subscription.id, subscription.target, subscription.stream.name, position)

    def _acknowledge(self, positions: Mapping[str, str]) -> None:
        """Note what the client has; it has nothing beyond where it stands.

        One that has moved here may have got more at its former broker, and says so once: that counts when it was sent
        here, too. Where the stream itself has not come to, the client may only think that it was.
        """
        if self.user is None or self.user.is_peer:
            return
        told, early = {**(self._early or {}), **positions}, {}
        for subscription in self.subscriptions.values() if told else ():
            stream = subscription.stream
            position, follow = told.get(stream.name), self.follows.get(stream)
            if not position or not follow or position <= subscription.acked:
                continue
            if position <= follow.position:
                subscription.acked = position
                self.core.directory.acknowledged(self.user.name, subscription.id, position)
            elif position <= stream.position:
                early[stream.name] = position
        self._early = early or None

    async def _refresh(self, token: str) -> None:
        """Go on by a new token. Where it cannot be told what that allows, the old one counts, to its end."""
        principal = self.core.admission.principal(token)
        if principal.subject != self._known.name and not self.is_peer:
            raise Unauthenticated("the new token is of another user")
        if not self.is_peer:
            await self.core.subscribing.recheck(self, principal)
        self.principal = principal
        self._ends_at = self.core.monotonic_of(self.core.admission.ends_at(principal))
        self.core.wheel.add(self._outlet, self._ends_at)

    async def _logout(self, message: Logout) -> None:
        if message.forget:
            await self.core.subscribing.forget(self._known, self)
        self._outlet.say(Done(message.request))
        self._outlet.end(LOGGED_OUT)

    @property
    def _known(self) -> User:
        if self.user is None:
            raise Unauthenticated("log in first")
        return self.user


def _by_id(wanted: Iterable[Wanted]) -> dict[str, Wanted]:
    """BadArgument where one id stands for two targets: one of them would be lost without a word."""
    found: dict[str, Wanted] = {}
    for one in wanted:
        if one.id in found and found[one.id].target != one.target:
            raise BadArgument("subscriptions", "one target for each id", one.id)
        found[one.id] = one
    return found


def failed(error: TocsinError, request: int | None) -> Failed:
    """An error as a client gets it."""
    pause = error.retry_after_s if isinstance(error, LimitExceeded) else None
    url = error.url if isinstance(error, Moved) else None
    return Failed(error.code, str(error)[:1000], request, pause, url)
