from __future__ import annotations

from dataclasses import replace

import pytest

from tocsin.datacluster.storage import catalog, executions
from tocsin.datacluster.storage import subscriptions as s
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.subscriptions import Added, Counts, Removed, Wanted
from tocsin.errors import AlreadyExists, NotFound
from tocsin.model.catalog import BrokerSpec, ChannelSpec


class Held:
    """A channel and two brokers, and the functions under test with less to write."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.channel = ledger.write(lambda tx: catalog.create_channel(tx, ChannelSpec("C", (), "q"), 0.0)).id
        self.a, self.b = (
            ledger.write(lambda tx, n=name: catalog.create_broker(tx, BrokerSpec(n, "u"))).id for name in "ab"
        )

    def add(self, *keys: str, broker: int | None = None, id: str | None = None, owner: str = "owner") -> list[Added]:
        wanted = [Wanted(key, broker or self.a, owner, id) for key in keys]
        return self.ledger.write(lambda tx: s.add_subscriptions(tx, self.channel, wanted, 7.0))

    def remove(self, *added: Added) -> list[Removed]:
        return self.ledger.write(lambda tx: s.remove_subscriptions(tx, [a.id for a in added]))

    def make(self, id: str, making: int) -> Added:
        wanted = [Wanted("[1]", self.a, "owner", id)]
        return self.ledger.write(lambda tx: s.add_subscriptions(tx, self.channel, wanted, 7.0, making))[0]

    def remove_up_to(self, making: int | None, *ids: str) -> list[str]:
        removed = self.ledger.write(lambda tx: s.remove_subscriptions(tx, ids, making=making))
        return [one.id for one in removed]

    def backends(self, since: int = 0) -> list[s.BackendRow]:
        return self.ledger.read(lambda tx: list(s.backends_since(tx, self.channel, since)))

    def counts(self) -> Counts:
        return self.ledger.read(lambda tx: s.counts(tx, self.channel))

    def version(self) -> int:
        return self.ledger.read(s.current_version)


@pytest.fixture
def held(ledger: Ledger) -> Held:
    return Held(ledger)


def test_equal_arguments_share_a_backend_subscription(held: Held) -> None:
    first, second, other = held.add("[1]", "[1]", "[2]")
    assert (first.backend_no, second.backend_no, other.backend_no) == (1, 1, 2)
    assert first.id != second.id
    assert held.counts() == Counts(3, 2)


def test_numbers_are_dense_from_one_per_channel(held: Held) -> None:
    held.add("[1]", "[2]")
    held.add("[2]", "[3]")
    assert [row.no for row in held.backends()] == [1, 2, 3]


def test_a_removal_passes_over_what_was_made_after_the_one_that_it_means(held: Held) -> None:
    held.make("x", 5), held.make("y", 3)
    assert held.remove_up_to(4, "x", "y") == ["y"]
    assert held.remove_up_to(5, "x") == ["x"]


def test_asking_again_makes_it_the_later_ones(held: Held) -> None:
    first = held.make("x", 5)
    assert held.make("x", 7) == replace(first, is_new=False, backend_changed=False, making=7)
    assert held.make("x", 6).making == 7  # it was on its way for longer
    assert held.remove_up_to(6, "x") == []
    assert held.remove_up_to(None, "x") == ["x"]


def test_only_the_call_that_changes_the_active_set_says_so(held: Held) -> None:
    assert held.add("[1]")[0].backend_changed
    assert not held.add("[1]")[0].backend_changed


def test_a_recreated_backend_subscription_keeps_its_number(held: Held) -> None:
    (first,) = held.add("[1]")
    assert held.remove(first)[0].backend_gone
    assert held.counts() == Counts(0, 0)
    (again,) = held.add("[1]")
    assert (again.backend_no, again.backend_changed) == (first.backend_no, True)


def test_what_nobody_holds_is_forgotten_up_to_a_version_and_its_number_stays_taken(held: Held) -> None:
    first, second, third = held.add("[1]", "[2]", "[3]")
    held.remove(first)
    version = held.version()
    held.remove(second)
    assert held.ledger.write(lambda tx: s.purge(tx, held.channel, version)) == 1
    assert [(row.no, row.active) for row in held.backends()] == [(third.backend_no, True), (second.backend_no, False)]
    assert held.add("[1]")[0].backend_no == 4
    assert held.counts() == Counts(2, 2)


def test_a_backend_subscription_is_gone_with_its_last_holder(held: Held) -> None:
    first, second = held.add("[1]", "[1]")
    assert [r.backend_gone for r in held.remove(first)] == [False]
    assert [r.backend_gone for r in held.remove(second)] == [True]
    assert [row.active for row in held.backends()] == [False]


def test_a_broker_is_detached_with_its_own_last_holder(held: Held) -> None:
    (on_a,), (on_b,) = held.add("[1]", broker=held.a), held.add("[1]", broker=held.b)
    (removed,) = held.remove(on_a)
    assert (removed.is_detached, removed.backend_gone) == (True, False)
    assert held.ledger.read(lambda tx: list(s.attachments(tx, held.channel))) == [(1, held.b, on_b.since_execution)]


def test_changes_since_a_version_are_only_those(held: Held) -> None:
    (first,) = held.add("[1]")
    held.add("[2]")
    seen = held.version()
    held.add("[2]")
    assert held.backends(seen) == []
    held.remove(first)
    held.add("[3]")
    assert [(row.no, row.active) for row in held.backends(seen)] == [(1, False), (3, True)]


def test_asking_again_with_the_same_id_gives_the_same_subscription(held: Held) -> None:
    first = held.add("[1]", id="mine")
    again = held.add("[1]", id="mine")
    assert (again[0].id, again[0].backend_no, again[0].since_execution) == ("mine", 1, first[0].since_execution)
    assert held.counts() == Counts(1, 1)


def test_an_id_with_other_arguments_is_refused_and_changes_nothing(held: Held) -> None:
    held.add("[1]", id="mine")
    with pytest.raises(AlreadyExists, match="mine"):
        held.add("[2]", id="mine")
    assert held.counts() == Counts(1, 1)
    assert len(held.backends()) == 1


def test_an_id_is_not_taken_over_by_another_owner_or_broker(held: Held) -> None:
    held.add("[1]", id="mine", owner="ann")
    for other in ({"owner": "bob"}, {"owner": "ann", "broker": held.b}):
        with pytest.raises(AlreadyExists) as refusal:
            held.add("[1]", id="mine", **other)
        assert str(refusal.value) == "subscription 'mine' exists already; choose another id"
    assert not held.add("[1]", id="mine", owner="ann")[0].is_new
    assert held.counts() == Counts(1, 1)


def test_a_viewer_sees_its_own_and_what_stands_on_its_brokers(held: Held) -> None:
    held.add("[1]", id="a-ann", owner="ann")
    held.add("[1]", id="b-ann", owner="ann", broker=held.b)
    held.add("[1]", id="b-bob", owner="bob", broker=held.b)

    def seen(viewer: s.Viewer | None, **more: int) -> list[str]:
        rows = held.ledger.read(lambda tx: s.list_subscriptions(tx, seen_by=viewer, **more))
        return [row.id for row in rows]

    assert seen(None) == ["a-ann", "b-ann", "b-bob"]
    assert seen(s.Viewer("ann")) == ["a-ann", "b-ann"]
    assert seen(s.Viewer("ann"), broker_id=held.b) == ["b-ann"]
    assert seen(s.Viewer("north", (held.b,))) == ["b-ann", "b-bob"]
    assert seen(s.Viewer("eve")) == []


def test_it_counts_from_the_execution_after_the_last_started(held: Held) -> None:
    assert held.add("[1]")[0].since_execution == 1
    held.ledger.write(lambda tx: executions.begin(tx, held.channel, {}, 1.0))
    assert held.add("[1]")[0].since_execution == 2


def test_moving_changes_the_broker_and_says_where_live_begins(held: Held) -> None:
    (added,) = held.add("[1]")
    held.ledger.write(lambda tx: executions.begin(tx, held.channel, {}, 1.0))
    (moved,) = held.ledger.write(lambda tx: s.move_subscriptions(tx, [added.id, "unknown"], held.b))
    assert (moved.from_broker_id, moved.broker_id, moved.since_execution, moved.live_from) == (held.a, held.b, 1, 2)
    assert held.ledger.read(lambda tx: list(s.attachments(tx, held.channel))) == [(1, held.b, 1)]


def test_removing_what_is_unknown_removes_nothing(held: Held) -> None:
    held.add("[1]")
    assert held.ledger.write(lambda tx: s.remove_subscriptions(tx, ["unknown"])) == []
    assert held.counts() == Counts(1, 1)


def test_pages_list_every_subscription_once(held: Held) -> None:
    added = held.add(*[f"[{n % 7}]" for n in range(25)]) + held.add("[1]", broker=held.b)
    found: list[s.SubscriptionRow] = []
    after = ""
    while page := held.ledger.read(lambda tx, a=after: s.list_subscriptions(tx, held.channel, limit=4, after=a)):
        found += page
        after = page[-1].id
    assert sorted(row.id for row in found) == sorted(a.id for a in added)
    on_b = held.ledger.read(lambda tx: s.list_subscriptions(tx, None, held.b))
    assert [(row.id, row.params_key, row.owner) for row in on_b] == [(added[-1].id, "[1]", "owner")]


def test_an_unknown_channel_is_not_found(held: Held) -> None:
    with pytest.raises(NotFound, match="channel"):
        held.ledger.write(lambda tx: s.add_subscriptions(tx, 999, [Wanted("[]", held.a, "o")], 0.0))
