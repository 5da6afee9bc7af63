"""How fast users may send over HTTP."""

import pytest

from tocsin.broker.allowances import Allowances
from tocsin.errors import LimitExceeded


class Time:
    now = 100.0

    def __call__(self):
        return self.now


def taken(allowances, user="ann", tries=1000):
    """How many in a row are allowed."""
    for count in range(tries):
        try:
            allowances.take(user)
        except LimitExceeded:
            return count
    return tries


def test_two_seconds_worth_at_once_then_the_rate():
    time = Time()
    allowances = Allowances(10.0, time)
    assert taken(allowances) == 20
    assert taken(allowances, "bob") == 20
    time.now += 0.55
    assert taken(allowances) == 5
    with pytest.raises(LimitExceeded) as refused:
        allowances.take("ann")
    assert refused.value.retry_after_s == pytest.approx(0.05)
    time.now += refused.value.retry_after_s + 1e-6
    assert taken(allowances) == 1


def test_one_message_is_always_possible_at_a_low_rate():
    time = Time()
    allowances = Allowances(0.1, time)
    assert taken(allowances) == 1
    time.now += 9.0
    assert taken(allowances) == 0
    time.now += 1.1
    assert taken(allowances) == 1


def test_who_sends_no_more_is_forgotten():
    time = Time()
    allowances = Allowances(10.0, time)
    for number in range(100):
        allowances.take(f"user {number}")
    time.now += 1.0
    allowances.take("user 0")
    time.now += 1.5
    allowances.take("ann")
    assert len(allowances) == 2
