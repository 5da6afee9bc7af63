"""What ``tocsin publish`` takes for a value, and what its kind takes for an address."""

from __future__ import annotations

import pytest

from tocsin.cli.publish import _value
from tocsin.errors import BadArgument, LimitExceeded


@pytest.mark.parametrize(
    ("text", "value"), [('{"a": [1]}', {"a": [1]}), ("plain words", "plain words"), ("1e999", "1e999"), ("", "")]
)
def test_what_is_no_json_is_a_text(text: str, value: object):
    assert _value(text) == value


def test_json_that_is_nested_too_deep_is_not_taken_for_a_text():
    with pytest.raises(LimitExceeded, match="within each other"):
        _value("[" * 100_000 + "]" * 100_000)


def test_an_argument_that_is_not_utf_8_is_told():
    with pytest.raises(BadArgument, match="UTF-8"):
        _value("\udcff")


@pytest.mark.parametrize("address", ["nonsense", "ftp://x", "http://[::1", "http://127.0.0.1:99999"])
@pytest.mark.parametrize(
    "command", [("subscribe", "x", "--topic"), ("publish", "x", "1"), ("rebalance",)], ids=" ".join
)
def test_an_address_to_which_nobody_could_connect_is_refused(run, command, address):
    done = run(*command, "--coordinator", address)
    assert isinstance(done.exception, BadArgument)
    assert f"--coordinator: expected a URL such as http://127.0.0.1:8440, got {address!r}" == str(done.exception)
