import time
from typing import Any

import jwt
import pytest

from tocsin.errors import Unauthenticated
from tocsin.protocol.tickets import Ticket, issue_ticket, read_ticket
from tocsin.tokens import mint, verify

SECRET, OTHER = b"a secret of at least thirty-two bytes", b"another secret of thirty-two bytes and more"


def ticket(ttl_s: float = 60, secret: bytes = SECRET, session: str | None = None) -> str:
    return issue_ticket(secret, "ann", "north", 7, "n1", time.time() + ttl_s, session)


def test_a_ticket_says_who_where_and_under_which_version():
    ends_at = time.time() // 1 + 60
    assert read_ticket(issue_ticket(SECRET, "ann", "north", 7, "n1", ends_at), SECRET) == Ticket(
        "ann", "north", 7, "n1", ends_at
    )


def test_a_ticket_may_name_the_session_that_it_is_for():
    assert read_ticket(ticket(session="phone"), SECRET).session == "phone"
    assert read_ticket(ticket(), SECRET).session is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(ticket(-5), "expired", id="past its end"),
        pytest.param(ticket(secret=OTHER), "not one of this system", id="signed by others"),
        pytest.param(mint(SECRET, "ann", ["read"], 60), "not one of this system", id="a token is no ticket"),
        pytest.param("x" * 9000, "longer than", id="far too long"),
        pytest.param("nonsense", "not one of this system", id="not signed at all"),
        pytest.param(
            jwt.encode({"sub": "a", "broker": "north", "ver": 7, "jti": "n", "exp": 2**40}, SECRET, "HS256"),
            "not one of this system",
            id="a token with the claims of a ticket",
        ),
    ],
)
def test_what_is_no_ticket_is_refused(text: str, said: str):
    with pytest.raises(Unauthenticated, match=said):
        read_ticket(text, SECRET)


@pytest.mark.parametrize("claims", [(1, "x", "n1", 2**40), ("north", 7, "n1", 2**40, 5)])
def test_claims_of_other_types_are_refused(claims: tuple[Any, ...]):
    with pytest.raises(Unauthenticated, match="not one of this system"):
        read_ticket(issue_ticket(SECRET, "ann", *claims), SECRET)


def test_a_ticket_is_no_token():
    """As one it would be good everywhere, any number of times, and for asking for the next ticket."""
    with pytest.raises(Unauthenticated, match="signature"):
        verify(ticket(), SECRET)
