"""Frames straight to sockets: one system call a connection, past its transport.

What a transport costs a delivery is in DESIGN.md, section 5. It is passed by only while it holds nothing itself. What a
socket does not take is given back, whatever the reason: the transport waits for room, and finds out what is broken. A
descriptor is its connection's until ``connection_lost``, in which it leaves every stream.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

Left = Sequence[tuple[int, bytes]]
"""What was not taken, by descriptor."""


def write_same(data: bytes, descriptors: Iterable[int]) -> Left:
    """Write ``data`` to every socket."""
    write, size = os.write, len(data)
    left = []
    for descriptor in descriptors:
        try:
            taken = write(descriptor, data)
        except OSError:  # full, or broken
            taken = 0
        if taken != size:
            left.append((descriptor, data[taken:]))
    return left


def write_each(parts: Mapping[int, Sequence[bytes]]) -> Left:
    """Write to every socket its own parts, together."""
    return [rest for descriptor, own in parts.items() for rest in write_same(b"".join(own), (descriptor,))]
