"""Making and ending the broker's subscriptions at the data cluster, many in a request.

What is asked for while a request is under way goes with the next one. A bulk request that the cluster refuses
is asked again one by one, so one bad argument harms only its own subscription; where the channel or the broker is not
known there, all have failed. Endings are tried until the cluster has heard them, and a subscription that is asked for
again waits for its ending first, so its position is a new one, but no longer than for one try: a cluster that is away
keeps nobody waiting. What may have been made though no answer came, or for
somebody who has gone, is ended too, unless somebody else waits for it: an ending beside his request could take away
what he is answered.

What an earlier life of the broker left (``is_left``) is not ended with one who asked for it and has gone: its users
are on their way back, and would find that nobody held it meanwhile. Nor is what is held here and only made again.

Every request to make has a number, greater than those before (``making``), and an ending names the last of them: one
that the cluster carries out late, when it was given up and asked again, takes nothing that was made since.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tocsin.broker.tasks import Tasks
from tocsin.broker.upstream.backoff import Backoff
from tocsin.broker.upstream.cluster import Arguments, ClusterClient, Made
from tocsin.errors import NotFound, TocsinError, Unavailable

BULK = 1000  # subscriptions in one request

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Wish:
    id: str
    arguments: Arguments
    made: asyncio.Future[Made]


class Attaching:
    def __init__(
        self, cluster: ClusterClient, broker: str, backoff: Backoff, is_left: Callable[[str], bool] = lambda id: False
    ) -> None:
        self._cluster, self._broker, self._backoff, self._is_left = cluster, broker, backoff, is_left
        self._making = time.time_ns() // 1_000_000  # so that a later life of the broker begins above
        self._wishes: dict[str, list[_Wish]] = {}
        self._unanswered: dict[str, list[_Wish]] = {}  # by id, those under way too
        self._tasks = Tasks("attaching")
        self._ending: dict[str, asyncio.Future[bool]] = {}  # each tells how the next try goes

    async def make(self, channel: str, id: str, arguments: Arguments) -> Made:
        """A subscription of this broker; Unavailable where the cluster cannot be asked now."""
        while id in self._ending:
            if not await asyncio.shield(self._ending[id]):
                raise Unavailable("the data cluster does not answer")
        wish = _Wish(id, arguments, asyncio.get_running_loop().create_future())
        self._unanswered.setdefault(id, []).append(wish)
        if channel in self._wishes:
            self._wishes[channel].append(wish)
        else:
            self._wishes[channel] = [wish]
            self._tasks.spawn(self._fulfil(channel))
        try:
            return await wish.made
        except asyncio.CancelledError:
            if not wish.made.cancelled():  # the answer came in the same step
                self.end([id])
            raise

    def heed(self, making: int) -> None:
        """This broker used the number: if the clock of an earlier life was ahead, this one goes on from there."""
        self._making = max(self._making, making)

    def is_awaited(self, id: str) -> bool:
        """Whether somebody waits for the subscription to be made."""
        return any(not wish.made.done() for wish in self._unanswered.get(id, ()))

    def end(self, ids: Iterable[str]) -> None:
        """End subscriptions, sooner or later; one that somebody waits for stays, and so does what is left."""
        was_idle = not self._ending
        for id in ids:
            if not self.is_awaited(id) and not self._is_left(id):
                self._ending.setdefault(id, asyncio.get_running_loop().create_future())
        if was_idle and self._ending:
            self._tasks.spawn(self._end_all())

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _fulfil(self, channel: str) -> None:
        """One request after the other until nothing is wished for."""
        await asyncio.sleep(0)  # what comes in the same step goes together
        while wishes := self._wishes.pop(channel):
            now, self._wishes[channel] = wishes[:BULK], wishes[BULK:]
            await self._ask(channel, now)

    async def _ask(self, channel: str, wishes: Sequence[_Wish]) -> None:
        wanted = [(wish.id, wish.arguments) for wish in wishes]
        self._making += 1
        try:
            made = await self._cluster.subscribe(self._broker, channel, wanted, self._making)
        except Unavailable as problem:
            self._fail(wishes, problem)
            self.end(wish.id for wish in wishes)  # they may have been made
        except TocsinError as problem:
            if len(wishes) == 1 or isinstance(problem, NotFound):
                self._fail(wishes, problem)
            else:
                for wish in wishes:
                    await self._ask(channel, [wish])
        except Exception:
            log.exception("asking the data cluster failed")
            self._fail(wishes, Unavailable("the broker failed to ask the data cluster"))
            self.end(wish.id for wish in wishes)
        else:
            self._give(wishes, made)

    def _give(self, wishes: Sequence[_Wish], made: Sequence[Made]) -> None:
        waiting = {wish.id for wish in wishes if not wish.made.done()}
        for wish, one in zip(wishes, made, strict=True):
            self.heed(one.making)
            self._answered(wish)
            if not wish.made.done():
                wish.made.set_result(one)
        self.end(wish.id for wish in wishes if wish.id not in waiting)  # whoever asked has gone

    def _fail(self, wishes: Sequence[_Wish], problem: TocsinError) -> None:
        for wish in wishes:
            self._answered(wish)
            if not wish.made.done():
                wish.made.set_exception(problem)

    def _answered(self, wish: _Wish) -> None:
        others = [one for one in self._unanswered.pop(wish.id) if one is not wish]
        if others:
            self._unanswered[wish.id] = others

    async def _end_all(self) -> None:
        while self._ending:
            ids = list(self._ending)[:BULK]
            try:
                await self._cluster.unsubscribe(ids, self._making)
            except Unavailable:
                await self._end_later()
                continue
            except TocsinError as problem:
                log.error("subscriptions could not be ended at the data cluster: %s", problem)
            except Exception:
                log.exception("ending subscriptions at the data cluster failed; trying again")
                await self._end_later()
                continue
            self._backoff.succeeded()
            for id in ids:
                self._ending.pop(id).set_result(True)

    async def _end_later(self) -> None:
        for id, tried in self._ending.items():
            self._ending[id] = asyncio.get_running_loop().create_future()
            tried.set_result(False)
        await self._backoff.pause()
