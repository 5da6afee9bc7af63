from __future__ import annotations

import random

import numpy as np
import pytest

from tocsin.datacluster import attachments
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


@pytest.mark.parametrize("seed", range(5))
def test_it_is_a_dictionary_of_first_executions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "_MANY", 8)
    monkeypatch.setattr(attachments, "_LEAST", 5)
    chance, held, twin = random.Random(seed), Attachments(), dict[int, int]()
    for _ in range(300):
        some = [chance.randrange(5000) for _ in range(chance.randrange(1, 12))]
        if chance.random() < 0.6:
            begun = [chance.randrange(20) for _ in some]
            held.attach(1, ids(*some), since(*begun))
            for backend, first in zip(some, begun, strict=True):
                twin[backend] = min(first, twin.get(backend, first))
        else:
            some += chance.sample(sorted(twin), min(6, len(twin)))
            held.detach(1, ids(*some))
            for backend in some:
                twin.pop(backend, None)
        asked, execution = [chance.randrange(6000) for _ in range(50)] + list(twin), chance.randrange(20)
        assert held.wanted(1, execution, ids(*asked)).tolist() == [twin.get(b, 99) <= execution for b in asked]
        assert held.brokers() == [1] * bool(twin)


def test_memory_follows_what_is_held_and_not_the_highest_number() -> None:
    held = Attachments()
    for broker in range(20):
        held.attach(broker, np.arange(broker, 1_000_000, 200, dtype=np.uint32), np.ones(5000, np.int64))
    size = sum(a.nbytes for one in held._held.values() for a in (one._is_held, one._ids, one._since))
    assert size < 20 * (1.3 * 1_000_000 + 12 * 5000)
