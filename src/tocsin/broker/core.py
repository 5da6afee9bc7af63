"""The broker's parts put together, and what sessions ask of all of them at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tocsin.broker.admission import Admission, Admitted, Verify
from tocsin.broker.holding import Holding
from tocsin.broker.hub import Hub
from tocsin.broker.outbox import OutboxLimits
from tocsin.broker.outlet import Outlet
from tocsin.broker.ports import Directory, Publisher, Recorder, Upstream
from tocsin.broker.referring import Referrals
from tocsin.broker.session import Session
from tocsin.broker.shedding import POLICIES
from tocsin.broker.subscribing import Subscribing
from tocsin.broker.tasks import Tasks
from tocsin.broker.timers import Wheel
from tocsin.broker.users import User, Users
from tocsin.clock import Clock, SystemClock
from tocsin.config import Broker
from tocsin.errors import LimitExceeded, Unavailable
from tocsin.protocol.codes import GOING_AWAY, REPLACED, Code


@dataclass(frozen=True, slots=True)
class Upstreams:
    channels: Upstream
    topics: Upstream
    publisher: Publisher
    recorder: Recorder


@dataclass(frozen=True, slots=True)
class Keys:
    """``verify`` gives a token's principal; ``secret`` signs tickets and referrals, None where there are none."""

    verify: Verify
    secret: bytes | None = None
    leeway_s: float = 0.0


class Core:
    """One per broker. The hub comes first, for upstreams need it: ``Core`` then takes them."""

    def __init__(
        self,
        settings: Broker,
        hub: Hub,
        upstreams: Upstreams,
        directory: Directory,
        keys: Keys,
        clock: Clock | None = None,
    ) -> None:
        self.settings, self.hub, self.meters = settings, hub, hub.meters
        self.name = settings.name
        self.clock = clock or SystemClock()
        self.now = self.clock.monotonic
        self.directory, self.publisher, self.recorder = directory, upstreams.publisher, upstreams.recorder
        self.users = Users()
        self.holding = Holding(hub, upstreams.channels, upstreams.topics, settings.replays)
        self.admission = Admission(
            settings.name, keys.verify, keys.secret, directory, self.users, self.clock,
            insecure=settings.insecure, leeway_s=keys.leeway_s,
        )  # fmt: skip
        self.referrals = Referrals(settings.name, keys.secret, self.clock, settings.redirect_timeout, keys.leeway_s)
        self.outbox_limits = OutboxLimits(
            settings.outbox_bytes, settings.outbox_hard_bytes, settings.write_buffer, POLICIES[settings.shedding]()
        )
        self.peer_outbox_limits = OutboxLimits(
            settings.peer_outbox_bytes, settings.peer_outbox_bytes, settings.write_buffer
        )
        self.wheel = Wheel(self.now())
        self.outlets: set[Outlet] = set()
        self.closes: Counter[str] = Counter()
        self.is_draining = False
        self.tasks = Tasks("the broker's core")
        self.subscribing = Subscribing(self.users, self.holding, directory, settings.max_subscriptions, self.tasks)
        hub.on_end = self.subscribing.end_stream
        self.on_welcome: Callable[[User, Session], None] | None = None
        self.on_left: Callable[[User], None] | None = None

    # --- connections --------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        return len(self.outlets) >= self.settings.max_connections

    def opened(self, outlet: Outlet) -> None:
        self.outlets.add(outlet)
        self.wheel.add(outlet, outlet.session.deadline()[0])

    def closed(self, outlet: Outlet) -> None:
        self.outlets.discard(outlet)

    def ended(self, code: Code) -> None:
        self.closes[code.name] += 1

    def monotonic_of(self, at: float) -> float:
        """A time of the wall clock on the clock that never goes back."""
        return self.now() + (at - self.clock.now())

    def end_all(self) -> None:
        for outlet in list(self.outlets):
            outlet.end(GOING_AWAY)

    # --- sessions -----------------------------------------------------------------------------------------

    def enter(self, session: Session, admitted: Admitted) -> User:
        """The user of a new session; LimitExceeded where it has too many."""
        name = admitted.principal.subject
        if admitted.is_peer:
            user = User(name, is_peer=True)
        else:
            if self.is_draining and name not in self.users:
                raise Unavailable("the broker is stopping and takes nobody new")
            held = self.users.get(name)
            for left_behind in [s for s in held.sessions if s.id == session.id] if held else ():
                left_behind.outlet.end(REPLACED)  # lost by the same client, which does not hear it, or another program
            if held is not None and len(held.sessions) >= self.settings.max_user_connections:
                raise LimitExceeded("connections of one user", self.settings.max_user_connections)
            user = self.users.enter(name, admitted.version)
            for other in user.sessions:
                other.outlet.note_taken()  # a page that is loaded anew may come before its old connection is gone
            self.directory.logged_in(name, session.id, is_admitted_unasked=not admitted.was_asked)
        user.sessions.append(session)
        self.users.changed(user)
        return user

    def welcomed(self, session: Session) -> None:
        user = session.user
        if user is not None and not user.is_peer and self.on_welcome is not None:
            self.on_welcome(user, session)

    def leave(self, session: Session, user: User) -> None:
        """A session ended; its user keeps what it holds, unless it is a peer."""
        user.sessions.remove(session)
        self.users.changed(user)
        if user.is_peer:
            self.tasks.spawn(self.subscribing.let_go_all(user))
            return
        self.directory.logged_out(user.name, session.id)
        if not user.sessions and not user.subscriptions and not user.adoptions:
            self.users.remove(user)  # holds nothing: when it comes back, the coordinator says where it belongs
        if self.on_left is not None:
            self.on_left(user)

    def confirmed(self, user: User) -> None:
        """A session that was sent here stands; whether others are to follow, its former broker knows."""
        self.directory.arrived(user.name, user.version)
