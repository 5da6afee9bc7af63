"""The address that a start prints for whoever sits at this machine: it lets its first visitor in, once.

The address has a ticket behind its ``#``, which browsers send nowhere by themselves. The page hands it in and gets a
token of an administrator for it. A ticket is signed with a key of its own that follows from the system's secret, so
whoever can read the secret can make one, and nobody else; each is good once, for a while, and not at a dashboard that
was started after it was made: that one cannot know whether it was used.
"""

from __future__ import annotations

import hmac
import secrets
import time

import jwt

from tocsin.errors import Unauthenticated
from tocsin.tokens import ALGORITHM, MAX_TOKEN_BYTES, mint

USER = "operator"


def entrance(url: str, secret: bytes, ttl_s: float, page: str = "/") -> str:
    """``url`` of the dashboard with a ticket behind it."""
    claims = {"iat": int(time.time()), "exp": int(time.time() + ttl_s), "jti": secrets.token_urlsafe(8)}
    return f"{url}{page}#enter={jwt.encode(claims, _key(secret), algorithm=ALGORITHM)}"


class Door:
    """Takes each ticket once; what was taken is remembered until its end."""

    def __init__(self, secret: bytes, token_ttl_s: float) -> None:
        self._secret, self._token_ttl_s = secret, token_ttl_s
        self._used: dict[str, float] = {}
        self._opened_at = int(time.time())

    def enter(self, ticket: str) -> str:
        """A token, or Unauthenticated with the reason."""
        number, ends_at = self._read(ticket)
        now = time.time()
        self._used = {used: end for used, end in self._used.items() if end >= now}
        if number in self._used:
            raise Unauthenticated("this address was used before; start the dashboard again, or paste a token")
        self._used[number] = ends_at
        return mint(self._secret, USER, ["admin"], self._token_ttl_s)

    def _read(self, ticket: str) -> tuple[str, float]:
        try:
            if len(ticket) > MAX_TOKEN_BYTES:
                raise ValueError
            options = {"require": ["iat", "exp", "jti"], "verify_aud": False}
            found = jwt.decode(ticket, _key(self._secret), algorithms=[ALGORITHM], options=options)  # type: ignore[arg-type]
            number, made_at, ends_at = str(found["jti"]), float(found["iat"]), float(found["exp"])
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("this address has expired; start the dashboard again, or paste a token") from None
        except (jwt.InvalidTokenError, ValueError, OverflowError):
            raise Unauthenticated("this address is not one of this system; paste a token instead") from None
        if made_at < self._opened_at:
            raise Unauthenticated("this address is older than the dashboard's last start; paste a token instead")
        return number, ends_at


def _key(secret: bytes) -> bytes:
    return hmac.digest(secret, b"tocsin dashboard entrance", "sha256")
