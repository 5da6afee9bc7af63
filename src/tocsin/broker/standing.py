"""From what a client wants to what stands: checked, held, and with a known beginning.

Everything that has to be waited for comes first. Then, in one step, the caller answers and calls ``start``, so
that the answer tells exactly what follows it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tocsin.broker.follow import Follow
from tocsin.broker.ports import Page
from tocsin.broker.stream import Stream
from tocsin.broker.users import Subscription
from tocsin.errors import NotFound, TocsinError
from tocsin.protocol.messages import AHEAD, Gap, Hole, Refusal, Standing, Wanted

if TYPE_CHECKING:
    from tocsin.broker.session import Session

log = logging.getLogger(__name__)
_PAGES = 3  # of the past that are read before the answer, while they have nothing


@dataclass(slots=True)
class Stood:
    """``starts`` are where the client's subscriptions stand, by id; ``furthest`` is the last of them on each stream.

    ``begun`` are the ways that the answer begins; one that the session is on meanwhile ends where another begins.
    ``turned`` are streams that have never been as far as that; of the ``unsure`` nobody could tell.
    """

    session: Session
    starts: dict[str, str] = field(default_factory=dict)
    furthest: dict[Stream, str] = field(default_factory=dict)
    begun: dict[Stream, tuple[Follow, Page | None]] = field(default_factory=dict)
    turned: list[Stream] = field(default_factory=list)
    unsure: list[Stream] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    errors: list[TocsinError] = field(default_factory=list)

    def standing(self, subscription: Subscription) -> Standing:
        stream = subscription.stream
        follow, page = self.begun.get(stream) or (self.session.follows[stream], None)
        is_turned = stream in self.turned and self.starts.get(subscription.id, "") > follow.position
        is_recovered = (page is None or page.gap is None) and not is_turned
        return Standing(subscription.id, subscription.target, stream.name, follow.position, is_recovered)

    def refuse(self, wanted: Wanted, error: TocsinError) -> None:
        self.errors.append(error)
        self.refused.append(Refusal(wanted.id, error.code, str(error)[:500]))

    def start(self) -> None:
        """Begin to send, after the answer. What was ended meanwhile is passed over."""
        for stream in self.turned:
            self._tell_ahead(stream)
        for follow, page in self.begun.values():
            if self.following(follow.stream) is follow:
                self._start(follow, page)
        for stream in self.unsure:
            self.session.core.tasks.spawn(self._ask_again(stream))

    def following(self, stream: Stream) -> Follow | None:
        return None if self.session.outlet.is_over else self.session.follows.get(stream)

    def turn_back(self, follow: Follow) -> bool:
        """Whether ``follow`` itself was where its stream never was, and has to be started where that is.

        Whoever comes for the user without a position goes on there, too.
        """
        stream, is_ahead, user = follow.stream, follow.is_ahead, self.session.user
        assert user is not None
        if is_ahead:
            follow.turn_back()
        for subscription in self.session.subscriptions.values():
            if subscription.stream is stream and subscription.acked > stream.position:
                self.session.core.subscribing.put_back(user, subscription)
        self.session.core.meters.gaps += 1
        return is_ahead

    def take_over(self) -> None:
        """Go on by what was begun, just before the answer.

        What waits for the tick goes out first: others of the session may stand before it. To what the answer is about
        it is nothing yet, and would be a hole right after it.
        """
        for stream, (follow, _) in self.begun.items():
            known = self.following(stream)
            if known is not None and known is not follow:
                self.session.core.hub.flush()
                known.stop()
                self.session.follows[stream] = follow

    def _start(self, follow: Follow, page: Page | None = None) -> None:
        core = self.session.core
        follow.start(core.holding.replay, page, core.settings.retry_pause)

    def _tell_ahead(self, stream: Stream) -> None:
        """Lead whoever stands beyond back to where the session is, after what goes out up to there."""
        follow = self.following(stream)
        if follow is not None:
            self.session.core.hub.flush()
            hole = Hole(self.furthest[stream], follow.position, None)
            self.session.outlet.say(Gap(stream.name, [hole], AHEAD))

    async def _ask_again(self, stream: Stream) -> None:
        """Find out, once somebody can tell, whether the client stands where its stream has never been."""
        position = self.furthest[stream]
        while self.following(stream) and position > stream.position:
            is_beyond = await _is_beyond(self.session, stream, position)
            if is_beyond is None:
                await asyncio.sleep(self.session.core.settings.retry_pause)
                continue
            follow = self.following(stream)
            if is_beyond and follow is not None:
                was_ahead = self.turn_back(follow)
                self._tell_ahead(stream)
                if was_ahead:
                    self._start(follow)
            return


async def stand_all(
    session: Session,
    wanted: Sequence[Wanted],
    positions: Mapping[str, str],
    *,
    is_trusted: bool,
    is_said: bool = False,
    unasked: Collection[str] = (),
) -> Stood:
    """Make ``wanted`` stand. ``is_trusted`` where what the user holds already needs no check.

    Where it ``is_said`` by the client, and no login that brings what it holds, the coordinator hears it in any case.
    ``unasked`` are those that the user holds and the client did not name: one that ends meanwhile is not made again.
    """
    stood = Stood(session)
    user, principal = session.user, session.principal
    assert user is not None
    assert principal is not None
    subscribe = partial(session.core.subscribing.subscribe, is_trusted=is_trusted, is_said=is_said)
    found = await asyncio.gather(
        *(subscribe(user, w, principal, may_make=w.id not in unasked) for w in wanted), return_exceptions=True
    )
    starts: dict[Stream, str] = {}
    for one, result in zip(wanted, found, strict=True):
        if isinstance(result, BaseException) and not isinstance(result, TocsinError):
            raise result
        if one.id in unasked and not user.holds(one):
            continue  # it was ended meanwhile, and the client did not ask for it
        if isinstance(result, TocsinError):
            stood.refuse(one, result)
        elif user.subscriptions.get(result.id) is not result:
            stood.refuse(one, NotFound("subscription", one.id))  # it was ended meanwhile
        else:
            session.subscriptions[result.id] = result
            position = one.position or positions.get(result.stream.name) or result.acked
            stood.starts[result.id] = position
            starts[result.stream] = min(position, starts.get(result.stream, position))
            stood.furthest[result.stream] = max(position, stood.furthest.get(result.stream, position))
    _begin(stood, starts)
    await asyncio.gather(*(_look_around(stood, stream) for stream in starts))
    _begin(stood, {stream: position for stream, position in starts.items() if stood.following(stream)})
    stood.take_over()
    return stood


def _begin(stood: Stood, starts: Mapping[Stream, str]) -> None:
    """Follow each stream. Where the session is past a start already, it begins again there: the client drops echoes.

    Asked again just before the answer, for what the session follows goes on meanwhile: what it is sent before the
    answer, the client does not take for a subscription that it knows nothing of.
    """
    session = stood.session
    for stream, position in starts.items():
        known = session.follows.get(stream)
        if stream in stood.begun or (known is not None and known.position <= position):
            continue
        follow = Follow(session.core.hub, stream, session.outlet, position)
        stood.begun[stream] = (follow, None)
        session.follows.setdefault(stream, follow)


async def _look_around(stood: Stood, stream: Stream) -> None:
    if stood.furthest[stream] > stream.position and not stood.session.is_peer and stood.following(stream):
        await _look_ahead(stood, stream)
    if stream in stood.begun:
        await _look_back(stood, stream)


async def _look_back(stood: Stood, stream: Stream) -> None:
    """Read the first of the past that has something, so that the answer can say whether all of it is there."""
    follow, _ = stood.begun[stream]
    stands = follow.sent
    for _ in range(_PAGES):
        if not follow.needs_page:
            return
        page, before = await follow.page(stood.session.core.holding.replay), follow.cursor
        if page is not None and not follow.skip(page):
            if page.gap is not None:
                follow.sent = stands  # who is told of a gap goes forward by that alone
            stood.begun[stream] = (follow, page)
            return
        if follow.cursor == before:  # an execution that still runs: nobody waits for it here
            return


async def _look_ahead(stood: Stood, stream: Stream) -> None:
    """Find out whether the client is ahead of this broker alone, or stands where its stream has never been."""
    is_beyond = await _is_beyond(stood.session, stream, stood.furthest[stream])
    if is_beyond is None:
        stood.unsure.append(stream)
    follow = stood.following(stream)
    if is_beyond and follow is not None:
        stood.turned.append(stream)
        if stood.turn_back(follow):
            stood.begun[stream] = (follow, None)


async def _is_beyond(session: Session, stream: Stream, position: str) -> bool | None:
    """As upstream says; None where it cannot be told now."""
    try:
        return await session.core.holding.is_beyond(stream, position)
    except TocsinError as error:
        log.info("whether %s has been at %s cannot be told now: %s", stream.name, position, error)
        return None
