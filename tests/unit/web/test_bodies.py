"""Inflating bodies within bounds."""

from __future__ import annotations

import gzip

import pytest

from tocsin.errors import LimitExceeded
from tocsin.web.bodies import MAX_MEMBERS, inflate
from tocsin.web.problems import MalformedBody

EMPTY = gzip.compress(b"")


@pytest.mark.parametrize("size", [0, 1, 1 << 16, 300_000])
def test_what_was_compressed_comes_back_member_by_member(size: int) -> None:
    content = bytes(n * 7919 % 251 for n in range(size))
    assert inflate(gzip.compress(content) + EMPTY + gzip.compress(b"end"), size + 3) == content + b"end"


def test_one_byte_too_many_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="bytes in a request body"):
        inflate(gzip.compress(b"x" * 1000) + gzip.compress(b"y"), 1000)


def test_members_are_counted_even_if_they_hold_nothing() -> None:
    assert inflate(EMPTY * MAX_MEMBERS, 10) == b""
    with pytest.raises(LimitExceeded, match="gzip members in a request body"):
        inflate(EMPTY * (MAX_MEMBERS + 1), 10)


@pytest.mark.parametrize(
    "body",
    [b"x", gzip.compress(b"abc")[:-1], gzip.compress(b"abc") + b"rest"],
    ids=["another format", "cut off", "more behind it"],
)
def test_what_is_no_whole_gzip_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedBody, match="expected gzip"):
        inflate(body, 100)
