"""A client's session, without input or output: events in, actions out; time and chance come from outside.

Rules kept here:

* A session holds subscriptions; connections (links) come and go below it. At most one link serves the
  session (``current``); at most one more is on its way to do so (``coming``), after a break or for a move.
* Every login names the subscriptions with the positions reached, so nothing that arrived is asked again
  and nothing that did not is left out; those that do not fit into one message are asked for right behind the
  welcome. What arrives on two links is taken once, by its position.
* Make before break: a move's destination serves only when it has welcomed us and answered our
  confirmation; until then the source does, and if the destination fails, nothing has happened. Whoever
  came with a ticket confirms.
* A request that was sent and lost its link fails as uncertain, as does one to which the broker itself got no
  answer; one that was not sent waits for a link.
  Subscribing and unsubscribing may be said twice, so they are.
* A subscription that a broker cannot serve for the moment is tried again: for ever where it goes on from a
  position, for ``subscribe_timeout`` where it is new.
* After a break the code says what to do (``tocsin.protocol.codes``); pauses are drawn between nothing
  and a bound that doubles at each failure, so that many clients do not come back at one moment.

| a link is  | and       | becomes                                                                      |
|------------|-----------|------------------------------------------------------------------------------|
| opening    | opened    | logging in                                                                   |
| logging in | welcomed  | confirming where it is a move's, else ready                                  |
| confirming | confirmed | ready, and the one that was ready becomes leaving                            |
| ready      | moved     | stays ready while another opens                                              |
| leaving    | quiet     | closed, as it is after ``linger``                                            |
| any        | closed    | gone: the session stays on the other link, or comes back by the code's range |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from tocsin.config import Client
from tocsin.errors import (
    BadArgument,
    BrokerRefused,
    SessionEnded,
    TocsinError,
    Unauthenticated,
    Uncertain,
)
from tocsin.protocol import client_actions as do
from tocsin.protocol import codes, messages
from tocsin.protocol.client_actions import Action
from tocsin.protocol.client_link import Asked, Link, Phase
from tocsin.protocol.client_requests import Make, Requests
from tocsin.protocol.client_subscriptions import PASSING, Subscriptions
from tocsin.protocol.codec import from_broker
from tocsin.protocol.coming_back import ComingBack
from tocsin.protocol.inbox import Item
from tocsin.protocol.targets import Target

NORMAL, ABNORMAL = 1000, 1006
_NOT_FORGOTTEN = "no broker has answered that the subscriptions have ended; they may have or not"
_EMPTY_LIST = len(',"subscriptions":[]')  # of a login, which leaves it out where it names nothing


class ClientSession:
    def __init__(
        self,
        settings: Client,
        rng: Random,
        *,
        session: str,
        url: str | None = None,
        has_coordinator: bool = False,
        can_renew: bool = False,
    ) -> None:
        self._settings, self._session = settings, session
        self._back = ComingBack(settings, rng, url, has_coordinator=has_coordinator, can_renew=can_renew)
        self._out: list[Action] = []
        self._requests = Requests(self._out, settings.max_requests)
        self._subscriptions = Subscriptions(settings, self._back, self._requests, self._out)
        self._links: dict[int, Link] = {}
        self._current: Link | None = None
        self._coming: Link | None = None
        self._is_closing = self._forgets = self._is_over = False
        self._error: TocsinError | None = None  # what ended it
        self._close_at: float | None = None
        self._renew_at: float | None = None
        self._ack_at: float | None = None
        self._link_numbers = 0
        self._handlers: dict[type, Callable[[float, Link, Any], None]] = {
            messages.Notification: self._on_notification,
            messages.Gap: self._on_gap,
            messages.Ended: lambda _, __, message: self._subscriptions.ended(message),
            messages.Welcome: self._on_welcome,
            messages.Subscribed: self._on_subscribed,
            messages.Move: self._on_move,
            messages.Failed: self._on_failed,
        }
        self.problem = ""  # why there is no connection
        self.not_forgotten: TocsinError | None = None  # why subscriptions that were to end with it may not have

    # --- what the application does ---------------------------------------------------------------------

    def start(self, now: float) -> list[Action]:
        self._back.at = now
        return self.tick(now)

    def subscribe(
        self, now: float, key: Any, subscription: str, target: Target, position: str | None = None
    ) -> list[Action]:
        """Answered with the Standing; then items can be taken."""
        self._check_open()
        self._requests.check_size(lambda n: messages.Subscribe(n, subscription, target, position))
        self._subscriptions.add(key, subscription, target, position, self._current)
        return self._actions()

    def unsubscribe(self, now: float, key: Any, subscription: str) -> list[Action]:
        """Nothing of it can be taken from now on; answered when the broker knows."""
        self._check_open()
        self._subscriptions.end(key, subscription, self._current)
        return self._actions()

    def request(self, now: float, key: Any, make: Make) -> list[Action]:
        """Publish, send records or list: ``make`` gets the number. Answered with the broker's message."""
        self._check_open()
        self._requests.enqueue(key, make, self._current)
        return self._actions()

    def renewed(self, now: float, token: str, lasts_s: float | None, key: Any = None) -> list[Action]:
        """Another token for what is connected, or about to be; later logins get theirs when they are opened."""
        self._renew_at = None if self._is_over else self._back.renew_at(now, lasts_s)
        for link in self._links.values():
            if link.phase in (Phase.READY, Phase.CONFIRMING):
                self._requests.send(link, Asked("request", key), lambda n: messages.Refresh(n, token))
                key = None
            elif link.phase is Phase.LOGGING_IN:
                link.newer_token = token
        if key is not None:
            self._out.append(do.Answer(key, None))
        return self._actions()

    def not_renewed(self, now: float) -> list[Action]:
        self._renew_at = None if self._is_over else now + self._back.pause_s()
        return self._actions()

    def take(self, now: float, subscription: str) -> Item | None:
        """The next item of a subscription. The application has it; the broker will be told so.

        Nothing from ``close`` on, when no broker could be told: it comes to whoever goes on.
        """
        item = None if self._is_closing else self._subscriptions.holdings.take(subscription)
        if item is not None and self._ack_at is None:
            self._ack_at = now + self._settings.ack_interval
        return item

    def close(self, now: float, *, forget: bool = False) -> list[Action]:
        """Say what was taken and leave; subscriptions stay for the user to come back to, unless ``forget``.

        ``not_forgotten`` says so where no broker has answered that it forgot them.
        """
        if self._is_over or self._is_closing:
            if forget and not self._forgets:
                self.not_forgotten = self._error or SessionEnded(NORMAL, "the session is closed")
            return self._actions()
        if forget:
            self._forgets, self.not_forgotten = True, Uncertain("the end of the subscriptions", _NOT_FORGOTTEN)
        self._is_closing = True
        if self._current is None:
            self._end(None)
        else:
            self._acknowledge()
            self._requests.send(self._current, Asked("logout"), lambda n: messages.Logout(n, forget))
            self._close_at = now + self._settings.linger
        return self._actions()

    @property
    def positions(self) -> Mapping[str, str]:
        return self._subscriptions.holdings.positions()

    # --- what happens around it -------------------------------------------------------------------------

    def located(self, now: float, url: str, ticket: str | None) -> list[Action]:
        if not self._is_over and self._coming is None and self._current is None:
            self._back.url = url
            self._open(now, url, ticket)
        return self._actions()

    def not_located(self, now: float, problem: str, *, final: TocsinError | None = None) -> list[Action]:
        """The coordinator did not answer; then the last broker is tried. Or it refused the user (``final``)."""
        self.problem = problem
        if self._is_over or self._coming or self._current:
            pass
        elif final and not (isinstance(final, Unauthenticated) and self._back.may_renew()):
            self._end(final)
        elif self._back.url is not None and not final:
            self._open(now, self._back.url, None)
        else:
            self._back.plan(now, self._back.pause_s(), asks=True)
        return self._actions()

    def opened(self, now: float, link: int, token: str | None, lasts_s: float | None = None) -> list[Action]:
        """The connection stands; ``lasts_s`` is how long the token does."""
        found = self._links.get(link)
        if found:
            self._renew_at = self._back.renew_at(now, lasts_s)
            found.phase, found.heard_at = Phase.LOGGING_IN, now
            login = (token, found.ticket, self._session)
            room = self._requests.room(lambda n: messages.Login(n, *login))
            named = self._subscriptions.named(None if room is None else room - _EMPTY_LIST)
            wanted = [one.held.wanted() for one in named.values()]
            self._requests.send(found, Asked("login", named), lambda n: messages.Login(n, *login, wanted))
        return self._actions()

    def received(self, now: float, link: int, data: bytes | str) -> list[Action]:
        found = self._links.get(link)
        if found:
            found.heard_at = now
            try:
                message = from_broker(data)
                self._handlers.get(type(message), self._on_answer)(now, found, message)
            except BadArgument as problem:
                self._drop(now, found, codes.BAD_MESSAGE.number, str(problem))
        return self._actions()

    def closed(self, now: float, link: int, code: int, reason: str = "") -> list[Action]:
        """The connection ended, or could not be made (code 1006)."""
        found = self._links.get(link)
        if found:
            self._gone(now, found, code, reason)
        return self._actions()

    def tick(self, now: float) -> list[Action]:
        """Do what is due. To be called at ``deadline``; being called too often is harmless."""
        if _is_due(self._close_at, now):
            self._end(None)
        if _is_due(self._back.at, now):
            self._come_back(now)
        if _is_due(self._renew_at, now):
            self._renew_at = None
            self._out.append(do.RenewToken())
        if _is_due(self._ack_at, now) and self._current:
            self._acknowledge()
        for link in list(self._links.values()):
            self._watch(now, link)
        if self._current:
            self._subscriptions.try_again(now, self._current)
        return self._actions()

    def deadline(self) -> float | None:
        """When ``tick`` has something to do, unless something else happens before."""
        times = [self._back.at, self._close_at, self._renew_at]
        times.extend(link.due_at(self._settings) for link in self._links.values())
        if self._current:
            times.append(self._ack_at)
            times.extend(self._subscriptions.due_at())
        return min((time for time in times if time is not None), default=None)

    # --- messages ------------------------------------------------------------------------------------------

    def _on_notification(self, now: float, link: Link, message: messages.Notification) -> None:
        self._out.extend(map(do.Ready, self._subscriptions.holdings.deliver(message, link.standing)))

    def _on_gap(self, now: float, link: Link, message: messages.Gap) -> None:
        self._out.extend(map(do.Ready, self._subscriptions.holdings.announce(message, link.standing)))

    def _on_welcome(self, now: float, link: Link, message: messages.Welcome) -> None:
        asked = self._requests.answered(link, message.request, "login")
        if link.is_move and self._current and any(refusal.code in PASSING for refusal in message.refused):
            self._drop(now, link, NORMAL, "the destination cannot serve every subscription now")
            return
        link.ping_s, link.ping_at, link.was_ready_at = message.ping_s, now + message.ping_s, now
        self._requests.max_bytes = message.max_message_bytes
        self._back.welcomed()
        self._subscriptions.stand(link, message.subscriptions, asked.key)
        for refusal in message.refused:
            self._subscriptions.refused(now, refusal.id, asked.key, BrokerRefused(refusal.code, refusal.detail))
        self._out.append(do.Connected(message.user, message.broker))
        if link.is_move:
            link.phase = Phase.CONFIRMING
            self._subscriptions.say_rest(link, asked.key)
        if link.newer_token is not None:
            newer, link.newer_token = link.newer_token, None
            self._requests.send(link, Asked("request"), lambda n: messages.Refresh(n, newer))
        if link.ticket is not None:
            self._requests.send(link, Asked("confirm"), messages.Confirm)
        if not link.is_move or self._current is None:
            self._promote(now, link)

    def _on_subscribed(self, now: float, link: Link, message: messages.Subscribed) -> None:
        asked = self._requests.answered(link, message.request, "subscribe")
        self._subscriptions.stand(link, [message.subscription], asked.key)
        self._let_go(link)

    def _on_move(self, now: float, link: Link, message: messages.Move) -> None:
        if link is not self._current or self._is_closing:
            return
        if self._coming:
            self._drop(now, self._coming, NORMAL, "a newer move")
        self._open(now, message.url, message.ticket, is_move=True)

    def _on_answer(self, now: float, link: Link, message: Any) -> None:
        asked = self._requests.answered(link, message.request)
        if asked.kind in ("login", "subscribe"):
            raise BadArgument("answer", f"that of a {asked.kind}", type(message).__name__)
        if asked.kind == "confirm" and link is self._coming:
            self._promote(now, link)
        elif asked.kind == "logout":
            self.not_forgotten = None
            self._end(None)
        elif asked.kind == "unsubscribe":
            self._subscriptions.unsubscribed(asked.key)
        elif asked.key is not None:
            self._out.append(do.Answer(asked.key, message))
        self._let_go(link)

    def _on_failed(self, now: float, link: Link, message: messages.Failed) -> None:
        if message.request is None:
            link.problem = message
            return
        asked = self._requests.answered(link, message.request)
        error = BrokerRefused(message.code, message.detail, retry_after_s=message.retry_after_s)
        is_moving = link is self._coming and link.is_move and self._current is not None
        if asked.kind == "login":
            link.problem = message
        elif asked.kind == "subscribe" and not is_moving:
            for subscription in asked.key:
                self._subscriptions.refused(now, subscription, asked.key, error)
        elif asked.kind == "unsubscribe":
            self._subscriptions.not_unsubscribed(now, asked.key, error)
        elif asked.kind == "logout":
            self.not_forgotten = self.not_forgotten and error
            self._end(None)
        elif asked.kind == "request" and asked.key is not None:
            is_uncertain = error.code == Uncertain.code
            self._out.append(do.Fail(asked.key, Uncertain("the request", error.detail) if is_uncertain else error))
        if is_moving:
            self._drop(now, link, NORMAL, message.detail)
        self._let_go(link)

    def _acknowledge(self) -> None:
        self._ack_at = None
        news = self._subscriptions.holdings.news()
        if news and self._current:
            self._requests.acknowledge(self._current, news)

    # --- links ------------------------------------------------------------------------------------------------

    def _open(self, now: float, url: str, ticket: str | None, *, is_move: bool = False) -> None:
        self._link_numbers += 1
        link = Link(self._link_numbers, url, ticket, is_move, now)
        self._coming = self._links[link.number] = link
        self._out.append(do.Open(link.number, url))

    def _promote(self, now: float, link: Link) -> None:
        """From now on ``link`` serves the session; what it does not know yet is said to it."""
        old, self._current, self._coming = self._current, link, None
        link.phase, self._back.url, self.problem = Phase.READY, link.url, ""
        self._subscriptions.say_all(link)
        self._requests.send_waiting(link)
        self._subscriptions.holdings.repeat_news()
        self._ack_at = now + self._settings.ack_interval
        if old:
            old.phase, old.since = Phase.LEAVING, now
            self._let_go(old)

    def _let_go(self, link: Link) -> None:
        if link.phase is Phase.LEAVING and link.is_quiet():
            self._forget(link, NORMAL)

    def _forget(self, link: Link, code: int) -> None:
        """Close a link and fail what was asked on it."""
        self._links.pop(link.number, None)
        self._out.append(do.Close(link.number, code))
        self._requests.lose(link)

    def _drop(self, now: float, link: Link, code: int, reason: str) -> None:
        self._out.append(do.Close(link.number, code))
        self._gone(now, link, ABNORMAL, reason)

    def _gone(self, now: float, link: Link, code: int, reason: str) -> None:
        self._links.pop(link.number, None)
        self._requests.lose(link)
        if link is self._current:
            self._current = None
        elif link is self._coming:
            self._coming = None
        else:
            return
        if self._is_closing:
            if self._current is None:
                self._end(None)
        elif self._current is None and not self._may_come_back(link, code):
            self._end(SessionEnded(code, _detail(link, code, reason)))
        elif self._current is None and self._coming is None:
            self._lost(now, link, code, reason)
        elif self._coming and self._coming.phase is Phase.CONFIRMING:
            self._promote(now, self._coming)

    def _may_come_back(self, link: Link, code: int) -> bool:
        """Whether another try may succeed: by the code, or with another token than the one that was refused.

        Or on the link that is under way: it may be the newer connection itself that replaced this one.
        """
        has_newer = code == codes.BAD_TOKEN.number and link.newer_token is not None
        is_ours = code == codes.REPLACED.number and self._coming is not None
        return codes.comes_back(code) or has_newer or is_ours or self._back.may_renew(code)

    def _lost(self, now: float, link: Link, code: int, reason: str) -> None:
        self.problem = _detail(link, code, reason)
        self._out.append(do.Disconnected(self.problem))
        self._back.plan_after(now, link, code)

    def _come_back(self, now: float) -> None:
        self._back.at = None
        if self._back.asks or self._back.url is None:
            self._out.append(do.Locate())
        else:
            self._open(now, self._back.url, None)

    def _watch(self, now: float, link: Link) -> None:
        """Ping a link, or give it up where it takes too long."""
        if not _is_due(link.due_at(self._settings), now):
            return
        if link.phase is Phase.LEAVING:
            self._forget(link, NORMAL)
        elif link.phase is not Phase.READY:
            self._drop(now, link, NORMAL, f"no login at {link.url} within {self._settings.login_timeout:g} s")
        elif now >= link.silent_at(self._settings):
            self._drop(now, link, codes.SILENT.number, f"nothing came from {link.url} for too long")
        else:
            link.ping_at = now + link.ping_s
            self._requests.send(link, Asked("ping"), messages.Ping)

    # --- the end ---------------------------------------------------------------------------------------------------

    def _end(self, error: TocsinError | None) -> None:
        if self._is_over:
            return
        self._is_over, self._error, self._current, self._coming = True, error, None, None
        for link in list(self._links.values()):
            self._forget(link, NORMAL)
        over = error or SessionEnded(NORMAL, "the application closed it")
        keys = [*self._subscriptions.keys(), *self._requests.give_up()]
        self._out.extend(do.Fail(key, over) for key in keys if key is not None)
        self._back.at = self._close_at = self._renew_at = self._ack_at = None
        self._out.append(do.End(error))

    def _check_open(self) -> None:
        if self._error is not None:
            raise self._error.with_traceback(None)
        if self._is_over or self._is_closing:
            raise SessionEnded(NORMAL, "the session is closed")

    def _actions(self) -> list[Action]:
        out = self._out.copy()
        self._out.clear()
        return out


def _is_due(time: float | None, now: float) -> bool:
    return time is not None and time <= now


def _detail(link: Link, code: int, reason: str) -> str:
    """The best account of why a link ended."""
    if link.problem:
        return link.problem.detail
    means = next((known.means for known in codes.ALL if known.number == code), "")
    return reason or means or f"the connection to {link.url} broke"
