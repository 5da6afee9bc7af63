"""A session on asyncio: carries out what ``tocsin.protocol.client_session`` decides."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from random import Random
from types import TracebackType
from typing import Any, Self

from tocsin.client.arguments import as_json, positions_of, rows, text, wanted
from tocsin.client.credentials import Credentials, TokenSource, lasts_s, nameless, subject
from tocsin.client.placing import PlacementRefused, place
from tocsin.client.subscription import Subscription
from tocsin.client.wire import Wire
from tocsin.client.wishes import topic
from tocsin.config import Client, check_address
from tocsin.errors import BadArgument, TocsinError, Unauthenticated, Unavailable
from tocsin.protocol import client_actions as do
from tocsin.protocol import messages
from tocsin.protocol.client_actions import Action
from tocsin.protocol.client_session import ClientSession
from tocsin.protocol.codec import encoded
from tocsin.protocol.inbox import Item
from tocsin.protocol.targets import Target, check_topic
from tocsin.tls import trusting

MAX_STOPPED = 1000

Tap = Callable[[int, bool, bytes], None]
"""Hears every message: the number of its connection, whether it is ours, and its bytes."""


def connect(
    *,
    coordinator: str | None = None,
    broker: str | None = None,
    token: TokenSource = None,
    user: str | None = None,
    location: tuple[float, float] | None = None,
    positions: Mapping[str, str] | None = None,
    settings: Client | None = None,
    session: str | None = None,
    tap: Tap | None = None,
) -> Session:
    """A session, to be entered with ``async with``.

    ``token`` is a text, or a function (async or not) that gives one whenever one is needed; with a
    function it is renewed without a new connection. ``user`` is needed where the token does not name it.
    ``positions`` are those of an earlier session, to go on where it stopped. ``tap`` hears every message.
    ``session`` is a name of its own: of two programs with one name, the later one ends the other's session.
    """
    chosen = settings or Client()
    where = (coordinator or chosen.coordinator or None, broker or chosen.broker or None)
    if where == (None, None):
        raise BadArgument("connect", "the address of a coordinator or of a broker", None)
    if where[0] is not None:
        check_address("coordinator", where[0], "http://127.0.0.1:8440")
    if where[1] is not None:
        check_address("broker", where[1], "http://127.0.0.1:8430", ("http", "https", "ws", "wss"))
    credentials = Credentials(token, chosen.login_timeout)
    return Session(where, credentials, user, location, positions_of(positions), chosen, session, tap)


class Session:
    """Made by ``connect``. ``user``, ``broker`` and ``is_connected`` tell where it stands."""

    def __init__(
        self,
        where: tuple[str | None, str | None],
        credentials: Credentials,
        user: str | None,
        location: tuple[float, float] | None,
        positions: dict[str, str],
        settings: Client,
        name: str | None,
        tap: Tap | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._coordinator, broker = where
        self._credentials, self._location, self._positions, self._settings = credentials, location, positions, settings
        self._tap = tap
        self._tls = trusting("client.ca_file", settings.ca_file)
        self._core = ClientSession(
            settings,
            Random(),
            session=name or secrets.token_hex(8),
            url=broker,
            has_coordinator=self._coordinator is not None,
            can_renew=credentials.can_renew,
        )
        self.user, self.broker, self.is_connected = user, "", False
        self._wires: dict[int, Wire] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._ready: dict[str, None] = {}
        self._stopped: deque[tuple[TocsinError, deque[Item]]] = deque(maxlen=MAX_STOPPED)  # for ``events`` to raise
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking: set[asyncio.Task[None]] = set()  # the coordinator, or the application for a token
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0  # not asked of the timer: what is due at once has none on uvloop
        self._error: TocsinError | None = None
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._do(self._core.start(self._now()))
        try:
            async with asyncio.timeout(self._settings.connect_timeout):
                await self._until(lambda: self.is_connected or self._is_over)
        except BaseException as problem:
            await self._abandon()
            if isinstance(problem, TimeoutError):
                raise Unavailable(f"no login: {self._core.problem or 'no answer'}") from None
            raise
        if self._error:
            raise self._error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    def subscribe(self, target: Target, *, id: str | None = None, position: str | None = None) -> Subscription:
        """Subscribe now. The subscription outlives the session until it is unsubscribed; ``id`` names it."""
        asked = wanted(id, target, position)
        name = asked.id
        start = asked.position if asked.position is not None else self._positions.get(name)
        subscription = Subscription(self, name, target, self._take)
        actions = self._core.subscribe(self._now(), ("subscribe", name), name, asked.target, start)
        self._positions.pop(name, None)
        self._subscriptions[name] = subscription
        self._do(actions)
        return subscription

    def topic(self, name: str, **options: Any) -> Subscription:
        return self.subscribe(topic(name), **options)

    async def unsubscribe(self, id: str) -> None:
        subscription = self._subscriptions.get(id)
        answer = self._ask(lambda now, key: self._core.unsubscribe(now, key, id))
        if subscription:
            self._subscriptions.pop(id, None)
            subscription.stop(rest=deque())
        await answer

    async def publish(self, topic: str, payload: Any) -> str:
        """Publish under a topic; the position that its owner gave."""
        name, raw = check_topic(topic), as_json("payload", payload)
        answer = await self._request(lambda n: messages.Publish(n, name, raw))
        return str(answer.position)

    async def records(self, dataset: str, records: Iterable[Any]) -> tuple[int, int]:
        """Append records to a dataset: how many were accepted and rejected, once they are durable."""
        name, raws = text("dataset", dataset), rows(records)
        answer = await self._request(lambda n: messages.Records(n, name, raws))
        return answer.accepted, answer.rejected

    async def held(self) -> list[messages.Standing]:
        """Every subscription that the user has, those of other sessions included."""
        answer = await self._request(messages.ListSubscriptions)
        return list(answer.subscriptions)

    async def refresh(self, token: str) -> None:
        """Show another token on the connection there is, and from now on."""
        self._credentials.replace(text("token", token))
        await self._ask(lambda now, key: self._core.renewed(now, token, lasts_s(token), key))

    @property
    def problem(self) -> str:
        """Why there is no connection; empty where there is one, or nothing is known yet."""
        return self._core.problem

    @property
    def positions(self) -> dict[str, str]:
        """By subscription, up to where the application has taken it: to be given to a later ``connect``."""
        return {**self._positions, **self._core.positions}

    async def events(self) -> AsyncIterator[Item]:
        """The items of all subscriptions, in turn and in order for each; do not iterate over one of them meanwhile.

        Raises where a broker ended a subscription; the others can be iterated over again.
        """
        while True:
            while self._ready:
                name = next(iter(self._ready))
                del self._ready[name]
                item = self._take(name)
                if item is not None:
                    self._ready[name] = None  # behind the others
                    yield item
            if self._stopped:
                error, rest = self._stopped.popleft()
                while rest:
                    yield rest.popleft()
                raise error
            if self._is_over:
                break
            await self._until(lambda: bool(self._ready or self._stopped) or self._is_over)
        if self._error:
            raise self._error

    async def close(self, *, forget: bool = False) -> None:
        """Tell the broker what was taken, and leave; with ``forget`` every subscription of the user ends.

        Nothing can be taken any more. Raises where they were to end, and it is not known that they have.
        """
        self._do(self._core.close(self._now(), forget=forget))
        await self._until(lambda: self._is_over)
        await self._abandon()
        if forget and self._core.not_forgotten:
            raise self._core.not_forgotten.with_traceback(None)

    # --- what links tell ------------------------------------------------------------------------------------

    async def opened(self, link: int) -> None:
        token = await self._credentials.token()
        self._do(self._core.opened(self._now(), link, token, lasts_s(token)))

    def received(self, link: int, data: bytes) -> None:
        if self._tap:
            self._tap(link, False, data)
        self._do(self._core.received(self._now(), link, data))

    def closed(self, link: int, code: int, reason: str) -> None:
        self._wires.pop(link, None)
        self._do(self._core.closed(self._now(), link, code, reason))

    # --- what the core says -----------------------------------------------------------------------------------

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            self._carry_out(action)
        self._schedule()

    def _carry_out(self, action: Action) -> None:
        match action:
            case do.Ready(subscription):
                self._wake(subscription)
            case do.Send(link, message):
                self._send(link, encoded(message))
            case do.Answer(key, value):
                self._answer(key, value)
            case do.Fail(key, error):
                self._fail(key, error)
            case do.Open(link, url):
                self._wires[link] = Wire(link, url, self, self._settings.max_message_bytes, self._tls)
            case do.Close(link, code):
                self._close_wire(link, code)
            case do.Locate():
                self._ask_around(self._locate())
            case do.RenewToken():
                self._ask_around(self._renew())
            case do.Connected(user, broker):
                self.user, self.broker, self.is_connected = user, broker, True
                self._changed.set()
            case do.Disconnected():
                self.is_connected = False
            case do.Stop(subscription, error, waiting):
                rest = deque(waiting)
                self._subscriptions.pop(subscription).stop(error, rest)
                self._stopped.append((error, rest))
                self._changed.set()
            case do.End(error):
                self._finish(error)

    def _send(self, link: int, data: bytes) -> None:
        if link in self._wires:
            self._wires[link].send(data)
            if self._tap:
                self._tap(link, True, data)

    def _close_wire(self, link: int, code: int) -> None:
        wire = self._wires.pop(link, None)
        if wire:
            self._keep(wire.task)
            wire.close(code, self._keep)

    def _wake(self, name: str) -> None:
        self._subscriptions[name].wake()
        self._ready[name] = None
        self._changed.set()

    def _answer(self, key: Any, value: Any) -> None:
        if isinstance(key, asyncio.Future):
            if not key.done():
                key.set_result(value)
        elif key is not None and key[1] in self._subscriptions:
            self._subscriptions[key[1]].stood(value)

    def _fail(self, key: Any, error: TocsinError) -> None:
        if isinstance(key, asyncio.Future):
            if not key.done():
                key.set_exception(error)
        elif key is not None and key[1] in self._subscriptions:
            self._subscriptions.pop(key[1]).stop(error, deque())

    def _finish(self, error: TocsinError | None) -> None:
        self._error, self._is_over, self.is_connected = error, True, False
        for subscription in self._subscriptions.values():
            subscription.stop(error)
        self._changed.set()

    async def _locate(self) -> None:
        token: str | None = None
        try:
            token = await self._credentials.token()
            user = self.user or subject(token)
            if user is None:
                raise Unauthenticated(nameless(token))
            assert self._coordinator is not None
            found = await place(self._coordinator, user, token, self._location, self._settings.login_timeout, self._tls)
        except (PlacementRefused, Unauthenticated) as problem:
            final = None if self._credentials.is_outdated(token) else problem
            self._do(self._core.not_located(self._now(), str(problem), final=final))
        except Exception as problem:
            self._do(self._core.not_located(self._now(), str(problem)))
        else:
            self._do(self._core.located(self._now(), found.url, found.ticket))

    async def _renew(self) -> None:
        try:
            token = await self._credentials.token()
        except Exception:
            self._do(self._core.not_renewed(self._now()))
        else:
            self._do(self._core.renewed(self._now(), token or "", lasts_s(token)))

    # --- small parts ------------------------------------------------------------------------------------------------

    def _take(self, subscription: str) -> Item | None:
        item = self._core.take(self._now(), subscription)
        if item is not None:
            self._schedule()
        return item

    async def _request(self, make: Any) -> Any:
        return await self._ask(lambda now, key: self._core.request(now, key, make))

    def _ask(self, request: Any) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._do(request(self._now(), answer))
        return answer

    async def _until(self, holds: Any) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    async def _abandon(self) -> None:
        """Let every task of ours end."""
        self._do(self._core.close(self._now()))
        for wire in list(self._wires.values()):
            wire.task.cancel()
            self._keep(wire.task)
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._timer:
            self._timer.cancel()

    def _ask_around(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._keep(task)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _schedule(self) -> None:
        """Have ``tick`` called at the core's deadline."""
        due = self._core.deadline()
        if self._timer and (due is None or self._timer_at > due):
            self._timer.cancel()
            self._timer = None
        if due is not None and self._timer is None:
            self._timer, self._timer_at = self._loop.call_at(due, self._tick), due

    def _tick(self) -> None:
        self._timer = None
        self._do(self._core.tick(self._now()))

    def _now(self) -> float:
        return self._loop.time()
