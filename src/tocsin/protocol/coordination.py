"""What brokers and the coordinator tell each other, as JSON over HTTP.

A broker registers, then does two things for ever: it posts a ``Report`` every second, or at once when it
has an outcome to tell, and it waits at ``instructions`` for what to do. Instructions are numbered for
each life (``incarnation``) of a broker and given again until the broker asks after their number; all
of them may be carried out twice. An assignment has a version that only grows; whoever sees an older one
than it knows ignores it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tocsin.protocol.messages import Wanted


class BrokerInfo(msgspec.Struct, frozen=True):
    """``url`` is the broker's one address, ``http://host:port``; its WebSocket is ``/connect`` there."""

    name: str
    url: str


class Registration(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """``location`` is (x, y) in metres or (longitude, latitude), whichever the deployment uses throughout."""

    incarnation: str
    url: str
    location: tuple[float, float] | None = None
    capacity: float | None = None


class Registered(msgspec.Struct, frozen=True):
    """``was_given_up``: the coordinator took this broker for dead and may have removed its subscriptions at the data
    cluster, so the broker makes those that it needs again. ``brokers`` and ``leaving`` are a ``Topology``'s.
    """

    report_interval_s: float
    brokers: Sequence[BrokerInfo]
    was_given_up: bool = False
    leaving: Sequence[BrokerInfo] = ()


class Load(msgspec.Struct, frozen=True):
    """Moving averages. Model bytes are those of the paper's equation 1, wire bytes what left the sockets."""

    model_in_per_s: float = 0.0
    model_out_per_s: float = 0.0
    wire_out_per_s: float = 0.0
    records_in_per_s: float = 0.0
    connections: int = 0
    loop_lag_s: float = 0.0


class Holding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an online user holds now, be it nothing; no list when it went offline."""

    user: str
    streams: Sequence[str] | None = None


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """A frontend subscription to keep durably, or, without ``wanted``, one that ended."""

    user: str
    id: str
    wanted: Wanted | None = None


class Keep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Subscriptions of any users to keep or to end, in this order."""

    kept: Sequence[Kept]


class NotKept(msgspec.Struct, frozen=True):
    """The one at ``index`` was refused; the others are not touched by that."""

    index: int
    code: str
    detail: str


class KeepAnswer(msgspec.Struct, frozen=True):
    """What is not ``refused`` is durable."""

    refused: Sequence[NotKept] = ()


class Acknowledged(msgspec.Struct, frozen=True, omit_defaults=True):
    """``is_back`` where the stream has never been where the subscription was known to be: it stands further back."""

    user: str
    id: str
    position: str
    is_back: bool = False


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an instruction ended. For a ``Send``: the last session of the user has left or gone silent."""

    number: int
    ok: bool
    reason: str = ""


class Arrival(msgspec.Struct, frozen=True):
    """A session of ``user``, which is held here under ``version``, has confirmed."""

    user: str
    version: int


class Report(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Changes since the last report that was answered, or everything where ``is_full``."""

    incarnation: str
    load: Load
    is_full: bool = False
    is_draining: bool = False
    leaves_in_s: float | None = None  # of a draining broker that ends then, empty or not
    rates: Mapping[str, float] = {}  # stream → model bytes a second where that changed, 0 where it ended
    holdings: Sequence[Holding] = ()
    kept: Sequence[Kept] = ()
    acknowledged: Sequence[Acknowledged] = ()
    outcomes: Sequence[Outcome] = ()
    arrivals: Sequence[Arrival] = ()
    admitted: Sequence[str] = ()  # users that were let in while the coordinator could not be asked


class Reported(msgspec.Struct, frozen=True):
    """``is_known`` is false where the coordinator wants a registration and a full report; then it took nothing."""

    is_known: bool


class _Instruction(msgspec.Struct, frozen=True, tag_field="do"):
    number: int


class Adopt(_Instruction, frozen=True, tag="adopt"):
    """``user`` is placed here: attach these subscriptions and hold them, whether it is online or not.

    One whose channel is gone for good is ended, which is no failure. What the broker holds beyond these has ended
    elsewhere, or is newer than this: it asks what is kept (``GET /users/{user}``) when all that it told of it has been
    taken, and lets go of the rest.
    """

    user: str
    version: int
    subscriptions: Sequence[Wanted]


class Send(_Instruction, frozen=True, tag="send"):
    """Tell every session of ``user``, those that come meanwhile too, to move to ``to``, and go on serving it.

    It is void, and over, when the user is adopted under a newer version.
    ``ticket`` is what their tickets are made of, one for each.
    """

    user: str
    version: int
    to: BrokerInfo
    ticket: str


class Release(_Instruction, frozen=True, tag="release"):
    """``user`` has arrived elsewhere: close what is left of it here and detach its subscriptions."""

    user: str
    version: int


class Topology(_Instruction, frozen=True, tag="topology"):
    """The brokers that live: owners of topics are chosen among them. Those that drain may still have topics' logs."""

    brokers: Sequence[BrokerInfo]
    leaving: Sequence[BrokerInfo] = ()


Instruction = Adopt | Send | Release | Topology


class Instructions(msgspec.Struct, frozen=True):
    instructions: Sequence[Instruction]


class PlacementRequest(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """``latencies_ms`` by broker where the client measured them."""

    location: tuple[float, float] | None = None
    latencies_ms: Mapping[str, float] = {}


class Placement(msgspec.Struct, frozen=True):
    """Where a user belongs. ``ticket`` lets it log in there while the coordinator is away."""

    user: str
    broker: str
    url: str
    version: int
    ticket: str
    reason: str
