"""The load generator of ``fanout.py``: one process with all the subscribers of one server, and its publisher.

It reads with epoll into one buffer and counts bytes: every delivery has the same size, and all of them have to
arrive. While CPU is measured it sleeps and looks, instead of waiting for its sockets, so that the server is
not charged for waking it up.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import resource
import select
import socket
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from fanout_servers import Running, Server, Step, prefer

SPARE_FILES = 200
PATIENCE_S = 60.0
LOOK_S = 0.001
WAVE = 100  # connections that are opened together
PAUSE_S = 0.5  # before load is measured


def most_subscribers() -> int:
    """How many connections one process may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard - SPARE_FILES


class Crowd:
    """Its methods are carried out in a process on ``core``."""

    def __init__(self, server: Server, running: Running, core: int) -> None:
        context = mp.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, server, running, core), daemon=True)
        self._process.start()

    def grow(self, subscribers: int) -> None:
        """Have so many in all."""
        self._call("grow", subscribers)

    def burst(self, ticks: int, messages: int) -> float:
        """Publish ``messages`` at once, wait for every delivery, and again; the server's CPU seconds a delivery."""
        return float(self._call("burst", ticks, messages))

    def load(self, per_s: float, count: int) -> float:
        """Publish at a fixed rate; the 99th percentile of seconds from when it was due to each one's arrival."""
        return float(self._call("load", per_s, count))

    def stop(self) -> None:
        self._process.kill()
        self._process.join()

    def _call(self, name: str, *arguments: Any) -> Any:
        self._pipe.send((name, arguments))
        answer = self._pipe.recv()
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _serve(pipe: Connection, server: Server, running: Running, core: int) -> None:
    os.sched_setaffinity(0, {core})
    os.setsid()
    prefer(os.getpid())
    members = _Members(server, running)
    while True:
        name, arguments = pipe.recv()
        try:
            pipe.send(getattr(members, name)(*arguments))
        except Exception as problem:
            pipe.send(RuntimeError(f"{server.name}: {problem!r}"))


class _Members:
    def __init__(self, server: Server, running: Running) -> None:
        self._server, self._running = server, running
        self._epoll = select.epoll()
        self._subscribers: dict[int, socket.socket] = {}
        self._buffer = [memoryview(bytearray(1 << 18))]
        self._publisher = self._opened([server.entering()])[0]
        self._publisher.settimeout(None)

    def grow(self, subscribers: int) -> None:
        while len(self._subscribers) < subscribers:
            first = len(self._subscribers)
            numbers = range(first, min(first + WAVE, subscribers))
            for member in self._opened([self._server.joining(n) for n in numbers]):
                member.setblocking(False)
                self._subscribers[member.fileno()] = member
                self._epoll.register(member, select.EPOLLIN)
        time.sleep(self._server.settle_s)
        self._read()

    def _opened(self, steps: Sequence[Sequence[Step]]) -> list[socket.socket]:
        """A connection for each row of steps, all of a row's steps done."""
        opened = [socket.create_connection(("127.0.0.1", self._running.port), PATIENCE_S) for _ in steps]
        for row in zip(*steps, strict=True):
            for one, (request, _) in zip(opened, row, strict=True):
                one.sendall(request)
            for one, (_, is_complete) in zip(opened, row, strict=True):
                answer = b""
                while not is_complete(answer):
                    answer += _some(one)
        return opened

    def burst(self, ticks: int, messages: int) -> float:
        deliveries = messages * len(self._subscribers)
        wanted, together = deliveries * self._server.delivery_bytes, self._server.publication * messages
        began = self._running.cpu_s()
        for _ in range(ticks):
            self._publisher.sendall(together)
            self._arrive(wanted)
        used = self._running.cpu_s() - began
        return used / (ticks * deliveries)

    def _arrive(self, wanted: int) -> None:
        deadline, got = time.monotonic() + PATIENCE_S, 0
        while got < wanted:
            time.sleep(LOOK_S)
            got += self._read()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{got} of {wanted} bytes came")
        if got > wanted:
            raise ValueError(f"{got} bytes came instead of {wanted}")

    def _read(self) -> int:
        """Everything that has arrived; what the publisher is told is thrown away."""
        total, readv, buffer = 0, os.readv, self._buffer
        for fd, _ in self._epoll.poll(0, 20_000):
            total += readv(fd, buffer)
        self._drop_answers()
        return total

    def _drop_answers(self) -> None:
        try:
            self._publisher.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return

    def load(self, per_s: float, count: int) -> float:
        time.sleep(PAUSE_S)
        size, wanted = self._server.delivery_bytes, count * len(self._subscribers)
        seen = dict.fromkeys(self._subscribers, 0)
        late: list[float] = []
        sent, start = 0, time.perf_counter() + 0.01
        readv, buffer, clock, poll = os.readv, self._buffer, time.perf_counter, self._epoll.poll
        while len(late) < wanted:
            ahead = start + sent / per_s - clock()
            if sent < count and ahead <= 0:
                self._publisher.sendall(self._server.publication)
                sent += 1
                continue
            wait_s = int(ahead * 1000) / 1000 if sent < count else 1.0  # in whole milliseconds, never too long
            for fd, _ in poll(wait_s, 64):
                before = seen[fd]
                after = seen[fd] = before + readv(fd, buffer)
                now = clock() - start
                late.extend([now - n / per_s for n in range(before // size, after // size)])
            self._drop_answers()
            if clock() - start > count / per_s + PATIENCE_S:
                raise TimeoutError(f"{len(late)} of {wanted} deliveries came")
        return sorted(late)[int(len(late) * 0.99)]


def _some(one: socket.socket) -> bytes:
    data = one.recv(1 << 16)
    if not data:
        raise ConnectionError("the server closed the connection")
    return data
