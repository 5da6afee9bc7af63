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


def page_origins(url: str) -> list[str]:
    """Origins of pages that come from ``url``: on this machine under each of its names."""
    scheme, _, rest = url.partition("://")
    host, _, port = rest.rpartition(":")
    names = ("127.0.0.1", "localhost", "[::1]") if is_loopback(host) else ()
    return list(dict.fromkeys([url, *(f"{scheme}://{name}:{port}" for name in names)]))
