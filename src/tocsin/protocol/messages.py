"""Every message between a client and a broker, one JSON object a WebSocket text frame.

A request carries a ``request`` number that its answer repeats. ``publish`` and ``records`` are carried out
beside each other and beside everything else, so their answers come in any order; a ``ping`` is answered at
once; all others are carried out and answered one after the other. Messages without a number are events:
``notification``, ``gap``, ``ended``, ``move`` and errors that no request caused.

Positions. Every notification has ``after`` and ``through``. A client that stands at ``mine`` in the
stream drops it if ``through <= mine``, takes it if ``after <= mine``, and otherwise has found a hole that
nobody announced, which is a fault. A ``gap`` moves the client over holes that are announced.
Positions of one stream compare as strings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from tocsin.protocol.targets import Target

SUBPROTOCOL = "tocsin.v1"
AHEAD = "ahead"
Position = Annotated[str, msgspec.Meta(max_length=64)]  # of a client; all that we give out are shorter


class _Message(msgspec.Struct, frozen=True, tag_field="type", forbid_unknown_fields=True, omit_defaults=True):
    """Tagged by its kind in ``type``."""


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A subscription as its client knows it. ``id`` is the client's choice, unique for its user.

    ``position`` is where the client stands; without it the broker goes by what was acknowledged.
    """

    id: str
    target: Target
    position: Position | None = None


# --- from the client ---------------------------------------------------------------------------------


class Login(_Message, frozen=True, tag="login"):
    """The first message. ``ticket`` as a placement or a ``move`` gave it; ``session`` is a name of its choice, the
    same after a ``move`` as before.

    ``subscriptions`` are those that the client holds, one target by each id; unknown ones are made, so a login
    restores what a broker that died had not yet told anybody.
    """

    request: int
    token: str | None = None
    ticket: str | None = None
    session: Annotated[str, msgspec.Meta(max_length=255)] | None = None
    subscriptions: Sequence[Wanted] = ()


class Subscribe(_Message, frozen=True, tag="subscribe"):
    """Hold a subscription from now on. Answered by ``subscribed``; may be said again, to begin at ``position``."""

    request: int
    id: str
    target: Target
    position: Position | None = None


class Unsubscribe(_Message, frozen=True, tag="unsubscribe"):
    """End a subscription of the user. Answered by ``done``."""

    request: int
    id: str


class ListSubscriptions(_Message, frozen=True, tag="list"):
    """Ask for every subscription of the user. Answered by ``subscriptions``."""

    request: int


class Ack(_Message, frozen=True, tag="ack"):
    """The client's application has everything up to these positions, by stream. Has no answer."""

    positions: Mapping[str, Position]


class Publish(_Message, frozen=True, tag="publish"):
    """Publish under a topic; answered by ``published`` when its owner has stamped it.

    Refused with ``bad-argument`` where not every client could decode the payload: an integer of more than 4300
    digits, another number beyond a double, values nested more than 100 deep.
    """

    request: int
    topic: str
    payload: msgspec.Raw


class Records(_Message, frozen=True, tag="records"):
    """Records for a dataset; answered when the data cluster has them durably."""

    request: int
    dataset: str
    records: Sequence[msgspec.Raw]


class Refresh(_Message, frozen=True, tag="refresh"):
    """A new token for this connection, before the old one ends."""

    request: int
    token: str


class Confirm(_Message, frozen=True, tag="confirm"):
    """Said to the destination of a move once every subscription stands again. Answered by ``done``."""

    request: int


class Ping(_Message, frozen=True, tag="ping"):
    """Show that the client lives. Answered by ``pong``."""

    request: int


class Logout(_Message, frozen=True, tag="logout"):
    """Leave. Subscriptions stay, for the user to come back to, unless ``forget``: then all of the user's end, those
    that other brokers hold too. It fails as ``unavailable`` where the coordinator cannot tell which these are; what
    this broker held has ended then, and the client may say it again.
    """

    request: int
    forget: bool = False


FromClient = (
    Login | Subscribe | Unsubscribe | ListSubscriptions | Ack | Publish | Records | Refresh | Confirm | Ping | Logout
)

# --- from the broker ---------------------------------------------------------------------------------


class Standing(msgspec.Struct, frozen=True, omit_defaults=True):
    """A subscription as the broker holds it: notifications of ``stream`` after ``position`` follow.

    ``recovered`` is false where something between the client's position and this one is gone; a ``gap``
    says what.
    """

    id: str
    target: Target
    stream: str
    position: str
    recovered: bool = True


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why one subscription of a login does not stand."""

    id: str
    code: str
    detail: str


class Welcome(_Message, frozen=True, tag="welcome"):
    """The answer to ``login``. A client that says nothing for several times ``ping_s`` is closed, as is one that sends
    a message of more than ``max_message_bytes``.
    """

    request: int
    user: str
    broker: str
    session: str
    ping_s: float
    subscriptions: Sequence[Standing]
    refused: Sequence[Refusal] = ()
    max_message_bytes: int | None = None


class Subscribed(_Message, frozen=True, tag="subscribed"):
    """The answer to ``subscribe``."""

    request: int
    subscription: Standing


class Subscriptions(_Message, frozen=True, tag="subscriptions"):
    """The answer to ``list``."""

    request: int
    subscriptions: Sequence[Standing]


class Published(_Message, frozen=True, tag="published"):
    """The answer to ``publish``: the position in the topic's stream."""

    request: int
    position: str


class Accepted(_Message, frozen=True, tag="accepted"):
    """What became of records: counts, as the data cluster gave them."""

    request: int
    accepted: int
    rejected: int


class Done(_Message, frozen=True, tag="done"):
    """The answer to unsubscribe, refresh, confirm and logout."""

    request: int


class Pong(_Message, frozen=True, tag="pong"):
    """The answer to ``ping``."""

    request: int


class Failed(_Message, frozen=True, tag="error"):
    """A request that was refused, or, without a number, something that the connection did wrong.

    ``url`` is the right broker's, where the user belongs to another one.
    """

    code: str
    detail: str
    request: int | None = None
    retry_after_s: float | None = None
    url: str | None = None


class Notification(_Message, frozen=True, tag="notification"):
    """One result of a channel, or one publication of a topic: all there is in (after, through]."""

    stream: str
    after: str
    through: str
    payload: msgspec.Raw


class Hole(msgspec.Struct, frozen=True):
    """(after, through] is missing; ``count`` is null where nobody knows how many."""

    after: str
    through: str
    count: int | None


class Gap(_Message, frozen=True, tag="gap"):
    """``reason`` is ``retention``, ``lost``, ``slow``, ``owner``, ``unheld`` or ``ahead``.

    ``ahead`` has one hole, and may lead back: the client stands (``after``) where the stream has never been. It goes on
    from ``through``.
    """

    stream: str
    holes: Sequence[Hole]
    reason: str


class Ended(_Message, frozen=True, tag="ended"):
    """A subscription does not stand any more, though this client did not end it; nothing of it follows.

    ``code`` is ``dropped`` or ``replaced`` (its channel was, at the data cluster), ``unsubscribed`` (another session
    of the user ended it, here or elsewhere) or ``forbidden`` (the refreshed token does not allow it; other sessions
    keep it).
    """

    id: str
    code: str
    detail: str


class Move(_Message, frozen=True, tag="move"):
    """Connect to ``url`` with ``ticket``, log in there, confirm, then leave here. Goes on being served meanwhile."""

    broker: str
    url: str
    ticket: str


FromBroker = (
    Welcome
    | Subscribed
    | Subscriptions
    | Published
    | Accepted
    | Done
    | Pong
    | Failed
    | Notification
    | Gap
    | Ended
    | Move
)
