from __future__ import annotations

import numpy as np

from tocsin.datacluster.attachments import Attachments


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint32)


def since(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def test_a_broker_gets_what_it_holds_from_the_execution_it_began_with() -> None:
    held = Attachments()
    held.attach(1, ids(5, 7), since(3, 10))
    assert held.wanted(1, 3, ids(5, 7, 9)).tolist() == [True, False, False]
    assert held.wanted(1, 10, ids(5, 7, 2**31)).tolist() == [True, True, False]
    assert held.wanted(2, 10, ids(5)).tolist() == [False]


def test_the_earliest_of_several_subscriptions_counts() -> None:
    held = Attachments()
    held.attach(1, ids(5, 5), since(9, 4))
    assert held.wanted(1, 4, ids(5)).tolist() == [True]


def test_what_is_detached_is_no_longer_wanted() -> None:
    held = Attachments()
    held.attach(1, ids(5, 6), since(1, 1))
    held.detach(1, ids(5))
    held.detach(9, ids(5))
    assert held.wanted(1, 100, ids(5, 6)).tolist() == [False, True]
    assert held.brokers() == [1]
    held.detach(1, ids(6))
    assert held.brokers() == []


def test_growing_keeps_what_was_there() -> None:
    held = Attachments()
    held.attach(1, ids(1), since(1))
    held.attach(1, ids(1_000_000), since(2))
    assert held.wanted(1, 2, ids(1, 1_000_000, 999_999)).tolist() == [True, True, False]
