"""Pulls, replays and attachments come together as one stream each: everything once, in order, or a told gap."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.strategies import booleans, data, integers, lists, sampled_from, sets

from support.delivered import Remembered
from tocsin.broker.upstream.cluster import Made, Result, ResultGap, ResultPage
from tocsin.broker.upstream.merging import Merge, Stream
from tocsin.model.position import Position

BACKENDS = (1, 2, 3)
IDS = {"a": 1, "b": 2, "c": 3, "A": 1}  # two ids, two textual forms, one backend


@dataclass
class Cluster:
    """One channel's results, given as the data cluster gives them."""

    rows: list[tuple[Position, frozenset[int]]] = field(default_factory=list)
    head: int = 0
    started: int = 0
    expired: int = 0
    since: dict[str, int] = field(default_factory=dict)
    ever: list[tuple[Position, frozenset[int]]] = field(default_factory=list)

    def begin(self) -> None:
        self.started = self.head + 1

    def commit(self, backends: list[frozenset[int]]) -> None:
        self.head = self.started = max(self.started, self.head + 1)
        fresh = [(Position(self.head, i), which) for i, which in enumerate(backends, 1)]
        self.rows += fresh
        self.ever += fresh

    def subscribe(self, id: str) -> Made:
        execution = self.since.setdefault(id, self.started + 1)
        return Made(id, "X", IDS[id], str(Position.end_of(execution - 1)))

    def pull(self, after: str, limit: int) -> ResultPage:
        def wanted(at: Position, backend: int) -> bool:
            return any(IDS[id] == backend and since <= at.execution for id, since in self.since.items())

        return self._page(after, str(Position.end_of(self.head)), limit, wanted)

    def replay(self, backend: int, after: str, through: str, limit: int) -> ResultPage:
        return self._page(after, through, limit, lambda _, asked: asked == backend)

    def _page(self, after: str, through: str, limit: int, wanted) -> ResultPage:  # type: ignore[no-untyped-def]
        edge, gap = str(Position.end_of(self.expired)), None
        if self.expired and after < edge:
            gap, first = ResultGap(after, edge, None, "retention"), edge
        else:
            first = after
        found = [(p, [b for b in sorted(bs) if wanted(p, b)]) for p, bs in self.rows if first < str(p) <= through]
        chosen = [(p, bs) for p, bs in found if bs]
        last = max(first, min(through, str(Position.end_of(self.head))))
        if len(chosen) > limit:
            chosen = chosen[:limit]
            last = str(chosen[-1][0])
        results = [Result(str(p), bs, msgspec.Raw(str(p).encode())) for p, bs in chosen]
        return ResultPage("X", after, last, last >= through, gap, results)


class Broker(RuleBasedStateMachine):
    """Requests and their answers are apart, so anything may happen in between."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster, self.hub = Cluster(), Remembered()
        self.merge = Merge(self.hub, max_waiting=3)
        self.made: list[Made] = []
        self.unopened: dict[str, str] = {}
        self.begun: dict[str, str] = {}
        self.pulled: list[ResultPage] = []
        self.filling: dict[str, tuple[Stream, str, str]] = {}

    @rule(which=lists(sets(sampled_from(BACKENDS), min_size=1).map(frozenset), max_size=4))
    def execution(self, which: list[frozenset[int]]) -> None:
        self.cluster.commit(which)

    @rule()
    def execution_begins(self) -> None:
        self.cluster.begin()

    @rule(behind=integers(0, 3))
    def retention(self, behind: int) -> None:
        self.cluster.expired = max(self.cluster.expired, self.cluster.head - behind)
        self.cluster.rows = [row for row in self.cluster.rows if row[0].execution > self.cluster.expired]

    @rule(id=sampled_from(sorted(IDS)), is_quick=booleans())
    def ask(self, id: str, is_quick: bool) -> None:
        if all(made.id != id for made in self.made) and self.merge.attachment(id) is None:
            self.made.append(self.cluster.subscribe(id))
            if is_quick:
                self.answered(False)

    @precondition(lambda self: self.made)
    @rule(knows=booleans())
    def answered(self, knows: bool) -> None:
        attached = self.merge.attached(self.made.pop(0), is_again=False)
        self.unopened.setdefault(attached.stream, attached.position)
        self.begun.setdefault(attached.stream, attached.position)
        if knows:
            self.known()

    @rule()
    def known(self) -> None:
        for stream, position in self.unopened.items():
            self.hub.open(stream, position)
        self.unopened.clear()

    @rule(limit=integers(1, 5), is_quick=booleans())
    def pull(self, limit: int, is_quick: bool) -> None:
        for cursor in self.merge.cursors().values():
            page = self.cluster.pull(cursor, limit)
            if is_quick:
                self.merge.take(page)
            else:
                self.pulled.append(page)

    @precondition(lambda self: self.pulled)
    @rule(data=data(), twice=booleans())
    def pages(self, data, twice: bool) -> None:  # type: ignore[no-untyped-def]
        page = data.draw(sampled_from(self.pulled))
        if not twice:
            self.pulled.remove(page)
        self.merge.take(page)

    @rule()
    def fills_begin(self) -> None:
        for stream in self.merge.behind():
            due = self.merge.begin_fill(stream)
            if due:
                self.filling[stream.name] = (stream, *due)

    @precondition(lambda self: self.filling)
    @rule(limit=integers(1, 3), fails=integers(0, 4))
    def fill(self, limit: int, fails: int) -> None:
        name, (stream, after, through) = self.filling.popitem()
        if fails == 1:
            self.merge.abandon_fill(stream)
            return
        on = self.merge.filled(stream, self.cluster.replay(stream.backend, after, through, limit))
        if on is not None:
            self.filling[name] = (stream, on, through)

    @invariant()
    def sound(self) -> None:
        self.merge.check_invariants()

    def teardown(self) -> None:
        """Let everything come to rest: nothing is missing, nothing came that should not."""
        while self.made:
            self.answered(True)
        self.known()
        self.cluster.commit([])
        for _ in range(40):
            self.fills_begin()
            while self.filling:
                self.fill(100, 0)
            for cursor in self.merge.cursors().values():
                self.merge.take(self.cluster.pull(cursor, 100))
        for stream, begun in self.begun.items():
            backend = int(stream.rpartition("/")[2])
            got = [position for position, _ in self.hub.items[stream]]
            assert got == sorted(set(got))
            due = {str(p) for p, backends in self.cluster.ever if backend in backends and str(p) > begun}
            gapped = {p for p in due if any(h.after < p <= h.through for h, _ in self.hub.holes[stream])}
            assert due - gapped <= set(got)
            assert not gapped & set(got)
        assert not self.merge.behind()


Broker.TestCase.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
TestBroker = Broker.TestCase


@pytest.fixture
def hub() -> Remembered:
    return Remembered()


def test_a_stream_that_stood_before_this_life_begins_at_what_was_acknowledged(hub: Remembered) -> None:
    merge = Merge(hub, 10)
    merge.acknowledged = {"X": str(Position.end_of(7))}
    old = merge.attached(Made("a", "X", 1, str(Position.end_of(2))), is_again=True)
    new = merge.attached(Made("b", "X", 2, str(Position.end_of(9))), is_again=False)
    assert (old.position, new.position) == (str(Position.end_of(7)), str(Position.end_of(9)))
    assert merge.cursors() == {"X": str(Position.end_of(7))}


def test_two_forms_of_the_same_arguments_are_one_stream_until_the_last_ends(hub: Remembered) -> None:
    merge = Merge(hub, 10)
    first = merge.attached(Made("a", "X", 1, str(Position.end_of(2))), is_again=False)
    hub.open(first.stream, first.position)
    assert merge.attached(Made("A", "X", 1, str(Position.end_of(5))), is_again=False) == first
    assert list(merge.detached("a")) == []
    assert list(merge.detached("A")) == ["A", "a"]
    assert merge.cursors() == {}


def page(after: int, through: int, *rows: int, gap: int | None = None) -> ResultPage:
    """A page of backend 1 between the ends of two executions, with a result in each execution of ``rows``."""
    at = [str(Position.end_of(n)) for n in (after, through)]
    lost = ResultGap(at[0], str(Position.end_of(gap)), None, "lost") if gap else None
    results = [Result(str(Position(n, 1)), [1], msgspec.Raw(b"%d" % n)) for n in rows]
    return ResultPage("X", at[0], at[1], True, lost, results)


def behind(hub: Remembered) -> tuple[Merge, Stream]:
    """A stream that begins at 2 in a channel that was pulled up to 4."""
    merge = Merge(hub, 2)
    merge.attached(Made("b", "X", 2, str(Position.end_of(2))), is_again=False)
    merge.take(page(2, 4))
    attached = merge.attached(Made("a", "X", 1, str(Position.end_of(2))), is_again=False)
    hub.open(attached.stream, attached.position)
    return merge, merge.behind()[0]


def test_what_is_pulled_during_a_replay_follows_it(hub: Remembered) -> None:
    merge, stream = behind(hub)
    merge.begin_fill(stream)
    merge.take(page(4, 5, 5))
    assert merge.filled(stream, page(2, 4, 3)) is None
    merge.take(page(5, 6, 6))
    assert [payload for _, payload in hub.items[stream.name]] == [b"3", b"5", b"6"]


def test_more_than_may_wait_is_replayed_in_another_round(hub: Remembered) -> None:
    merge, stream = behind(hub)
    merge.begin_fill(stream)
    merge.take(page(4, 7, 5, 6, 7))
    assert merge.filled(stream, page(2, 4, 3)) is None
    assert merge.behind() == [stream]
    assert merge.begin_fill(stream) == (str(Position.end_of(2)), str(Position.end_of(7)))


def test_a_gap_before_the_hub_knows_the_stream_is_told_later(hub: Remembered) -> None:
    merge = Merge(hub, 2)
    attached = merge.attached(Made("a", "X", 1, str(Position.end_of(2))), is_again=False)
    merge.take(page(2, 5, gap=4))
    hub.open(attached.stream, attached.position)
    (stream,) = merge.behind()
    merge.begin_fill(stream)
    merge.filled(stream, page(2, 5, 5, gap=4))
    ((hole, reason),) = hub.holes[stream.name]
    assert (hole.through, reason) == (str(Position.end_of(4)), "lost")
    assert [payload for _, payload in hub.items[stream.name]] == [b"5"]


def test_what_is_pulled_while_an_attachment_is_in_doubt_does_not_jump_over_what_was_missed(hub: Remembered) -> None:
    merge = Merge(hub, 2)
    attached = merge.attached(Made("a", "X", 1, str(Position.end_of(2))), is_again=False)
    hub.open(attached.stream, attached.position)
    merge.take(page(2, 4))  # 3 and 4 had results, but the cluster had lost the attachment
    merge.doubt("a")
    merge.take(page(4, 6, 6))  # it was made again with 5, and the answer is on its way
    assert merge.behind() == []
    merge.renewed(Made("a", "X", 1, str(Position.end_of(5))))
    (stream,) = merge.behind()
    assert merge.begin_fill(stream) == (str(Position.end_of(2)), str(Position.end_of(6)))
    merge.filled(stream, page(2, 6, 3, 4, 6))
    assert [payload for _, payload in hub.items[stream.name]] == [b"3", b"4", b"6"]


def test_a_renewed_attachment_is_filled_up_to_where_pulls_begin_again(hub: Remembered) -> None:
    merge = Merge(hub, 2)
    attached = merge.attached(Made("a", "X", 1, str(Position.end_of(2))), is_again=False)
    hub.open(attached.stream, attached.position)
    merge.doubt("a")
    merge.renewed(Made("a", "X", 1, str(Position.end_of(7))))
    (stream,) = merge.behind()
    assert merge.begin_fill(stream) == (str(Position.end_of(2)), str(Position.end_of(7)))


def test_what_came_during_a_fill_is_filled_again_where_its_delivery_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, hub = Cluster(), Remembered()
    merge = Merge(hub, max_waiting=3)
    attached = merge.attached(cluster.subscribe("a"), is_again=False)
    cluster.commit([frozenset({1})])
    merge.take(cluster.pull(merge.cursors()["X"], 9))
    hub.open(attached.stream, attached.position)
    (stream,) = merge.behind()
    due = merge.begin_fill(stream)
    assert due is not None
    cluster.commit([frozenset({1})])
    merge.take(cluster.pull(merge.cursors()["X"], 9))

    def deliver(name: str, items: list[tuple[str, bytes]]) -> None:
        if items[0][0] > due[1]:
            raise ZeroDivisionError("unforeseen")
        Remembered.deliver(hub, name, items)

    with monkeypatch.context() as broken:
        broken.setattr(hub, "deliver", deliver)
        with pytest.raises(ZeroDivisionError):
            merge.filled(stream, cluster.replay(1, *due, 9))
    merge.abandon_fill(stream)
    merge.check_invariants()
    assert merge.behind() == [stream]
    due = merge.begin_fill(stream)
    assert due is not None
    merge.filled(stream, cluster.replay(1, *due, 9))
    assert [at for at, _ in hub.items[attached.stream]] == [str(at) for at, _ in cluster.ever]
