"""A subscriber with a real connection, who follows moves: the protocol of ``tocsin.client``, without its comfort.

It keeps what a client has to keep: its subscriptions, and the position of each stream, by which it takes everything
once. Make before break: the old connection ends when the new broker has answered the confirmation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from tocsin.client.wishes import channel, default_id
from tocsin.errors import TocsinError, Unavailable
from tocsin.live.behind import behind_bytes
from tocsin.live.link import Link
from tocsin.protocol import messages
from tocsin.protocol.codec import encoded, from_broker
from tocsin.protocol.coordination import Placement
from tocsin.protocol.targets import Target
from tocsin.scenarios.city import Intent

ANSWER_S = 30.0
AGAIN_S = 0.5
FRAME = 4  # bytes before the body of a broker's frame, of usual length

Place = Callable[[str], Awaitable[Placement]]


@dataclass(frozen=True, slots=True)
class Handover:
    """One migration as its subscriber saw it: from the ``move`` to the answered confirmation.

    ``behind_bytes`` is what coordinator and brokers told each other for it.
    """

    user: str
    seconds: float
    bytes: int
    behind_bytes: int
    subscriptions: int


class Person:
    """``place`` asks the coordinator. ``handovers`` is shared by all."""

    def __init__(self, name: str, token: str, place: Place, handovers: list[Handover]) -> None:
        self.name, self._token, self._place, self._handovers = name, token, place, handovers
        self.wants: dict[str, Target] = {}
        self.positions: dict[str, str] = {}
        self._streams: dict[str, str] = {}
        self.notifications = self.payload_bytes = self.holes = self.gaps = self.breaks = 0
        self.problems: list[str] = []
        self._link: Link | None = None
        self._number = self._lives = 0
        self._answers: dict[tuple[Link, int], asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_there(self) -> bool:
        return self._link is not None

    @property
    def standing(self) -> dict[str, str]:
        """Streams by subscription."""
        return {id: stream for id, stream in self._streams.items() if id in self.wants}

    # --- what it does ----------------------------------------------------------------------------------------

    async def arrive(self) -> None:
        self._lives += 1
        placement = await self._place(self.name)
        link = await Link.open(placement.url, self._heard, self._lost)
        await self._log_in(link, placement.ticket)
        self._link = link

    async def subscribe(self, intent: Intent) -> None:
        target = channel(intent.channel, **intent.args)
        id = default_id(target)
        self.wants[id] = target
        if self._link is not None:
            answer = await self._ask(self._link, lambda n: messages.Subscribe(n, id, target))
            self._stands(answer.subscription)

    async def unsubscribe(self, intent: Intent) -> None:
        id = default_id(channel(intent.channel, **intent.args))
        self.wants.pop(id, None)
        if self._link is not None:
            await self._ask(self._link, lambda n: messages.Unsubscribe(n, id))

    async def leave(self) -> None:
        """Subscriptions stay, to come back to."""
        link = self._gone()
        if link is not None:
            await self._ask(link, messages.Logout)
            link.close()

    def go(self) -> None:
        """Without a word."""
        link = self._gone()
        if link is not None:
            link.close()

    def _gone(self) -> Link | None:
        """The link that there was; whoever is coming back need not any more."""
        link, self._link = self._link, None
        self._lives += 1
        return link

    def acknowledge(self) -> None:
        """Tell the broker what was taken, which also shows that we live."""
        if self._link is not None:
            self._link.send(encoded(messages.Ack(dict(self.positions))))

    # --- what it hears ---------------------------------------------------------------------------------------

    def _heard(self, link: Link, body: bytes) -> None:
        message = from_broker(body)
        if isinstance(message, messages.Notification):
            self._take(message)
        elif isinstance(message, messages.Gap):
            self.gaps += 1
            self._reached(message.stream, message.holes[-1].through)
        elif isinstance(message, messages.Move):
            self._start(self._follow(link, message, len(body) + FRAME))
        elif isinstance(message, messages.Ended):
            self.problems.append(f"{message.id}: {message.detail}")
        elif message.request is not None:
            self._answered(link, message.request, message)

    def _take(self, message: messages.Notification) -> None:
        mine = self.positions.get(message.stream, "")
        if message.through <= mine:
            return
        self.holes += bool(mine) and message.after > mine
        self.positions[message.stream] = message.through
        self.notifications += 1
        self.payload_bytes += len(bytes(message.payload))

    def _reached(self, stream: str, position: str) -> None:
        self.positions[stream] = max(position, self.positions.get(stream, ""))

    def _stands(self, standing: messages.Standing) -> None:
        self._streams[standing.id] = standing.stream
        self._reached(standing.stream, standing.position)

    async def _follow(self, source: Link, move: messages.Move, cost: int) -> None:
        """Go where the broker sends us; where that fails, nothing has happened."""
        began, behind = time.perf_counter(), behind_bytes(self.name, move, self._wanted())
        link = await Link.open(move.url, self._heard, self._lost)
        try:
            cost += link.handshake_bytes + await self._log_in(link, move.ticket)
        except BaseException:
            link.close()
            raise
        if self._link is source:
            self._link = link
            self._handovers.append(Handover(self.name, time.perf_counter() - began, cost, behind, len(self.wants)))
            source.close()
        else:
            link.close()

    async def _log_in(self, link: Link, ticket: str) -> int:
        """Log in with all that we hold, and confirm; the bytes of both."""
        session, wanted = f"{self.name}-{self._lives}", self._wanted()
        login = messages.Login(0, self._token, ticket, session, wanted)
        welcome = await self._ask(link, lambda n: msgspec.structs.replace(login, request=n))
        for standing in welcome.subscriptions:
            self._stands(standing)
        self.problems += [f"{refused.id}: {refused.detail}" for refused in welcome.refused]
        done = await self._ask(link, messages.Confirm)
        said = (login, messages.Confirm(0), welcome, done)
        return sum(len(encoded(message)) + FRAME for message in said) + 2 * FRAME  # masks of ours

    def _wanted(self) -> list[messages.Wanted]:
        reached = {id: self.positions.get(stream) for id, stream in self._streams.items()}
        return [messages.Wanted(id, target, reached.get(id)) for id, target in self.wants.items()]

    def _lost(self, link: Link) -> None:
        """Come back, if nobody else serves us."""
        for asked in [key for key in self._answers if key[0] is link]:
            answer = self._answers.pop(asked)
            if not answer.done():
                answer.set_exception(Unavailable("the connection broke"))
        if link is self._link:
            self._link = None
            self.breaks += 1
            self._start(self._come_back())

    async def _come_back(self) -> None:
        """Until it succeeds: whoever stayed away would be missing from the loads."""
        life = self._lives
        while self._link is None and self._lives == life:
            await asyncio.sleep(AGAIN_S)
            try:
                await self.arrive()
            except (TocsinError, TimeoutError) as problem:
                self.problems.append(str(problem) or type(problem).__name__)
                life = self._lives

    # --- asking ------------------------------------------------------------------------------------------------

    async def _ask(self, link: Link, make: Callable[[int], Any]) -> Any:
        self._number += 1
        answer = self._answers[link, self._number] = asyncio.get_running_loop().create_future()
        key = link, self._number
        link.send(encoded(make(self._number)))
        try:
            async with asyncio.timeout(ANSWER_S):
                return await answer
        finally:
            self._answers.pop(key, None)

    def _answered(self, link: Link, number: int, message: Any) -> None:
        answer = self._answers.pop((link, number), None)
        if answer is None or answer.done():
            return
        if isinstance(message, messages.Failed):
            answer.set_exception(Unavailable(f"{message.code}: {message.detail}"))
        else:
            answer.set_result(message)

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(self._told(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _told(self, work: Any) -> None:
        try:
            await work
        except (TocsinError, TimeoutError) as problem:
            self.problems.append(str(problem) or type(problem).__name__)
