"""From what a client wants to what stands: checked, held, and with a known beginning.

Everything that has to be waited for comes first. Then, in one step, the caller answers and calls ``start``, so
that the answer tells exactly what follows it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tocsin.broker.follow import Follow
from tocsin.broker.ports import Page
from tocsin.broker.stream import Stream
from tocsin.broker.users import Subscription
from tocsin.errors import NotFound, TocsinError
from tocsin.protocol.messages import Gap, Refusal, Standing, Wanted

if TYPE_CHECKING:
    from tocsin.broker.session import Session

log = logging.getLogger(__name__)
_PAGES = 3  # of the past that are read before the answer, while they have nothing


@dataclass(slots=True)
class Stood:
    """``turned`` are streams that have never been where the client stands; of the ``unsure`` nobody could tell."""

    session: Session
    begun: dict[Stream, tuple[Follow, Page | None]] = field(default_factory=dict)
    turned: dict[Stream, Gap] = field(default_factory=dict)
    unsure: list[Stream] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    errors: list[TocsinError] = field(default_factory=list)

    def standing(self, subscription: Subscription) -> Standing:
        follow, page = self.begun.get(subscription.stream, (None, None))
        is_recovered = (page is None or page.gap is None) and subscription.stream not in self.turned
        position = follow.sent if follow else self.session.follows[subscription.stream].position
        return Standing(subscription.id, subscription.target, subscription.stream.name, position, is_recovered)

    def refuse(self, wanted: Wanted, error: TocsinError) -> None:
        self.errors.append(error)
        self.refused.append(Refusal(wanted.id, error.code, str(error)[:500]))

    def start(self) -> None:
        """Begin to send, after the answer. What was ended meanwhile is passed over."""
        core = self.session.core
        for stream, (follow, page) in self.begun.items():
            if self.is_current(follow):
                if stream in self.turned:
                    self.session.outlet.say(self.turned[stream])
                follow.start(core.holding.replay, page, core.settings.retry_pause)
        for stream in self.unsure:
            core.tasks.spawn(self._ask_again(self.begun[stream][0]))

    def is_current(self, follow: Follow) -> bool:
        return self.session.follows.get(follow.stream) is follow and not self.session.outlet.is_over

    def turn_back(self, follow: Follow) -> Gap:
        """The client goes on where its stream stands; so does whoever comes for its user without a position."""
        gap = follow.turn_back()
        for subscription in self.session.subscriptions.values():
            if subscription.stream is follow.stream:
                subscription.acked = min(subscription.acked, follow.sent)
        self.session.core.meters.gaps += 1
        return gap

    async def _ask_again(self, follow: Follow) -> None:
        """Find out, once somebody can tell, whether the client stands where its stream has never been."""
        core = self.session.core
        while self.is_current(follow) and follow.is_ahead:
            is_beyond = await _is_beyond(self.session, follow)
            if is_beyond is None:
                await asyncio.sleep(core.settings.retry_pause)
                continue
            if is_beyond and self.is_current(follow):
                self.session.outlet.say(self.turn_back(follow))
                follow.start(core.holding.replay, None, core.settings.retry_pause)
            return


async def stand_all(
    session: Session, wanted: Sequence[Wanted], positions: Mapping[str, str], *, is_trusted: bool
) -> Stood:
    """Make ``wanted`` stand. ``is_trusted`` where what the user holds already needs no check."""
    stood = Stood(session)
    user, principal = session.user, session.principal
    assert user is not None
    assert principal is not None
    found = await asyncio.gather(
        *(session.core.subscribing.subscribe(user, w, principal, is_trusted=is_trusted) for w in wanted),
        return_exceptions=True,
    )
    starts: dict[Stream, str] = {}
    for one, result in zip(wanted, found, strict=True):
        if isinstance(result, TocsinError):
            stood.refuse(one, result)
        elif isinstance(result, BaseException):
            raise result
        elif user.subscriptions.get(result.id) is not result:
            stood.refuse(one, NotFound("subscription", one.id))  # it was ended meanwhile
        else:
            session.subscriptions[result.id] = result
            position = one.position or positions.get(result.stream.name) or result.acked
            starts[result.stream] = min(position, starts.get(result.stream, position))
    _begin(session, stood, starts)
    await asyncio.gather(*(_look_back(stood, stream) for stream in stood.begun))
    return stood


def _begin(session: Session, stood: Stood, starts: Mapping[Stream, str]) -> None:
    """Follow each stream. Where the session is past a start already, it begins again there: the client drops echoes."""
    for stream, position in starts.items():
        known = session.follows.get(stream)
        if known is not None and known.position <= position:
            continue
        if known is not None:
            known.stop()
        follow = Follow(session.core.hub, stream, session.outlet, position)
        session.follows[stream] = follow
        stood.begun[stream] = (follow, None)


async def _look_back(stood: Stood, stream: Stream) -> None:
    """Read the first of the past that has something, so that the answer can say whether all of it is there."""
    follow, _ = stood.begun[stream]
    if follow.is_ahead and not stood.session.is_peer:
        await _look_ahead(stood, follow)
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


async def _look_ahead(stood: Stood, follow: Follow) -> None:
    """Find out whether the client is ahead of this broker alone, or stands where its stream has never been."""
    is_beyond = await _is_beyond(stood.session, follow)
    if is_beyond:
        stood.turned[follow.stream] = stood.turn_back(follow)
    elif is_beyond is None:
        stood.unsure.append(follow.stream)


async def _is_beyond(session: Session, follow: Follow) -> bool | None:
    """As upstream says; None where it cannot be told now."""
    try:
        return await session.core.holding.is_beyond(follow.stream, follow.cursor)
    except TocsinError as error:
        log.info("whether %s has been at %s cannot be told now: %s", follow.stream.name, follow.cursor, error)
        return None
