"""Referrals: what a broker says of the page behind a request that it sends on to another broker.

A browser that follows a redirect from one foreign origin to another says ``Origin: null``, which any page can say.
The broker that redirected it saw the page's own origin, and tells it: ``origin`` is that, ``broker`` where the request
is sent to, ``request`` a digest of what it asks for, so that the word is worth nothing beside another request.

It lets nobody in: who asks still needs a token or a ticket. It is signed with a key of its own that follows from the
system's secret, so it is neither of these, and neither of these is a referral.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from math import ceil

import jwt

from tocsin.errors import Unauthenticated
from tocsin.tokens import ALGORITHM, MAX_TOKEN_BYTES

_TEXTS = ("origin", "broker", "request")


@dataclass(frozen=True, slots=True)
class Referral:
    """``ends_at`` in seconds since the Unix epoch."""

    origin: str
    broker: str
    request: str
    ends_at: float


def issue_referral(secret: bytes, referral: Referral) -> str:
    claims = {name: getattr(referral, name) for name in _TEXTS}
    return jwt.encode({**claims, "exp": ceil(referral.ends_at)}, _key(secret), algorithm=ALGORITHM)


def read_referral(text: str, secret: bytes, *, leeway_s: float = 0.0) -> Referral:
    """The referral in ``text``, or Unauthenticated. Whether it is for this broker and request, the broker checks."""
    if len(text) > MAX_TOKEN_BYTES:
        raise Unauthenticated(f"the referral is longer than {MAX_TOKEN_BYTES} bytes")
    try:
        options = {"require": [*_TEXTS, "exp"], "verify_aud": False}
        found = jwt.decode(text, _key(secret), algorithms=[ALGORITHM], leeway=leeway_s, options=options)  # type: ignore[arg-type]
        origin, broker, request = texts = [found[name] for name in _TEXTS]
    except jwt.ExpiredSignatureError:
        raise Unauthenticated("the referral has expired") from None
    except (jwt.InvalidTokenError, ValueError, OverflowError):
        raise Unauthenticated("the referral is not one of this system") from None
    if not all(isinstance(claim, str) for claim in texts):
        raise Unauthenticated("the referral is not one of this system")
    return Referral(origin, broker, request, float(found["exp"]))


def _key(secret: bytes) -> bytes:
    return hmac.digest(secret, b"tocsin referral", "sha256")
