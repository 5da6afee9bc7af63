"""Tickets: signed leave to log in at one broker, under one version of an assignment.

A ticket is a JSON Web Token signed with the system's secret, so that a broker checks it without asking:
``sub`` is the user, ``broker`` where it is good, ``ver`` the version of the assignment, ``jti`` its own
number, by which a broker knows that it was used, and ``sid`` the session that alone may use it, where a broker
gave it to one. It is signed with a key of its own that follows from the secret:
otherwise it would be a token, too, without broker, number and use.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

import jwt

from tocsin.errors import Unauthenticated
from tocsin.tokens import ALGORITHM, MAX_TOKEN_BYTES

_CLAIMS = ("sub", "broker", "ver", "jti", "exp")


@dataclass(frozen=True, slots=True)
class Ticket:
    user: str
    broker: str
    version: int
    number: str
    ends_at: float
    session: str | None = None


def issue_ticket(
    secret: bytes, user: str, broker: str, version: int, number: str, ends_at: float, session: str | None = None
) -> str:
    claims = {"sub": user, "broker": broker, "ver": version, "jti": number, "exp": int(ends_at)}
    if session is not None:
        claims["sid"] = session
    return jwt.encode(claims, _key(secret), algorithm=ALGORITHM)


def read_ticket(text: str, secret: bytes, *, leeway_s: float = 0.0) -> Ticket:
    """The ticket in ``text``, or Unauthenticated. That it is for this broker, and new, is for the broker to check."""
    if len(text) > MAX_TOKEN_BYTES:
        raise Unauthenticated(f"the ticket is longer than {MAX_TOKEN_BYTES} bytes")
    try:
        options = {"require": list(_CLAIMS), "verify_aud": False}
        found = jwt.decode(text, _key(secret), algorithms=[ALGORITHM], leeway=leeway_s, options=options)  # type: ignore[arg-type]
        user, broker, version, number, ends_at = (found[name] for name in _CLAIMS)
    except jwt.ExpiredSignatureError:
        raise Unauthenticated("the ticket has expired") from None
    except (jwt.InvalidTokenError, ValueError, OverflowError):
        raise Unauthenticated("the ticket is not one of this system") from None
    session = found.get("sid")
    is_text = isinstance(broker, str) and isinstance(number, str) and isinstance(session, str | None)
    if not (is_text and isinstance(version, int)):
        raise Unauthenticated("the ticket is not one of this system")
    return Ticket(user, broker, version, number, float(ends_at), session)


def _key(secret: bytes) -> bytes:
    return hmac.digest(secret, b"tocsin ticket", "sha256")
