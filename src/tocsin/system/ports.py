"""Free ports of this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import ExitStack

from tocsin.errors import Unavailable

LOOPBACK = "127.0.0.1"


def free_port(host: str = LOOPBACK) -> int:
    return free_ports([0], host)[0]


def free_ports(wished: Iterable[int], host: str = LOOPBACK, *, needed: Iterable[bool] = ()) -> list[int]:
    """As many different free ports as are wished for; the wished ones where they are free, 0 for any.

    ``needed`` says of each whether another would not do: then Unavailable. Those choose first.
    """
    wishes = list(wished)
    is_needed = list(needed) or [False] * len(wishes)
    found = dict.fromkeys(range(len(wishes)), 0)
    with ExitStack() as held:
        for place in sorted(found, key=lambda place: not is_needed[place]):
            found[place] = _take(wishes[place], host, held, is_needed=is_needed[place])
    return list(found.values())


def _take(port: int, host: str, held: ExitStack, *, is_needed: bool) -> int:
    probe = held.enter_context(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET))
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        _bind(probe, host, port, is_needed=is_needed)
    except (OSError, TypeError, UnicodeError) as problem:  # the latter two of a host that is no name
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise Unavailable(f"cannot listen at {host}, port {port}: {why}") from None
    probe.listen(1)
    return int(probe.getsockname()[1])


def _bind(probe: socket.socket, host: str, port: int, *, is_needed: bool) -> None:
    try:
        probe.bind((host, port))
    except OSError:
        if is_needed:
            raise
        probe.bind((host, 0))
