"""A user as the coordinator keeps it: where it is placed, and what it subscribed to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator

import msgspec

from tocsin.coordinator.rows import Rows
from tocsin.policies.base import Point
from tocsin.protocol.messages import Wanted


class User(msgspec.Struct, omit_defaults=True):
    """Durable. ``version`` grows with every change of ``broker``, across all users.

    ``stale`` are brokers that may hold the user although it is placed elsewhere: each is told to let go until it
    has said that it did. A removed user stays until nobody holds it.
    """

    name: str
    broker: str | None = None
    version: int = 0
    reason: str = ""
    location: Point | None = None
    latencies_ms: dict[str, float] = {}
    seen_at: float = 0.0
    subscriptions: dict[str, Wanted] = {}
    stale: list[str] = []
    is_removed: bool = False

    def keep(self, wanted: Wanted) -> None:
        """Add or renew a subscription; where it is the same one, its position never goes back."""
        known = self.subscriptions.get(wanted.id)
        if known is not None and known.target == wanted.target and (known.position or "") > (wanted.position or ""):
            wanted = known
        self.subscriptions[wanted.id] = wanted

    def acknowledge(self, id: str, position: str, *, is_back: bool = False) -> bool:
        """Whether that moved the subscription's position, forward unless it ``is_back``."""
        known = self.subscriptions.get(id)
        at = (known.position or "") if known else ""
        if known is None or at == position or (at > position and not is_back):
            return False
        self.subscriptions[id] = msgspec.structs.replace(known, position=position)
        return True


class Users(Rows[User]):
    """All users, with who is placed where and who lingers where."""

    def __init__(self) -> None:
        super().__init__("user", User)
        self.residents: defaultdict[str, set[str]] = defaultdict(set)
        self.lingering: defaultdict[str, set[str]] = defaultdict(set)
        self.homeless: set[str] = set()
        self.recalled: dict[str, str] = {}  # where they were placed, though told to let go of them just before
        self._in_order: list[str] = []

    def read(self, key: str, body: bytes) -> User:
        user = super().read(key, body)
        insort(self._in_order, key)
        self._index(user)
        return user

    def after(self, name: str) -> Iterator[User]:
        """Everyone whose name follows ``name``, in order."""
        for place in range(bisect_right(self._in_order, name), len(self._in_order)):
            yield self[self._in_order[place]]

    def add(self, name: str, now: float) -> User:
        """The user, made where there is none and revived where it was removed."""
        user = self.get(name)
        if user is None:
            user = User(name, seen_at=now)
            self.put(name, user)
            insort(self._in_order, name)
        if user.is_removed:
            user.is_removed, user.seen_at = False, now
            self.touch(name)
        if user.broker is None:
            self.homeless.add(name)
        return user

    def move(self, user: User, broker: str | None, version: int, reason: str) -> None:
        """Place ``user``; the broker that it leaves is stale until it has let go."""
        if version <= user.version:
            raise RuntimeError(f"user {user.name!r}: version {version} after {user.version}")
        if user.broker is not None and user.broker != broker:
            self.residents[user.broker].discard(user.name)
            self.linger(user, user.broker)
        if broker != user.broker:
            self.recalled.pop(user.name, None)
        if broker is not None and broker in user.stale:
            self.recalled[user.name] = broker
        if broker is not None:
            self.let_go(user, broker)
        user.broker, user.version, user.reason = broker, version, reason
        self._index(user)
        self.touch(user.name)

    def linger(self, user: User, broker: str) -> bool:
        """Whether it is news that ``broker`` may hold ``user``."""
        if broker in user.stale:
            return False
        user.stale = [*user.stale, broker]
        self.lingering[broker].add(user.name)
        self.touch(user.name)
        return True

    def let_go(self, user: User, broker: str) -> None:
        if broker in user.stale:
            user.stale = [name for name in user.stale if name != broker]
            self.lingering[broker].discard(user.name)
            self.touch(user.name)
            if user.is_removed and not user.stale:
                self.drop(user.name)

    def forget_broker(self, broker: str) -> None:
        """No process of that name holds anybody any more."""
        for name in sorted(self.lingering.pop(broker, ())):
            self.let_go(self[name], broker)

    def drop(self, key: str) -> None:
        self.homeless.discard(key)
        self.recalled.pop(key, None)
        del self._in_order[bisect_left(self._in_order, key)]
        super().drop(key)

    def _index(self, user: User) -> None:
        if user.broker is not None:
            self.residents[user.broker].add(user.name)
            self.homeless.discard(user.name)
        elif not user.is_removed:
            self.homeless.add(user.name)
        for broker in user.stale:
            self.lingering[broker].add(user.name)
