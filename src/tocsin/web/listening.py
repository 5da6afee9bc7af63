"""The socket of a server, bound before anything else begins, so that the port is known and a taken one told at once."""

from __future__ import annotations

import socket

from tocsin.errors import Unavailable


def listening(host: str, port: int) -> socket.socket:
    """Bound to ``host`` and ``port``, 0 for any that is free. Unavailable where it cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except (OSError, TypeError, UnicodeError) as error:  # the latter two of a host that is no name
        sock.close()
        raise Unavailable(f"cannot listen at {host}, port {port}: {getattr(error, 'strerror', '') or error}") from None
    return sock
