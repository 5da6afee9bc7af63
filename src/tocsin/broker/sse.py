"""``GET /events``: the same streams as server-sent events, for whoever has no WebSocket.

* The token comes in ``Authorization`` or as ``token=``, for a browser's EventSource sends no headers.
* ``subscribe=`` names a target as JSON and may be repeated; what the user holds already is followed too.
* Every event has an ``id`` that holds the positions of all streams, so ``Last-Event-ID`` (or ``last_event_id=``)
  resumes them all. It comes back as a header, whose length servers and proxies bound, so one that follows more than
  fits into ``sse_id_bytes`` is refused before anything is subscribed.
* A client of events says nothing, so what left for it counts as taken: a page that is loaded anew, and has no id, goes
  on behind it. That is noted at every heartbeat, at the end, and when another session of the user begins, not by event.
* A ``move`` event ends the stream; the client comes back, and is redirected to where its user belongs, a page with a
  word on where it is from (``referring.py``).
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs

import msgspec

from tocsin.broker.admission import Moved
from tocsin.broker.entries import Entry, body_of, frame_of
from tocsin.broker.handshake import Head, extended, response, without
from tocsin.broker.outlet import Outlet
from tocsin.broker.referring import REFERRAL, Visitor
from tocsin.broker.session import Session
from tocsin.errors import BadArgument, LimitExceeded, TocsinError
from tocsin.protocol.codec import encoded, from_broker
from tocsin.protocol.codes import GOING_AWAY, MOVED, Code, comes_back
from tocsin.protocol.messages import FromBroker, Gap, Login, Move, Wanted
from tocsin.protocol.targets import Target, target_key
from tocsin.tokens import bearer

if TYPE_CHECKING:
    from tocsin.broker.core import Core

log = logging.getLogger(__name__)
_STATUS = {"unauthenticated": 401, "forbidden": 403, "not-found": 404, "limit-exceeded": 429, "unavailable": 503}
_PLACE_BYTES = 48  # of a stream in an id, beside its name: what kind it is, its numbers, the position
_LINE_BYTES = 7_000  # of a query, so that the line that asks for it is taken by every server
_target = msgspec.json.Decoder(Target)
_positions = msgspec.json.Decoder(dict[str, str])


class EventStream(Outlet):
    __slots__ = ("_cors", "_head", "_is_begun", "_left", "_positions", "_spoke_at", "_task", "_visitor")

    def __init__(self, core: Core, head: Head, visitor: Visitor | None) -> None:
        super().__init__(core)
        self._head, self._visitor = head, visitor
        self._cors: Mapping[str, str] = visitor.cors if visitor else {}
        self._positions: dict[str, str] = {}  # as the last event's id says them
        self._left: dict[str, str] = {}  # as they were when nothing waited for the socket
        self._is_begun = False
        self._spoke_at = core.now()
        self._task: asyncio.Task[None] | None = None
        self.session = Session(core, self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=self.core.settings.write_buffer)
        self.core.opened(self)
        self._task = asyncio.get_running_loop().create_task(self._begin())

    def connection_lost(self, exc: Exception | None) -> None:
        self._over()
        self.core.closed(self)

    def data_received(self, data: bytes) -> None:
        """A client of events has nothing more to say."""

    # --- out ----------------------------------------------------------------------------------------------

    def encode(self, entries: Iterable[Entry]) -> bytes:
        self._spoke_at = self.core.now()
        return b"".join([self._event(e) for e in entries])

    def say(self, message: FromBroker) -> None:
        if not self._is_begun:
            self._is_begun = True
            retry_ms = round(self.core.settings.sse_retry * 1000)
            self.transport.write(_opening(self._cors) + f"retry: {retry_ms}\n\n".encode())
            for follow in self.session.follows.values():
                self._positions[follow.stream.name] = follow.sent
        if isinstance(message, Gap):
            # it leads back: where the client stood is no place of the stream, to be taken or told
            self._positions.pop(message.stream, None)
            self._left.pop(message.stream, None)
        self._control(encoded(message))
        if isinstance(message, Move):
            self.end(MOVED)

    def check_room(self, targets: Iterable[Target]) -> None:
        size, limit = _id_bytes(targets), self.core.settings.sse_id_bytes
        if size > limit:
            what = "bytes of an event's id, which holds a position for each stream (setting broker.sse_id_bytes)"
            raise LimitExceeded(what, limit, size)

    def end(self, code: Code) -> None:
        if self.is_over:
            return
        if self._is_begun:
            self.transport.write(_event("end", msgspec.json.encode({"code": code.number, "reason": code.name})))
        else:
            self._answer(503 if comes_back(code.number) else 409, code.name, code.means, {})
        self._finish()
        self.core.ended(code)
        self.transport.close()

    def note_taken(self) -> None:
        """What still waits in our own buffer has not left."""
        if self.transport.get_write_buffer_size() == 0:
            self._left = dict(self._positions)
        self.session.took(self._left)

    def due(self, now: float) -> float | None:
        """End what is too old, and say something where nothing was said for long, nor waits to be."""
        if self.is_over:
            return self._finished(now)
        self.note_taken()
        deadline, code = self.session.deadline()
        if now >= deadline:
            self.end(code)
            return self._closes_at
        if self._is_begun and self.is_ready and now >= self._spoke_at + self.core.settings.heartbeat:
            self._spoke_at = now
            self._write(b":\n\n")
        return min(deadline, self._spoke_at + self.core.settings.heartbeat)

    def _event(self, entry: Entry) -> bytes:
        """With the positions as they are when it leaves: a client that comes back has what left before it."""
        if entry.is_control:
            return self._said(entry.frame)
        self._positions[entry.stream] = entry.through
        is_gap = entry.is_shed or entry.model_bytes == 0
        return self._id() + _event("gap" if is_gap else "notification", body_of(frame_of(entry)))

    def _said(self, body: bytes) -> bytes:
        message = from_broker(body)
        if isinstance(message, Gap):
            self._positions[message.stream] = message.holes[-1].through
        return self._id() + _event(str(type(message).__struct_config__.tag), body)

    def _id(self) -> bytes:
        known = {s.name: self._positions[s.name] for s in self.session.follows if s.name in self._positions}
        return b"id: " + base64.urlsafe_b64encode(msgspec.json.encode(known)) + b"\n"

    # --- the request --------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        try:
            query = parse_qs(self._head.query)
            await self.session.login(self._login(query), self._resumed(query))
        except TocsinError as error:
            self._refuse(error)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("an event stream could not begin")
            self.end(GOING_AWAY)

    def _login(self, query: Mapping[str, list[str]]) -> Login:
        header = self._head.get("authorization")
        token = bearer(header) if header else _last(query, "token")
        targets = [_decoded(_target, "subscribe", text) for text in query.get("subscribe", [])]
        wanted = [Wanted(_id_of(target), target) for target in targets]
        return Login(0, token, _last(query, "ticket"), _last(query, "session"), wanted)

    def _resumed(self, query: Mapping[str, list[str]]) -> dict[str, str]:
        text = self._head.get("last-event-id") or _last(query, "last_event_id")
        if not text:
            return {}
        try:
            return _positions.decode(base64.urlsafe_b64decode(text))
        except (ValueError, msgspec.DecodeError):
            raise BadArgument("Last-Event-ID", "the id of an event of this stream", text) from None

    def _refuse(self, error: TocsinError) -> None:
        moved = error if isinstance(error, Moved) else None
        status = 307 if moved else _STATUS.get(error.code, 400)
        headers = {"Location": self._elsewhere(moved)} if moved else {}
        self._answer(status, error.code, str(error)[:1000], headers)
        self._finish()
        self.transport.close()

    def _answer(self, status: int, code: str, detail: str, headers: Mapping[str, str]) -> None:
        body = msgspec.json.encode({"type": f"urn:tocsin:{code}", "status": status, "detail": detail})
        self.transport.write(response(status, body, "application/problem+json", {**headers, **self._cors}))

    def _elsewhere(self, moved: Moved) -> str:
        """The same request of the same page at another broker, resuming from the same place."""
        query = without(self._head.query, REFERRAL)
        if last := self._head.get("last-event-id"):
            query = without(query, "last_event_id")
            if len(query) + len(last) < _LINE_BYTES:  # otherwise the header, which browsers send again, has to do
                query = extended(query, "last_event_id", last)
        if self._visitor is not None:
            query = self.core.referrals.refer(self._visitor, query, moved.broker)
        return f"{moved.url}/events" + (f"?{query}" if query else "")

    def _over(self) -> None:
        if not self.is_over:
            self.is_over = True
            if self._task is not None and self._task is not asyncio.current_task():
                self._task.cancel()
            self.note_taken()
            self.session.left()
            self._outbox = None
            self._wake()


def _event(kind: str, body: bytes) -> bytes:
    data = b"\ndata: ".join(body.splitlines() or [b""])
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def _opening(cors: Mapping[str, str]) -> bytes:
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "Connection": "close", **cors}
    return b"HTTP/1.1 200 OK\r\n" + b"".join([f"{k}: {v}\r\n".encode() for k, v in headers.items()]) + b"\r\n"


def _id_bytes(targets: Iterable[Target]) -> int:
    """How long an id may become: in base64, a name and a position for each stream."""
    names = {target_key(target): target.name for target in targets}.values()
    return (sum(len(msgspec.json.encode(name)) + _PLACE_BYTES for name in names) + 4) // 3 * 4


def _id_of(target: Target) -> str:
    """The same subscription for the same target, whenever the client comes back."""
    return "sse-" + blake2b(target_key(target).encode(), digest_size=12).hexdigest()


def _last(query: Mapping[str, list[str]], name: str) -> str | None:
    return query[name][-1] if name in query else None


def _decoded(decoder: msgspec.json.Decoder[Target], name: str, text: str) -> Target:
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
        raise BadArgument(name, "a target as JSON", str(problem)) from None
