"""Addresses from what is configured."""

from __future__ import annotations

from urllib.parse import urlsplit

from tocsin.errors import BadArgument

_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def url_of(scheme: str, host: str, port: int) -> str:
    """With the brackets that an address of IP version 6 takes."""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def own_url(scheme: str, host: str, port: int) -> str:
    """How this machine reaches what listens at ``host``, be it on every interface."""
    return url_of(scheme, _ANY.get(host, host), port)


def check_address(name: str, url: str, example: str, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """``url`` where one could connect to it; BadArgument naming ``name``."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0 and not any(map(str.isspace, url))
    except (ValueError, AttributeError, TypeError):  # brackets, the port's range, no text
        is_one = False
    if not is_one:
        raise BadArgument(name, f"a URL such as {example}", url)
    return url
