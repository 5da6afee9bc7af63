"""A topic's log: stamps grow, the history is bounded, and one who comes back gets the rest or an exact gap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis.strategies import binary, integers, lists, sets, text

from tocsin.broker.upstream.topics import Bounds, Log, Stamp, new_epoch, owner_of, ranked
from tocsin.errors import BadArgument

WIDE = Bounds(1000, 10**6)
NAMES = sets(text("abcdef", min_size=1, max_size=4), min_size=1, max_size=8)


@given(lists(binary(max_size=20), max_size=60), integers(1, 10), integers(20, 100))
def test_stamps_grow_and_the_history_is_bounded(payloads: list[bytes], messages: int, size: int) -> None:
    log = Log(Bounds(messages, size), 5)
    positions = [log.position]
    for payload in payloads:
        positions.append(log.append(payload))
        log.check_invariants()
    assert positions == sorted(set(positions))
    assert list(log.history) == payloads[len(payloads) - len(log.history) :]


@given(lists(binary(max_size=20), max_size=40), integers(1, 10), integers(0, 40))
def test_one_who_comes_back_gets_the_rest_or_an_exact_gap(payloads: list[bytes], messages: int, stood: int) -> None:
    log = Log(Bounds(messages, 10**6), 5)
    positions = [log.position, *(log.append(payload) for payload in payloads)]
    at = min(stood, len(payloads))
    missed = log.since(positions[at])
    skipped = missed.hole.count if missed.hole else 0
    assert [*missed.items] == list(zip(positions[1:], payloads, strict=True))[at + skipped :]
    if missed.hole:
        assert (missed.hole.after, missed.hole.through, missed.reason) == (
            positions[at],
            positions[at + skipped],
            "retention",
        )


@given(lists(binary(max_size=9)), lists(binary(max_size=9)), integers(0, 50))
def test_a_log_that_is_handed_over_goes_on(before: list[bytes], after: list[bytes], at: int) -> None:
    here, stayed = Log(WIDE, 5), Log(WIDE, 5)
    for payload in before:
        here.append(payload)
        stayed.append(payload)
    there = Log(Bounds(1000, 10**6), here.epoch, here.offset, here.history)
    for payload in after:
        assert there.append(payload) == stayed.append(payload)
    position = str(Stamp(5, min(at, there.offset)))
    assert there.since(position) == stayed.since(position)


@given(lists(binary(max_size=9), max_size=20), integers(1, 5), integers(0, 10))
def test_a_new_epoch_is_a_gap_of_unknown_size_for_everyone_before(
    payloads: list[bytes], messages: int, at: int
) -> None:
    old = Stamp(7, at)
    log = Log(Bounds(messages, 10**6), new_epoch(3, [str(old), None]))
    for payload in payloads:
        log.append(payload)
    missed = log.since(str(old))
    assert missed.hole is not None
    assert (missed.hole.after, missed.hole.count, missed.reason) == (str(old), None, "owner")
    assert missed.hole.through > str(old)
    assert [payload for _, payload in missed.items] == list(log.history)
    assert all(position > missed.hole.through for position, _ in missed.items)


@pytest.mark.parametrize("position", ["", "x", "5-1", str(Stamp(5, 3)), str(Stamp(6, 0)), "0" * 12 + "-" + "0" * 8])
def test_a_position_that_is_not_behind_the_log_is_refused(position: str) -> None:
    log = Log(WIDE, 5)
    log.append(b"1")
    with pytest.raises(BadArgument):
        log.since(position)


@given(text(), NAMES, text("xyz", min_size=1, max_size=3))
def test_a_broker_that_joins_moves_only_what_it_gets(topic: str, names: set[str], joined: str) -> None:
    before, after = owner_of(topic, names), owner_of(topic, {*names, joined})
    assert after in (before, joined)
    assert ranked(topic, names)[0] == before


@given(NAMES.filter(lambda names: len(names) > 1), text())
def test_when_an_owner_leaves_the_next_in_rank_follows(names: set[str], topic: str) -> None:
    first, second, *_ = ranked(topic, names)
    assert owner_of(topic, names - {first}) == second


@given(lists(integers(0, 1000).map(lambda e: str(Stamp(e, 3))), max_size=4), integers(0, 99))
def test_a_new_epoch_is_above_all_that_was_seen(seen: list[str], now: int) -> None:
    assert all(str(Stamp(new_epoch(now, seen), 0)) > position for position in seen)
