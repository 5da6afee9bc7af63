"""Whose death excuses a gap."""

from __future__ import annotations

from tocsin.broker.upstream.topics import owner_of
from tocsin.chaos.faults import may_own

BROKERS = ("a", "b", "c")
TOPICS = [f"t{n}" for n in range(60)]


def owned(name: str, among: tuple[str, ...] = BROKERS) -> set[str]:
    return {topic for topic in TOPICS if owner_of(topic, among) == name}


def test_while_all_were_there_a_broker_owns_what_is_its_own() -> None:
    assert may_own("a", BROKERS, set(), TOPICS) == owned("a") != set(TOPICS)


def test_one_that_was_away_may_or_may_not_have_its_topics_back() -> None:
    assert may_own("a", BROKERS, {"b"}, TOPICS) == owned("a") | owned("a", ("a", "c"))
    assert may_own("a", BROKERS, {"a"}, TOPICS) == owned("a")


def test_the_last_one_may_own_everything() -> None:
    assert may_own("a", BROKERS, {"b", "c"}, TOPICS) == set(TOPICS)
