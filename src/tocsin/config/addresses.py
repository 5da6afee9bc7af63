"""Addresses from what is configured."""

from __future__ import annotations

_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def url_of(scheme: str, host: str, port: int) -> str:
    """With the brackets that an address of IP version 6 takes."""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def own_url(scheme: str, host: str, port: int) -> str:
    """How this machine reaches what listens at ``host``, be it on every interface."""
    return url_of(scheme, _ANY.get(host, host), port)
