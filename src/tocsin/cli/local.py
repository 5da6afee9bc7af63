"""What commands need no token for: programs of this machine, whose secret can be read in the data directory.

A token made from it is admin there, so it is only ever sent to this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from tocsin import tokens
from tocsin.config import Config, is_loopback, own_url

LOCAL_TTL_S = 3600.0


def own_cluster(config: Config) -> str:
    return own_url(config.http.scheme, config.cluster.host, config.cluster.port)


def own_coordinator(config: Config) -> str:
    return own_url(config.http.scheme, config.coordinator.host, config.coordinator.port)


def local_token(config: Config, url: str, user: str = "local") -> Callable[[], str] | None:
    """A maker of admin tokens, where ``url`` is on this machine and the secret is there."""
    if not is_loopback(urlsplit(url).hostname or "") or not config.secret_path.exists():
        return None
    secret = tokens.read_secret(config.secret_path)
    return lambda: tokens.mint(secret, user, ["admin"], LOCAL_TTL_S)
