import time
from dataclasses import replace
from typing import Any

import jwt
import pytest

from tocsin.errors import Unauthenticated
from tocsin.protocol.referrals import Referral, issue_referral, read_referral
from tocsin.protocol.tickets import issue_ticket, read_ticket
from tocsin.tokens import mint, verify

SECRET, OTHER = b"a secret of at least thirty-two bytes", b"another secret of thirty-two bytes and more"
PAGE = Referral("https://page.example", "north", "d1", time.time() // 1 + 3600)


def word(secret: bytes = SECRET, **changed: Any) -> str:
    return issue_referral(secret, replace(PAGE, **changed))


def test_a_referral_says_of_which_page_where_and_for_what():
    assert read_referral(word(), SECRET) == PAGE


def test_one_that_is_made_of_another_has_its_end():
    once = read_referral(word(ends_at=PAGE.ends_at + 0.5), SECRET)
    assert read_referral(issue_referral(SECRET, once), SECRET) == once


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(word(ends_at=time.time() - 5), "expired", id="past its end"),
        pytest.param(word(OTHER), "not one of this system", id="signed by others"),
        pytest.param(word(origin=["a"]), "not one of this system", id="an origin that is no text"),
        pytest.param(mint(SECRET, "ann", ["read"], 60), "not one of this system", id="a token"),
        pytest.param(
            issue_ticket(SECRET, "ann", "north", 7, "n1", time.time() + 60), "not one of this system", id="a ticket"
        ),
        pytest.param(
            jwt.encode({"origin": "a", "broker": "north", "request": "d1", "exp": 2**40}, SECRET, "HS256"),
            "not one of this system",
            id="a token with the claims of a referral",
        ),
        pytest.param("x" * 9000, "longer than", id="far too long"),
        pytest.param("nonsense", "not one of this system", id="not signed at all"),
        pytest.param("\udcff.\udcff.\udcff", "not one of this system", id="not even text"),
    ],
)
def test_what_is_no_referral_is_refused(text: str, said: str):
    with pytest.raises(Unauthenticated, match=said):
        read_referral(text, SECRET)


def test_clocks_may_differ_by_the_leeway():
    assert read_referral(word(ends_at=time.time() - 5), SECRET, leeway_s=30).origin == PAGE.origin


def test_a_referral_is_neither_a_token_nor_a_ticket():
    with pytest.raises(Unauthenticated, match="signature"):
        verify(word(), SECRET)
    with pytest.raises(Unauthenticated, match="not one of this system"):
        read_ticket(word(), SECRET)
