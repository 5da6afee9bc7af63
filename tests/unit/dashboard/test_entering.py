from __future__ import annotations

import time
from urllib.parse import urlsplit

import pytest

from tocsin.dashboard.entering import Door, entrance
from tocsin.errors import Unauthenticated
from tocsin.tokens import mint, verify

SECRET, OTHER = b"s" * 32, b"o" * 32


def ticket(secret: bytes = SECRET, ttl_s: float = 60.0) -> str:
    return urlsplit(entrance("http://here", secret, ttl_s)).fragment.removeprefix("enter=")


def test_an_address_lets_its_first_visitor_in_as_administrator() -> None:
    door, one = Door(SECRET, 600.0), ticket()
    assert verify(door.enter(one), SECRET).may("admin")
    with pytest.raises(Unauthenticated, match="used before"):
        door.enter(one)
    assert verify(door.enter(ticket()), SECRET).may("admin")


def test_an_address_from_before_the_start_may_have_been_used_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    old = ticket()
    monkeypatch.setattr(time, "time", lambda: now + 5)
    with pytest.raises(Unauthenticated, match="older than the dashboard's last start"):
        Door(SECRET, 600.0).enter(old)


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        pytest.param(ticket(OTHER), "not one of this system", id="of another system"),
        pytest.param(ticket(ttl_s=-5), "expired", id="too late"),
        pytest.param(mint(SECRET, "ann", ["read"], 60), "not one of this system", id="a token is no ticket"),
        pytest.param("x" * 9000, "not one of this system", id="anything else"),
    ],
)
def test_nothing_else_does(shown: str, reason: str) -> None:
    with pytest.raises(Unauthenticated, match=reason):
        Door(SECRET, 600.0).enter(shown)


def test_a_ticket_is_no_token() -> None:
    with pytest.raises(Unauthenticated):
        verify(ticket(), SECRET)
