"""A connection to another broker, over the protocol that clients speak: to follow topics that it owns, and to publish.

A link connects when it is needed and stays as long as it follows something; it shows the peer a new token before the
last one ends. When the connection breaks, what was asked fails with Unavailable, a publication with Uncertain, for
nobody knows whether it was done; what is followed is taken up again at the position reached, and the owner sends the
rest or says what is gone. Nothing stays followed there that is not followed here: where nobody heard whether a topic
was taken up, the peer is told to give it up. Of one topic, one thing is said at a time.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.protocol import State
from websockets.typing import Subprotocol

from tocsin.broker.gates import Gates
from tocsin.broker.tasks import Tasks
from tocsin.broker.upstream.backoff import Backoff
from tocsin.errors import BadArgument, TocsinError, Unavailable, Uncertain
from tocsin.protocol.codec import encoded, from_broker
from tocsin.protocol.coordination import BrokerInfo
from tocsin.protocol.messages import (
    SUBPROTOCOL,
    Done,
    Failed,
    FromBroker,
    FromClient,
    Gap,
    Login,
    Notification,
    Publish,
    Published,
    Refresh,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Welcome,
)
from tocsin.protocol.targets import TopicTarget, topic_stream

log = logging.getLogger(__name__)


class NotSettled(Unavailable):
    """Nothing was done: the peer is not reached, or does not stamp the topic."""


Answer = Welcome | Subscribed | Published | Done


@dataclass(frozen=True, slots=True)
class PeerOptions:
    """``refresh_s``, after which a newer token is shown, is half of what the token has to live, or less."""

    timeout_s: float
    backoff_min_s: float
    backoff_max_s: float
    max_message_bytes: int
    parallel: int
    refresh_s: float
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class PeerEvents:
    """What a link tells: a message of a stream (false: it does not fit), and a topic that the peer refused."""

    take: Callable[[Notification | Gap], bool]
    position: Callable[[str], str | None]
    refused: Callable[[str], None]


class PeerLink:
    def __init__(self, peer: BrokerInfo, token: Callable[[], str | None], events: PeerEvents, options: PeerOptions):
        self.peer = peer
        self._token, self._events, self._options = token, events, options
        self._follows: dict[str, str | None] = {}  # topic → where to begin if the hub does not know
        self._given_up: set[str] = set()  # followed no more, which the peer is about to be told
        self._wire: _Wire | None = None
        self._connecting, self._places = asyncio.Lock(), asyncio.Semaphore(options.parallel)
        self._keeper: asyncio.Task[None] | None = None
        self._gates: Gates[str] = Gates()
        self._tasks = Tasks(f"the link to {peer.name}")
        self._is_closed = False

    @property
    def topics(self) -> Mapping[str, str | None]:
        return self._follows

    async def follow(self, topic: str, position: str | None) -> str:
        """Follow ``topic`` from ``position``, or from now; where it begins. Unavailable if the peer does not own it."""
        async with self._gates.passed(topic):
            wire = await self._connected()
            async with self._places:  # the peer takes them one by one, and their time runs only when it is their turn
                answer = await self._subscribed(wire, topic, position)
            self._given_up.discard(topic)
            self._follows[topic] = answer.subscription.position
        return answer.subscription.position

    async def _subscribed(self, wire: _Wire, topic: str, position: str | None) -> Subscribed:
        try:
            answer = await wire.ask(lambda n: Subscribe(n, topic, TopicTarget(topic), position))
        except (NotSettled, BadArgument):
            raise
        except BaseException:  # whoever waited has left, or did for too long: the peer may have done it, or yet do it
            if topic not in self._follows:
                self._given_up.add(topic)
                self._tasks.spawn(self._tell_given_up(topic))
            raise
        assert isinstance(answer, Subscribed)
        return answer

    def unfollow(self, topic: str) -> Coroutine[Any, Any, None]:
        """Follow ``topic`` no more, from now on. What is given tells the peer, unless it is followed again by then."""
        if topic in self._follows:
            del self._follows[topic]
            self._given_up.add(topic)
        return self._tell_given_up(topic)

    async def _tell_given_up(self, topic: str) -> None:
        async with self._gates.passed(topic):
            if topic not in self._given_up:
                return
            self._given_up.discard(topic)
            try:
                if self._wire is not None:
                    await self._wire.ask(lambda n: Unsubscribe(n, topic))
            except TocsinError as problem:
                log.info("the peer %s did not hear that %s is given up: %s", self.peer.name, topic, problem)

    async def publish(self, topic: str, payload: bytes) -> str:
        """Where the peer stamped it; NotSettled where it surely did not, Uncertain where nobody knows."""
        wire = await self._connected()
        try:
            answer = await wire.ask(lambda n: Publish(n, topic, msgspec.Raw(payload)))
        except (NotSettled, Uncertain):
            raise
        except Unavailable as problem:
            raise Uncertain("the publication", f"{problem}; it may have been published or not") from None
        assert isinstance(answer, Published)
        return answer.position

    async def resync(self) -> None:
        """Something is missing: connect anew, from where the hub stands."""
        if self._wire is not None:
            await self._wire.close()

    async def close(self) -> None:
        self._is_closed = True
        await self._tasks.stop()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._wire is not None:
            await self._wire.close()

    async def _connected(self) -> _Wire:
        async with self._connecting:
            if self._is_closed:
                raise NotSettled(f"the broker {self.peer.name!r} is not a peer any more")
            if self._wire is None or self._wire.is_over:
                self._wire = await self._open()
                self._wire.socket_task.add_done_callback(self._broke)
            return self._wire

    async def _open(self) -> _Wire:
        """Connect, log in, and take up what is followed; what the peer does not own any more is given back."""
        url = self.peer.url.replace("http", "ws", 1) + "/connect"
        try:
            socket = await connect(
                url, subprotocols=[Subprotocol(SUBPROTOCOL)], open_timeout=self._options.timeout_s, compression=None,
                max_size=self._options.max_message_bytes, proxy=None,
                ssl=(self._options.tls or True) if url.startswith("wss:") else None,
            )  # fmt: skip
        except (OSError, WebSocketException, TimeoutError) as problem:
            raise NotSettled(f"the broker {self.peer.name!r} is not reached: {str(problem) or 'timeout'}") from None
        wire = _Wire(socket, self._events, self._options.timeout_s)
        try:
            await wire.ask(lambda n: Login(n, token=self._token()))
            await asyncio.gather(*(self._take_up(wire, topic) for topic in list(self._follows)))
        except BaseException:
            await wire.close()
            raise
        refreshing = asyncio.get_running_loop().create_task(self._refresh(wire))
        wire.socket_task.add_done_callback(lambda _: refreshing.cancel())
        return wire

    async def _refresh(self, wire: _Wire) -> None:
        """Show newer tokens as long as the connection stands, for the peer closes it at the end of the last."""
        while True:
            await asyncio.sleep(self._options.refresh_s)
            token = self._token()
            try:
                if token is not None:
                    await wire.ask(partial(Refresh, token=token))
            except TocsinError as problem:
                log.info("the peer %s did not take a newer token: %s", self.peer.name, problem)

    async def _take_up(self, wire: _Wire, topic: str) -> None:
        try:
            await wire.ask(lambda n: Subscribe(n, topic, TopicTarget(topic), self._stands(topic)))
        except (NotSettled, BadArgument):
            self._follows.pop(topic, None)
            self._events.refused(topic)
        else:
            if topic not in self._follows:  # it was given up meanwhile
                await wire.ask(lambda n: Unsubscribe(n, topic))

    def _stands(self, topic: str) -> str | None:
        return self._events.position(topic_stream(topic)) or self._follows.get(topic)

    def _broke(self, _: asyncio.Task[None]) -> None:
        if not self._is_closed and self._follows and (self._keeper is None or self._keeper.done()):
            self._keeper = asyncio.get_running_loop().create_task(self._reconnect())

    async def _reconnect(self) -> None:
        backoff, told = Backoff(self._options.backoff_min_s, self._options.backoff_max_s), ""
        while self._follows and not self._is_closed:
            try:
                await self._connected()
                return
            except TocsinError as problem:
                if str(problem) != told:
                    log.info("following the peer %s waits: %s", self.peer.name, problem)
                told = str(problem)
                await backoff.pause()


class _Wire:
    """One life of a connection: requests and their answers, and a task that reads."""

    def __init__(self, socket: ClientConnection, events: PeerEvents, timeout_s: float) -> None:
        self._socket, self._events, self._timeout_s = socket, events, timeout_s
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[Answer]] = {}
        self._is_over = False
        self.socket_task = asyncio.get_running_loop().create_task(self._read())

    @property
    def is_over(self) -> bool:
        """Whether nothing can be sent any more; the socket may know it before its reader does."""
        return self._is_over or self._socket.state is not State.OPEN

    async def ask(self, request: Callable[[int], FromClient]) -> Answer:
        """Send, and wait for the answer; Unavailable where the connection ends first or it takes too long."""
        number = next(self._numbers)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            if self.is_over:
                raise NotSettled("the connection to the peer is over")
            await self._socket.send(encoded(request(number)), text=True)
            async with asyncio.timeout(self._timeout_s):  # wait_for loses a cancellation that comes with the answer
                return await answer
        except (OSError, WebSocketException, TimeoutError) as problem:
            raise Unavailable(f"the peer did not answer: {str(problem) or 'timeout'}") from None
        finally:
            self._asked.pop(number, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # known, though sending failed first

    async def close(self) -> None:
        self._is_over = True
        await self._socket.close()
        await asyncio.gather(self.socket_task, return_exceptions=True)

    async def _read(self) -> None:
        try:
            async for data in self._socket:
                self._take(from_broker(data))
        except (OSError, WebSocketException, BadArgument) as problem:
            log.info("the connection to a peer ended: %s", problem)
        finally:
            self._is_over = True
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_exception(Unavailable("the connection to the peer ended"))
            await self._socket.close()

    def _take(self, message: FromBroker) -> None:
        if isinstance(message, Notification | Gap):
            if not self._events.take(message):
                raise BadArgument("notification", "one that follows the last", message)
            return
        number = getattr(message, "request", None)
        answer = self._asked.get(number) if number is not None else None
        if answer is None or answer.done():
            return
        if isinstance(message, Failed):
            answer.set_exception(_problem(message))
        elif isinstance(message, Answer):
            answer.set_result(message)


def _problem(message: Failed) -> TocsinError:
    if message.code in ("bad-argument", "limit-exceeded"):
        return BadArgument("topic", "what its owner takes", message.detail)
    if message.code == Uncertain.code:  # it has handed the topic on, and asked who has it now
        return Uncertain("the request", message.detail)
    return NotSettled(f"the peer cannot do it now: {message.detail}")
