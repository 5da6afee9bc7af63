"""What the broker's core, its upstreams and its link to the coordinator ask of each other.

::

    upstreams  --deliver, gap, end-->  Delivery (the hub)   --frames-->  sessions
    upstreams  <--attach, replay, publish, records--   the core
    Directory  <--where, keep, drop, tell--            the core
    Directory  --adopt, send, release, ask-->          Residents (the core)

Everything runs in one event loop; what is not ``async`` here returns at once and never calls back into
its caller. Errors are those of ``tocsin.errors``: Refused, BadArgument and NotFound are told to the client as they
are, Unavailable means "try again".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tocsin.protocol.coordination import BrokerInfo, Holding, Load, Placement
from tocsin.protocol.messages import Gap, Hole, Wanted
from tocsin.protocol.targets import Target
from tocsin.tokens import Principal

Item = tuple[str, bytes]
"""A notification on its way in: its position, and its payload as JSON."""


@dataclass(frozen=True, slots=True)
class Attached:
    """The stream that answers a target, and where live begins: everything after ``position`` is delivered."""

    stream: str
    position: str


@dataclass(frozen=True, slots=True)
class Page:
    """A piece of a stream's past, complete from the position that was asked up to ``through``.

    ``gap`` names what in between is gone for good; its holes and the items are both in order. ``is_end``
    says that the asked range is exhausted.
    """

    items: Sequence[Item]
    through: str
    is_end: bool
    gap: Gap | None = None


class Upstream(Protocol):
    """Where the streams of one kind of target come from: channels, or topics."""

    async def check(self, target: Target, principal: Principal, position: str | None = None) -> None:
        """Refused unless ``principal`` may follow ``target``; NotFound or BadArgument if there is no such target.

        Asked for every subscription that a client makes or brings, attached already or not. ``position`` is where it
        stands; a peer's is believed.
        """
        ...

    async def attach(self, target: Target) -> Attached:
        """Begin to deliver. Repeating it is harmless and gives the same stream.

        Nothing after the position given is lost, even what arrives before this returns: the hub ignores
        streams that it does not know, so hold such items back until ``Delivery.streams`` has the stream, or
        leave them to ``replay``. The core never runs ``attach`` and ``detach`` of one target at once.
        """
        ...

    async def detach(self, target: Target) -> None:
        """Nobody here follows ``target`` any more. Repeating it is harmless."""
        ...

    async def replay(self, stream: str, after: str, through: str) -> Page:
        """What lies in (after, through], from the oldest on, as much as fits in one page."""
        ...

    async def is_beyond(self, stream: str, position: str) -> bool:
        """Whether ``position`` is none that ``stream`` has ever reached, at any broker.

        Asked of positions after the one delivered last; Unavailable where nobody can tell now.
        """
        ...


class Publisher(Protocol):
    async def publish(self, topic: str, payload: bytes, principal: Principal) -> str:
        """Publish; returns the position once the topic's owner has stamped it. Refused without the capability.

        A principal that is a peer (``is_peer``) publishes for a client whose capability it has checked.
        """
        ...


class Recorder(Protocol):
    async def records(self, dataset: str, records: Sequence[bytes], principal: Principal) -> tuple[int, int]:
        """Hand records to the data cluster; returns how many it accepted and rejected once they are durable."""
        ...


class Delivery(Protocol):
    """What the hub offers to upstreams."""

    def deliver(self, stream: str, items: Sequence[Item]) -> None:
        """The next notifications of ``stream``, in order.

        Each is sent with ``after`` = the position before it and to everyone attached in the same bytes.
        Items at or before the stream's position are ignored, and so is a stream that nobody holds.
        """
        ...

    def gap(self, stream: str, holes: Sequence[Hole], reason: str) -> None:
        """Tell everyone attached that ``holes`` is missing, and go on after the last one."""
        ...

    def end(self, stream: str, code: str, detail: str) -> None:
        """Nothing of ``stream`` will come any more: whoever subscribed to it is told so, and holds it no longer.

        Its targets are not detached: the upstream that ends a stream has let them go.
        """
        ...

    def position(self, stream: str) -> str | None:
        """The last position delivered; None where nobody holds the stream."""
        ...

    def streams(self) -> Collection[str]:
        """Streams that someone holds, online or not."""
        ...


class Notices(Protocol):
    async def noticed(self, body: bytes, principal: Principal) -> None:
        """The data cluster posted ``body`` to ``/notify``. BadArgument if it makes no sense."""
        ...


class Directory(Protocol):
    """The coordinator, as the core sees it. The last five only note something for the next report."""

    @property
    def refused(self) -> str | None:
        """Why the coordinator does not take this broker, and nobody is sent here; None unless it said so."""
        ...

    async def where(self, user: str) -> Placement | None:
        """Where ``user`` belongs (placed now if it was nowhere); None while the coordinator is away."""
        ...

    async def keep(self, user: str, wanted: Wanted) -> None:
        """Make a frontend subscription durable. While the coordinator is away it is noted and handed in later."""
        ...

    async def drop(self, user: str, id: str) -> None:
        """End one, as ``keep``."""
        ...

    async def kept_of(self, user: str, ids: Collection[str]) -> Mapping[str, Wanted]:
        """What the coordinator keeps for ``user``, by id, after all that was told here of ``ids``.

        Unavailable while it is away; NotFound where it knows no such user.
        """
        ...

    async def said(self, user: str, ids: Collection[str]) -> None:
        """Returns when the coordinator has all that was to be told of ``ids``, or hears it before it hears of what the
        caller did."""
        ...

    def logged_in(self, user: str, session: str, *, is_admitted_unasked: bool) -> None: ...

    def logged_out(self, user: str, session: str) -> None: ...

    def acknowledged(self, user: str, id: str, position: str, *, is_back: bool = False) -> None:
        """``is_back`` where the stream has never been where the subscription was acknowledged before."""
        ...

    def arrived(self, user: str, version: int) -> None:
        """A session of ``user``, which is held here under ``version``, has confirmed."""
        ...

    def drained(self) -> bool:
        """The broker drains: report it at once. Whether there is somebody to place its users elsewhere."""
        ...


class Residents(Protocol):
    """What the core lets the link to the coordinator do and ask."""

    async def adopt(self, user: str, version: int, subscriptions: Sequence[Wanted]) -> None:
        """``user`` is placed here: hold and attach these. An older version than known is ignored.

        What is held beyond them was ended elsewhere, or is newer: the coordinator is asked, and what it does not keep
        is let go of.
        Returns when all are attached; raises the first error where some could not be. Those whose channel is gone for
        good are ended instead.
        """
        ...

    async def send(self, user: str, version: int, to: BrokerInfo, ticket: str) -> None:
        """Tell every session of ``user`` to move, those that come meanwhile too, each with a ticket of its own like
        ``ticket``.

        Returns when the last of them has left, or the user is adopted under a newer version.
        """
        ...

    async def release(self, user: str, version: int) -> None:
        """``user`` belongs elsewhere: close what is left of it, let go of its subscriptions."""
        ...

    def users(self) -> Collection[str]:
        """Everyone held here, online or not."""
        ...

    def subscriptions(self, user: str) -> Sequence[Wanted]:
        """What ``user`` holds here, each with the position that was last acknowledged."""
        ...

    def sessions(self) -> int:
        """Open sessions of users, peers not counted."""
        ...

    def load(self) -> Load: ...

    def holdings(self, *, is_full: bool = False) -> Iterable[Holding]:
        """Of users who came, went or hold something else since the last call, or of all online ones."""
        ...

    def rates(self, *, is_full: bool = False) -> dict[str, float]:
        """Model bytes a second of streams whose rate changed notably since the last call, or of all held ones."""
        ...


def is_peer(principal: Principal) -> bool:
    """Whether the bearer is a broker. An administrator is not, though it may do all that a broker may."""
    return any(isinstance(c, str) and c.casefold().startswith("broker:") for c in principal.capabilities)
