"""The subscriptions of a client's session on their way: asked for, standing, refused, tried again, ended.

Subscribing and unsubscribing may be said twice, so whatever a link does not know yet is said to it when it begins to
serve. A refusal that may pass is followed by another try; any other is the application's concern.

An answer counts for the subscription that was asked for, not for a later one with its id, and says what follows the
position that was named to the link. One that stood elsewhere meanwhile is told to the link again, with where it stands;
until then nothing is taken for it from there, since the broker may have begun behind it.

An end counts when a broker has answered it, and is tried again as a new subscription is. What is subscribed under that
id before, no login names: it is asked for behind the end, where both are said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from tocsin.config import Client
from tocsin.errors import BrokerRefused
from tocsin.protocol import client_actions as do
from tocsin.protocol import messages
from tocsin.protocol.client_actions import Action
from tocsin.protocol.client_link import Asked, Leaving, Link, Named, Phase
from tocsin.protocol.client_requests import Requests
from tocsin.protocol.coming_back import ComingBack
from tocsin.protocol.holdings import Held, Holdings
from tocsin.protocol.targets import Target

PASSING = frozenset({"unavailable", "limit-exceeded", "internal"})  # refusals that another try may overcome


class Subscriptions:
    """``out`` takes the actions."""

    def __init__(self, settings: Client, back: ComingBack, requests: Requests, out: list[Action]) -> None:
        self._settings, self._back, self._requests, self._out = settings, back, requests, out
        self.holdings = Holdings(settings.queue_items, settings.queue_bytes)
        self._leaving: dict[str, Leaving] = {}
        self._retrying: set[str] = set()  # that a broker could not serve for the moment

    def add(self, key: Any, subscription: str, target: Target, position: str | None, link: Link | None) -> None:
        held = self.holdings.add(subscription, target, position, key)
        leaving = self._leaving.get(subscription)
        if link is not None:
            if leaving is not None and leaving.retry_at is not None:
                self._ask_end(link, leaving)
            self._ask(link, held)

    def end(self, key: Any, subscription: str, link: Link | None) -> None:
        held = self.holdings.remove(subscription)
        if held.key is not None:
            self._out.append(do.Fail(held.key, BrokerRefused("ended", "the application ended the subscription")))
        before = self._leaving.get(subscription)
        leaving = self._leaving[subscription] = Leaving(subscription, (*(before.keys if before else ()), key))
        if link is not None:
            self._ask_end(link, leaving)

    def say_all(self, link: Link) -> None:
        """Say to a link that begins to serve what it does not know yet."""
        for leaving in self._leaving.values():
            self._ask_end(link, leaving)
        self.say_rest(link, ())

    def say_rest(self, link: Link, named: Collection[str]) -> None:
        """Ask for what does not stand there and was not ``named`` to it; what is to end first waits until it serves."""
        passed = {*named, *(self._leaving if link.phase is not Phase.READY else ())}
        for held in self.holdings:
            if held not in link.standing and held.retry_at is None and held.id not in passed:
                self._ask(link, held)

    def named(self, room_bytes: int | None) -> dict[str, Named]:
        """What a login names: as much as there is room for."""
        found = {}
        for held in self.holdings:
            if held.retry_at is not None or held.id in self._leaving:
                continue
            if room_bytes is not None:
                room_bytes -= len(msgspec.json.encode(held.wanted())) + 1
                if room_bytes < 0:
                    break
            found[held.id] = Named.now(held)
        return found

    def stand(self, link: Link, standings: Iterable[messages.Standing], asked: Mapping[str, Named]) -> None:
        """What was ``asked`` stands there. What was not may be the user's, at another position than ours."""
        for standing in standings:
            named = asked.get(standing.id)
            if named is not None and self.holdings.find(standing.id) is named.held:
                self._stand(link, named, standing)

    def refused(self, now: float, subscription: str, asked: Mapping[str, Named], error: BrokerRefused) -> None:
        """Tried again where that may help; otherwise it is the application's concern."""
        held = self.holdings.find(subscription)
        if held is None or subscription not in asked or asked[subscription].held is not held:
            return
        if self._may_stand_later(now, held, error.code):
            held.retry_at = now + (error.retry_after_s or self._back.drawn_s(held.refusals))
            self._retrying.add(subscription)
        elif held.key is None:
            self._stop(held, error)
        else:
            self.holdings.remove(subscription)
            self._out.append(do.Fail(held.key, error))

    def ended(self, message: messages.Ended) -> None:
        """One that was asked for anew has its answer still to come, and that counts."""
        held = self.holdings.find(message.id)
        if held is not None and held.key is None:
            self._stop(held, BrokerRefused(message.code, message.detail))

    def not_unsubscribed(self, now: float, leaving: Leaving, error: BrokerRefused) -> None:
        """Tried again where that may help, unless it was subscribed again: that would be ended with it."""
        if self._leaving.get(leaving.id) is not leaving:
            return
        leaving.refusals += 1
        leaving.refused_at = now if leaving.refused_at is None else leaving.refused_at
        may_help = error.code in PASSING and now < leaving.refused_at + self._settings.subscribe_timeout
        if may_help and leaving.id not in self.holdings:
            leaving.retry_at = now + (error.retry_after_s or self._back.drawn_s(leaving.refusals))
        else:
            self.unsubscribed(leaving, error)

    def unsubscribed(self, leaving: Leaving, error: BrokerRefused | None = None) -> None:
        """The broker has ended it, or has not; one that it does not know is ended, too."""
        if self._leaving.get(leaving.id) is not leaving:
            return
        del self._leaving[leaving.id]
        if error is None or error.code == "not-found":
            self._out.extend(do.Answer(key, None) for key in leaving.keys)
        else:
            self._out.extend(do.Fail(key, error) for key in leaving.keys)

    def try_again(self, now: float, link: Link) -> None:
        for held in self._retried():
            if held.retry_at is not None and held.retry_at <= now:
                held.retry_at = None
                self._ask(link, held)
        for leaving in self._leaving.values():
            if leaving.retry_at is not None and leaving.retry_at <= now:
                self._ask_end(link, leaving)
        self._retrying = {held.id for held in self._retried()}

    def due_at(self) -> list[float | None]:
        """When refused ones are tried again, and ends that were."""
        return [*(held.retry_at for held in self._retried()), *(one.retry_at for one in self._leaving.values())]

    def keys(self) -> list[Any]:
        """The application's, of what has no answer yet."""
        return [*(held.key for held in self.holdings), *(key for one in self._leaving.values() for key in one.keys)]

    def _stand(self, link: Link, named: Named, standing: messages.Standing) -> None:
        held = named.held
        if not named.counts:
            if link.phase is Phase.READY:
                self._ask(link, held)
            return
        self.holdings.stand(held, standing)
        link.standing.add(held)
        if held.key is not None:
            held.key, key = None, held.key
            self._out.append(do.Answer(key, standing))
        if len(held.inbox):
            self._out.append(do.Ready(held.id))

    def _stop(self, held: Held, error: BrokerRefused) -> None:
        self.holdings.remove(held.id)
        self._out.append(do.Stop(held.id, error, held.inbox.take_all()))

    def _may_stand_later(self, now: float, held: Held, code: str) -> bool:
        """One that goes on is tried for ever; a new one where a part of the system is away, and for a while."""
        since = held.refused(now)
        if held.goes_on:
            return code in PASSING
        return code == "unavailable" and now < since + self._settings.subscribe_timeout

    def _retried(self) -> list[Held]:
        found = (self.holdings.find(subscription) for subscription in self._retrying)
        return [held for held in found if held and held.retry_at is not None]

    def _ask(self, link: Link, held: Held) -> None:
        wanted = held.wanted()
        self._requests.send(
            link,
            Asked("subscribe", {held.id: Named.now(held)}),
            lambda n: messages.Subscribe(n, wanted.id, wanted.target, wanted.position),
        )

    def _ask_end(self, link: Link, leaving: Leaving) -> None:
        leaving.retry_at = None
        self._requests.send(link, Asked("unsubscribe", leaving), lambda n: messages.Unsubscribe(n, leaving.id))
