"""Users and what they subscribed to: made, placed, kept, acknowledged, forgotten."""

from __future__ import annotations

from tocsin.coordinator.brokers import BrokerState
from tocsin.coordinator.events import PlacementAsked, SubscriptionEnded, SubscriptionKept
from tocsin.coordinator.moves import MoveState
from tocsin.coordinator.moving import Moving
from tocsin.coordinator.placing import Placing
from tocsin.coordinator.users import User
from tocsin.coordinator.world import World
from tocsin.errors import LimitExceeded, NotFound
from tocsin.protocol.coordination import Acknowledged, Holding, Kept

_SEEN_ANEW_S = 3600.0  # what was seen is written again after so long
ADMITTED = "admitted while the coordinator was away"


class Keeping:
    def __init__(self, world: World, placing: Placing, moving: Moving) -> None:
        self._world, self._placing, self._moving = world, placing, moving
        self._kept_lately: dict[tuple[str, str], tuple[str, float]] = {}  # by whom, and when; oldest first

    def find(self, name: str) -> User:
        user = self._world.users.get(name)
        if user is None or user.is_removed:
            raise NotFound("user", name)
        return user

    # --- placement -------------------------------------------------------------------------------------

    def ask(self, asked: PlacementAsked) -> None:
        """See that the user has a broker: the one that it has, unless that has ended or drains."""
        user = self._made(asked.user)
        self._learn(user, asked)
        if self._wants_a_place(user):
            self._moving.end_of(user.name, MoveState.SUPERSEDED, "the user was placed anew")
            self._placing.place(user)

    def _wants_a_place(self, user: User) -> bool:
        if user.broker is None:
            return True
        move = self._world.moves.active.get(user.name)
        drains = self._world.brokers[user.broker].state is BrokerState.DRAINING
        is_idle = not self._world.is_online(user.name, user.broker) and not (move and move.is_started)
        return self._world.brokers[user.broker].is_ended or (drains and is_idle)

    def _learn(self, user: User, asked: PlacementAsked) -> None:
        world = self._world
        location = asked.location or user.location
        measured = {name: ms for name, ms in asked.latencies_ms.items() if name in world.brokers}
        latencies = measured or user.latencies_ms
        if (location, latencies) != (user.location, user.latencies_ms) or world.now - user.seen_at > _SEEN_ANEW_S:
            user.location, user.latencies_ms, user.seen_at = location, latencies, world.now
            world.users.touch(user.name)

    def admit(self, name: str, broker: str) -> None:
        """A broker let the user in without asking, which is later than what we decided before.

        It stays there, unless it is online where we placed it: then that assignment is the later one. Where that broker
        is the destination of its move, it has arrived. Who would be one too many is not kept, and served there while it
        is online: a report has to be taken whatever it tells.
        """
        if self._is_too_many(name):
            return
        user = self._made(name)
        if user.broker == broker:
            return
        move = self._world.moves.active.get(name)
        if move is not None and move.is_started and move.to == broker:
            self._moving.arrived(broker, name, move.version)
            return
        if self._world.is_online(name, user.broker):
            self._placing.let_go(user, broker)
            return
        self._moving.end_of(name, MoveState.SUPERSEDED, f"the user was admitted by {broker}")
        self._placing.put(user, broker, ADMITTED)

    # --- subscriptions ---------------------------------------------------------------------------------

    def keep(self, kept: SubscriptionKept) -> None:
        """Whoever says so holds the user: where it does not belong there, it lets go, be the user online or gone.

        Nobody is told what it said, unless it may have let go of the user since then.
        """
        known = self._world.users.get(kept.user)
        limit = self._world.rules.max_subscriptions
        if known is not None and kept.wanted.id not in known.subscriptions and len(known.subscriptions) >= limit:
            raise LimitExceeded(f"subscriptions of user {kept.user!r}", limit)
        user = self._made(kept.user)
        user.keep(kept.wanted)
        self._world.users.touch(user.name)
        self._note(kept)
        if user.broker is None:
            self._placing.place(user)
        elif kept.by != user.broker or self._is_recalled(user, user.broker, user.version):
            self._world.adopt(user, user.broker, user.version)
        move = self._world.moves.active.get(user.name)
        may_lack = move is not None and self._is_recalled(user, move.to, move.version)
        self._moving.renew(user, None if may_lack else kept.by)
        if kept.by is not None and user.broker is not None:
            self._expect(user.name, kept.by)

    def drop(self, ended: SubscriptionEnded) -> None:
        """A destination that had it already lets go of the user: its move is tried again another time.

        Whoever holds the user, and did not say this or may have been told the opposite just before, is told what is
        left: it lets go of the rest, once it has asked us.
        """
        user = self.find(ended.user)
        if user.subscriptions.pop(ended.id, None) is None:
            raise NotFound("subscription", ended.id, user.subscriptions)
        self._world.users.touch(user.name)
        move = self._world.moves.active.get(user.name)
        if move is not None and move.is_started and ended.by != move.to:
            self._moving.end(move, MoveState.REFUSED, "the user unsubscribed meanwhile")
            return
        if user.broker is not None and self._may_hold(user, user.broker, user.version, ended.by):
            self._world.adopt(user, user.broker, user.version)
        if move is not None and move.is_started and self._may_hold(user, move.to, move.version, ended.by):
            self._moving.renew(user, None)

    def _is_recalled(self, user: User, broker: str, version: int) -> bool:
        """Whether ``broker`` was told to let go of the user, and then to hold it, and has not said that it does."""
        was_told = broker in user.stale or self._world.users.recalled.get(user.name) == broker
        return was_told and not self._world.has_adopted(user.name, broker, version)

    def _may_hold(self, user: User, broker: str, version: int, by: str | None) -> bool:
        """Whether what ``by`` says has ended may be held by ``broker`` all the same, or will be."""
        return by != broker or not self._world.has_adopted(user.name, broker, version)

    def take(self, kept: Kept, broker: str) -> None:
        """What a broker kept while it could not ask; one too many is dropped there as well as here."""
        if kept.wanted is None:
            user = self._world.users.get(kept.user)
            if user is not None and kept.id in user.subscriptions:
                self._take_end(SubscriptionEnded(kept.user, kept.id, broker), user)
            return
        known = self._world.users.get(kept.user)
        if known is None or known.is_removed:
            self.admit(kept.user, broker)
        try:
            self.keep(SubscriptionKept(kept.user, kept.wanted, broker))
        except LimitExceeded:
            self._expect(kept.user, broker)
            user = self._world.users.get(kept.user)
            if user is not None and user.broker == broker:
                self._world.adopt(user, broker, user.version)

    def _take_end(self, ended: SubscriptionEnded, user: User) -> None:
        """What a broker noted may be older than what another one has said since: nobody knows the order.

        A subscription that was asked for again must not be lost; one that is kept in vain is ended another time.
        """
        by, at_s = self._kept_lately.get((ended.user, ended.id), (ended.by, 0.0))
        if by == ended.by or self._world.clock.now_s - at_s > self._world.rules.late_words_s:
            self.drop(ended)
        elif user.broker is not None and user.broker == ended.by:
            self._world.adopt(user, user.broker, user.version)

    def _note(self, kept: SubscriptionKept) -> None:
        now_s = self._world.clock.now_s
        self._kept_lately.pop((kept.user, kept.wanted.id), None)
        if kept.by is not None:
            self._kept_lately[kept.user, kept.wanted.id] = (kept.by, now_s)
        while self._kept_lately and now_s - next(iter(self._kept_lately.values()))[1] > self._world.rules.late_words_s:
            del self._kept_lately[next(iter(self._kept_lately))]

    def acknowledge(self, one: Acknowledged) -> None:
        user = self._world.users.get(one.user)
        if user is not None and user.acknowledge(one.id, one.position, is_back=one.is_back):
            self._world.users.touch(user.name)

    # --- who is there ----------------------------------------------------------------------------------

    def hold(self, holding: Holding, broker: str) -> None:
        """A user came, changed what it holds, or went offline; who only publishes is online, too."""
        online = self._world.presence[broker].holdings
        if holding.streams is not None:
            online[holding.user] = tuple(holding.streams)
            self._expect(holding.user, broker)
        else:
            online.pop(holding.user, None)
            self._world.seen(holding.user)

    def _expect(self, name: str, broker: str) -> None:
        """Send away who is where it does not belong and is not on its way to, and whom somebody removed."""
        user, move = self._world.users.get(name), self._world.moves.active.get(name)
        if user is not None and user.is_removed:
            self._placing.let_go(user, broker)
        elif user is None or user.broker is None:
            self.admit(name, broker)
        elif user.broker != broker and not (move and move.is_started and move.to == broker):
            self._placing.let_go(user, broker)

    # --- leaving ---------------------------------------------------------------------------------------

    def remove(self, name: str) -> None:
        """Forget the user as soon as nobody holds it."""
        world, user = self._world, self.find(name)
        self._moving.end_of(name, MoveState.SUPERSEDED, "the user was removed")
        user.is_removed = True
        user.subscriptions.clear()
        if user.broker is not None:
            world.users.move(user, None, world.next_version(), "removed")
        self._placing.settle(user)
        world.users.homeless.discard(name)
        if not user.stale:
            world.users.drop(name)

    def expire(self) -> None:
        """Remove who has been away for longer than ``offline_ttl``."""
        world = self._world
        oldest = world.now - world.rules.offline_ttl_s
        for user in [u for u in world.users if u.seen_at < oldest and not u.is_removed]:
            if not any(user.name in presence.holdings for presence in world.presence.values()):
                self.remove(user.name)

    def leap(self, seconds: float) -> None:
        """The wall clock was set, or this program did not run: nobody was away longer for that."""
        for user in self._world.users:
            later = user.seen_at + max(0.0, seconds)
            user.seen_at = min(later, self._world.now)

    def _made(self, name: str) -> User:
        if self._is_too_many(name):
            raise LimitExceeded("users", self._world.rules.max_users)
        return self._world.users.add(name, self._world.now)

    def _is_too_many(self, name: str) -> bool:
        users = self._world.users
        return name not in users and len(users) >= self._world.rules.max_users
