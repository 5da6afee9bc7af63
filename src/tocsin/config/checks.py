"""What several sections check of their values together."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def ordered(name: str, part: object, low: str, high: str) -> Iterator[str]:
    if getattr(part, low) > getattr(part, high):
        yield f"{name}.{low}: expected at most {name}.{high}"
