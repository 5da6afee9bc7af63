"""Free ports of this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

LOOPBACK = "127.0.0.1"


def free_port(host: str = LOOPBACK) -> int:
    return free_ports([0], host)[0]


def free_ports(wished: Iterable[int], host: str = LOOPBACK) -> list[int]:
    """As many different free ports as are wished for; the wished ones where they are free, 0 for any."""
    with ExitStack() as held:
        return list(_taken(wished, host, held))


def _taken(wished: Iterable[int], host: str, held: ExitStack) -> Iterator[int]:
    for port in wished:
        probe = held.enter_context(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET))
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            probe.bind((host, 0))
        probe.listen(1)
        yield int(probe.getsockname()[1])
