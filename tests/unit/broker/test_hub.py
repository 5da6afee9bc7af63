import socket
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from tocsin.broker.cache import ENTRY_BYTES, Cache, Recent
from tocsin.broker.entries import body_of, notification
from tocsin.broker.hub import Hub
from tocsin.broker.metering import Meters, MovingRate
from tocsin.broker.timers import Wheel
from tocsin.protocol.codec import from_broker
from tocsin.protocol.messages import Gap, Hole


class Ear:
    """A follower that is always fast, with a socket that keeps writes apart."""

    def __init__(self, kind: socket.SocketKind = socket.SOCK_DGRAM) -> None:
        self.near, self.far = socket.socketpair(socket.AF_UNIX, kind)
        self.near.setblocking(False)
        self.descriptor = self.near.fileno()
        self.rests: list[bytes] = []
        self._heard: list[bytes] = []

    @property
    def heard(self) -> list[bytes]:
        with suppress(BlockingIOError):
            while data := self.far.recv(1 << 20, socket.MSG_DONTWAIT):
                self._heard.append(data)
        return self._heard

    def rest(self, data: bytes) -> None:
        self.rests.append(data)

    def push(self, entries) -> None:
        for entry in entries:
            self.near.send(entry.frame)


class Scene:
    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[tuple[float, object]] = []
        self.hub = Hub(10**6, 0.01, Meters(10.0, 0.0), lambda: self.now, lambda s, run: self.due.append((s, run)))

    def tick(self) -> float:
        ((pause, run),) = self.due
        self.due.clear()
        run()
        return pause


def test_what_comes_within_a_tick_leaves_in_one_write_of_the_same_bytes():
    scene, ears = Scene(), [Ear(), Ear()]
    stream = scene.hub.open("s", "0")
    for ear in ears:
        stream.join(ear, "0")
    scene.hub.deliver("s", [("1", b"1"), ("2", b"2")])
    scene.hub.deliver("s", [("3", b"3")])
    assert scene.tick() == 0.0
    assert [len(ear.heard) for ear in ears] == [1, 1]
    assert ears[0].heard[0] == ears[1].heard[0]
    assert ears[0].heard[0].count(b"notification") == 3
    scene.hub.deliver("s", [("4", b"4")])
    assert scene.tick() == 0.01


def test_echoes_and_streams_that_nobody_holds_are_ignored():
    scene, ear = Scene(), Ear()
    scene.hub.deliver("s", [("1", b"1")])
    scene.hub.gap("s", [Hole("0", "1", 1)], "lost")
    stream = scene.hub.open("s", "5")
    stream.join(ear, "5")
    scene.hub.deliver("s", [("4", b"4"), ("5", b"5"), ("6", b"6"), ("6", b"6")])
    scene.tick()
    scene.hub.gap("s", [Hole("3", "6", 3)], "lost")
    assert not scene.due
    (frame,) = ear.heard
    message = from_broker(body_of(frame))
    assert (message.after, message.through) == ("5", "6")
    assert scene.hub.position("s") == "6"
    assert scene.hub.position("t") is None


def test_a_gap_moves_everyone_over_its_holes():
    scene, ear = Scene(), Ear()
    scene.hub.open("s", "2").join(ear, "2")
    scene.hub.gap("s", [Hole("1", "3", 1), Hole("4", "6", None)], "owner")
    scene.hub.deliver("s", [("7", b"7")])
    scene.hub.flush()
    gap = from_broker(body_of(ear.heard[0][: ear.heard[0].index(b"\x81", 1)]))
    assert gap == Gap("s", [Hole("2", "3", 1), Hole("4", "6", None)], "owner")
    assert b'"after":"6"' in ear.heard[0]


def test_streams_of_one_tick_leave_in_one_write_to_who_follows_several():
    scene, both, one = Scene(), Ear(), Ear()
    for name in "st":
        scene.hub.open(name, "0").join(both, "0")
    scene.hub["t"].join(one, "0")
    scene.hub.deliver("s", [("1", b"1")])
    scene.hub.deliver("t", [("1", b"2"), ("2", b"3")])
    scene.tick()
    (together,), (alone,) = both.heard, one.heard
    assert together.endswith(alone)
    assert (together.count(b"notification"), alone.count(b"notification")) == (3, 2)
    assert scene.hub.meters.wire_bytes == len(together) + len(alone)


def test_what_a_socket_does_not_take_is_left_to_its_connection():
    scene, broken, full, ear = Scene(), Ear(), Ear(socket.SOCK_STREAM), Ear()
    broken.far.close()
    full.near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    for name in "st":
        for follower in (broken, full, ear):
            scene.hub.open(name, "0").join(follower, "0")
    scene.hub.deliver("s", [("1", b"1" * 100_000)])
    scene.tick()
    (frame,), (rest,) = ear.heard, full.rests
    assert 0 < len(rest) < len(frame)
    assert b"".join(full.heard) + rest == frame
    assert broken.rests == [frame]
    scene.hub.deliver("s", [("2", b"2")])
    scene.hub.deliver("t", [("1", b"3")])
    scene.tick()
    assert broken.rests[1] == ear.heard[1]
    assert len(ear.heard) == 2


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 400), st.booleans()), max_size=80), st.integers(0, 5000)
)
def test_the_cache_holds_the_newest_without_a_hole_and_never_more_than_its_bytes(steps, max_bytes):
    cache, recents, last = Cache(max_bytes), {}, dict.fromkeys("abc", 0)
    for name, size, drops in steps:
        if drops and name in recents:
            cache.drop(recents.pop(name))
            continue
        recent = recents.setdefault(name, Recent())
        last[name] += 1
        cache.add(recent, [notification(name, f"{last[name] - 1:03}", f"{last[name]:03}", b"1" * size)])
    kept = [e for r in recents.values() for e in r.entries]
    assert cache.size_bytes == sum(len(e.frame) + ENTRY_BYTES for e in kept) <= max_bytes
    for name, recent in recents.items():
        throughs = [e.through for e in recent.entries]
        assert throughs == [f"{n:03}" for n in range(last[name] - len(throughs) + 1, last[name] + 1)]
        if throughs:
            assert recent.since(throughs[-1], 100) == []
            assert [e.through for e in recent.since(recent.entries[0].after, 10**6)] == throughs
            assert len(recent.since(recent.entries[0].after, 1)) == 1
            assert recent.since("", 1) is None


def test_a_rate_settles_at_what_comes_and_fades_when_nothing_does():
    rate = MovingRate(10.0, 0.0)
    for second in range(100):
        rate.add(500, float(second))
    assert 475 < rate.value(99.0) < 535
    assert rate.value(199.0) < 0.1


def test_the_wheel_looks_when_it_is_time_and_follows_a_deadline_that_moves():
    class Sleeper:
        turn = None

        def __init__(self, *times):
            self.seen, self.times = [], list(times)

        def due(self, now):
            self.seen.append(now)
            return self.times.pop(0) if self.times else None

    wheel, one, two, never = Wheel(100.0), Sleeper(110.0), Sleeper(), Sleeper()
    wheel.add(one, 102.5)
    wheel.add(two, 120.0)
    wheel.add(two, 103.0)  # sooner after all
    wheel.add(never, float("inf"))
    for now in (101.0, 102.0, 104.0, 109.0, 111.5, 130.0):
        wheel.advance(now)
    assert (one.seen, two.seen, never.seen) == ([104.0, 111.5], [104.0], [])
