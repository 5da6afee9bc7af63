"""Pages that are redirected between brokers: where they are from, though their browsers do not say it any more.

* A browser tells a page's origin to the first broker alone; behind a redirect it says ``null``. So a redirect carries
  a referral in its query, which is looked at where the origin is ``null`` and nowhere else.
* A referral says where a page is from. Whether pages from there may connect, each broker says for itself.
* One that is redirected again gets another referral in place of the first, with the same end.
* Without a secret there are no referrals, and a redirected page is refused as any other ``null`` is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from urllib.parse import parse_qsl

from tocsin.broker.handshake import extended, without
from tocsin.clock import Clock
from tocsin.errors import Unauthenticated
from tocsin.protocol.referrals import Referral, issue_referral, read_referral

REFERRAL = "referral"
_HIDDEN = "null"


@dataclass(frozen=True, slots=True)
class Visitor:
    """A page that asks. ``origin`` is its own, ``shown`` what its browser says and compares the answer with.

    ``ends_at`` is the end of the referral that told its origin.
    """

    origin: str
    shown: str
    ends_at: float | None = None

    @property
    def cors(self) -> Mapping[str, str]:
        return {"Access-Control-Allow-Origin": self.shown, "Vary": "Origin"}


class Referrals:
    def __init__(self, broker: str, secret: bytes | None, clock: Clock, lifetime_s: float, leeway_s: float) -> None:
        self._broker, self._secret, self._clock = broker, secret, clock
        self._lifetime_s, self._leeway_s = lifetime_s, leeway_s

    def visitor(self, shown: str, query: str) -> Visitor:
        """The page whose browser says that it is from ``shown``."""
        found = self._read(query) if shown == _HIDDEN else None
        return Visitor(found.origin, shown, found.ends_at) if found else Visitor(shown, shown)

    def refer(self, visitor: Visitor, query: str, broker: str) -> str:
        """``query`` for another broker, with our word on where the page is from."""
        query = without(query, REFERRAL)
        if self._secret is None:
            return query
        ends_at = visitor.ends_at or self._clock.now() + self._lifetime_s
        word = issue_referral(self._secret, Referral(visitor.origin, broker, _digest(query), ends_at))
        return extended(query, REFERRAL, word)

    def _read(self, query: str) -> Referral | None:
        """The referral in ``query``, if it is for this broker and for what is asked."""
        text = dict(parse_qsl(query)).get(REFERRAL)
        if text is None or self._secret is None:
            return None
        try:
            found = read_referral(text, self._secret, leeway_s=self._leeway_s)
        except Unauthenticated:
            return None
        return found if (found.broker, found.request) == (self._broker, _digest(query)) else None


def _digest(query: str) -> str:
    """Of what is asked, however it is escaped: what stands between a page and us may write it in another way."""
    asked = [pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] != REFERRAL]
    return blake2b(json.dumps(asked).encode(), digest_size=16).hexdigest()
