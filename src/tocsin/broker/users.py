"""Who is held here: users, their subscriptions, and their sessions. A broker is a cache of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.broker.stream import Stream
from tocsin.protocol.messages import Wanted
from tocsin.protocol.targets import Target, target_key

if TYPE_CHECKING:
    from tocsin.broker.session import Session


class Subscription:
    """A frontend subscription. ``acked`` is where one who lost its position begins again.

    ``is_kept`` where the coordinator surely has it, unless another ended it; ``keeping`` are telling it now.
    """

    __slots__ = ("acked", "id", "is_kept", "keeping", "key", "stream", "target")

    def __init__(self, id: str, target: Target, key: str, stream: Stream, acked: str) -> None:
        self.id, self.target, self.key, self.stream, self.acked = id, target, key, stream, acked
        self.is_kept, self.keeping = False, 0

    def wanted(self) -> Wanted:
        return Wanted(self.id, self.target, self.acked)


class Making:
    """A subscription that is not held yet. ``count`` are making it; ``is_ended`` where somebody ended it meanwhile."""

    __slots__ = ("count", "is_ended")

    def __init__(self) -> None:
        self.count, self.is_ended = 0, False


class User:
    """``version`` is that of its assignment here, 0 where nobody told. A peer lives as long as its connection.

    ``has_ended`` where a subscription was ended here: what the coordinator names may be older than that.
    """

    __slots__ = ("adoptions", "has_ended", "is_peer", "making", "name", "sessions", "subscriptions", "version")

    def __init__(self, name: str, version: int = 0, *, is_peer: bool = False) -> None:
        self.name, self.version, self.is_peer = name, version, is_peer
        self.adoptions = 0  # under way
        self.has_ended = False
        self.subscriptions: dict[str, Subscription] = {}
        self.making: dict[str, Making] = {}  # by the subscription's id
        self.sessions: list[Session] = []

    def holds(self, wanted: Wanted) -> bool:
        held = self.subscriptions.get(wanted.id)
        return held is not None and held.key == target_key(wanted.target)

    def streams(self) -> list[str]:
        """What it follows while it is online."""
        return sorted({s.stream.name for s in self.subscriptions.values()}) if self.sessions else []


class Users:
    def __init__(self) -> None:
        self._users: dict[str, User] = {}
        self._changed: set[str] = set()

    def __getitem__(self, name: str) -> User:
        return self._users[name]

    def __contains__(self, name: str) -> bool:
        return name in self._users

    def __len__(self) -> int:
        return len(self._users)

    def get(self, name: str) -> User | None:
        return self._users.get(name)

    def names(self) -> list[str]:
        return list(self._users)

    def all(self) -> list[User]:
        return list(self._users.values())

    def enter(self, name: str, version: int) -> User:
        """The user, held here from now on, under the newest version known."""
        user = self._users.setdefault(name, User(name, version))
        user.version = max(user.version, version)
        return user

    def remove(self, user: User) -> None:
        if self._users.get(user.name) is user:
            del self._users[user.name]
            self._changed.add(user.name)

    def changed(self, user: User) -> None:
        """What ``user`` holds while online is not what it was."""
        if not user.is_peer:
            self._changed.add(user.name)

    def take_changed(self) -> set[str]:
        changed, self._changed = self._changed, set()
        return changed
