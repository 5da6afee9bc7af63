from __future__ import annotations

import time

import httpx
import jwt

from tocsin.dashboard.asking import AsOneself

SECRET = b"s" * 32


def test_who_asks_for_long_shows_another_token_in_time(monkeypatch) -> None:
    """A demonstration may be longer than a token is good for."""
    auth, now, shown = AsOneself(SECRET, "demo", ["read"]), time.time(), list[str]()
    for passed_s in (0, 600, 3000, 7200):
        monkeypatch.setattr(time, "time", lambda passed_s=passed_s: now + passed_s)
        request = next(auth.auth_flow(httpx.Request("GET", "http://h/")))
        shown.append(request.headers["Authorization"].removeprefix("Bearer "))
        claims = jwt.decode(shown[-1], options={"verify_signature": False})
        assert claims["sub"] == "demo"
        assert claims["exp"] > now + passed_s
    assert shown[0] == shown[1]
    assert len(set(shown)) == 3
