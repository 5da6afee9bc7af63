"""What had to arrive, and what became of it. Knows nothing of the system but its promise.

What a subscription must get:

* Of a topic, every publication whose acknowledged position is behind the one that the subscription began at.
* Of a channel, every matching record that was sent after the subscription's acknowledgement, and of each sender
  everything behind the first that came: whether a record that was under way meanwhile belongs to it is open.
* Of a subscription that was ended, only what lies before the last that came: the rest may have been on its way.

Whatever was not acknowledged to its sender may come or not, but once at most. What had to come and did not is
*gapped* where a gap was told at its place, else *missing*. A gap that says how many it is covers no more than that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tocsin.chaos.evidence import Above, ByKind, Evidence, Got, Hole, Interval, Name, Publication, Record, Topic, Wish


@dataclass(slots=True)
class Verdict:
    """Of one subscription, or of many; ``problems`` are sentences about what is wrong."""

    expected: int = 0
    delivered: int = 0
    gapped: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    doubled: int = 0
    out_of_order: int = 0
    strange: int = 0
    false_gaps: int = 0
    unanswered: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not self.problems

    @property
    def is_complete(self) -> bool:
        """Whether nothing is to be waited for."""
        return self.missing == 0 and self.unanswered == 0

    def add(self, other: Verdict) -> None:
        for name in (
            "expected",
            "delivered",
            "missing",
            "doubled",
            "out_of_order",
            "strange",
            "false_gaps",
            "unanswered",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.gapped.update(other.gapped)
        self.problems.extend(other.problems)


def evaluate(evidence: Evidence) -> Verdict:
    total = Verdict()
    for interval in evidence.intervals:
        total.add(judge(interval, evidence.records, evidence.publications))
    if total.expected == 0:
        total.problems.append("nothing had to arrive, so nothing was tested")
    return total


def judge(interval: Interval, records: Sequence[Record], publications: Sequence[Publication]) -> Verdict:
    """One subscription against everything that went in."""
    verdict = Verdict()
    if interval.stood is None:
        if interval.ended is None:
            verdict.unanswered = 1
            verdict.problems.append(f"{interval.id}: subscribing was never answered")
        return verdict
    got = [item for item in interval.seen if isinstance(item, Got)]
    if isinstance(interval.wish, Topic):
        published = [p for p in publications if p.topic == interval.wish.name]
        must = _must_of_topic(interval, published)
        verdict.strange = _misplaced(interval, got, published)
        _count(interval, verdict, must, {p.name for p in published}, _holes_by_position(interval, published))
    else:
        matching = [r for r in records if matches(interval.wish, r)]
        must = _must_of_channel(interval, got, matching)
        _count(interval, verdict, must, {r.name for r in matching}, _holes_by_place(interval))
    verdict.out_of_order = _disorder(got, isinstance(interval.wish, Topic))
    _tell(interval, verdict)
    return verdict


def matches(wish: Wish, record: Record) -> bool:
    match wish:
        case ByKind(kind):
            return record.kind == kind
        case Above(bound):
            return record.value > bound
        case Topic():
            return False


# --- what must come --------------------------------------------------------------------------------------


def _must_of_topic(interval: Interval, published: Iterable[Publication]) -> set[Name]:
    last = None if interval.ended is None else _last_position(interval)
    return {
        p.name
        for p in published
        if p.position is not None and p.position > interval.position and (last is None or p.position <= last)
    }


def _last_position(interval: Interval) -> str:
    return interval.seen[-1].through if interval.seen else interval.position


def _must_of_channel(interval: Interval, got: Sequence[Got], matching: Iterable[Record]) -> set[Name]:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for item in got:
        first.setdefault(item.source, item.number)
        last[item.source] = max(item.number, last.get(item.source, 0))
    assert interval.stood is not None
    stood = interval.stood

    def is_inside(record: Record) -> bool:
        begun = record.sent > stood or record.number >= first.get(record.source, record.number + 1)
        return begun and (interval.ended is None or record.number <= last.get(record.source, -1))

    return {record.name for record in matching if record.is_certain and is_inside(record)}


# --- what gaps cover ---------------------------------------------------------------------------------------


def _holes_by_position(interval: Interval, published: Iterable[Publication]) -> Iterator[tuple[Hole, set[Name]]]:
    known = [(p.position, p.name) for p in published if p.position is not None]
    for hole in _holes(interval):
        yield hole, {name for position, name in known if hole.after < position <= hole.through}


def _holes_by_place(interval: Interval) -> Iterator[tuple[Hole, _Between]]:
    """A channel's positions are not known to those who send records; what a hole covers lies between its neighbours."""
    before: dict[str, int] = {}
    after = _numbers_after(interval.seen)
    for index, item in enumerate(interval.seen):
        if isinstance(item, Hole):
            yield item, _Between(dict(before), after[index])
        else:
            before[item.source] = max(item.number, before.get(item.source, -1))


@dataclass(frozen=True, slots=True)
class _Between:
    """For each sender, the numbers between the last before and the first after."""

    before: dict[str, int]
    after: dict[str, int]

    def __contains__(self, name: object) -> bool:
        assert isinstance(name, tuple)
        source, number = name
        return bool(self.before.get(source, -1) < number < self.after.get(source, number + 1))


def _numbers_after(seen: Sequence[Got | Hole]) -> list[dict[str, int]]:
    """For each place, the least number of every sender that came behind it."""
    found: list[dict[str, int]] = []
    least: dict[str, int] = {}
    for item in reversed(seen):
        found.append(dict(least) if isinstance(item, Hole) else {})
        if isinstance(item, Got):
            least[item.source] = min(item.number, least.get(item.source, item.number))
    return found[::-1]


def _holes(interval: Interval) -> Iterator[Hole]:
    return (item for item in interval.seen if isinstance(item, Hole))


# --- counting ----------------------------------------------------------------------------------------------


def _count(
    interval: Interval,
    verdict: Verdict,
    must: set[Name],
    possible: set[Name],
    holes: Iterable[tuple[Hole, set[Name] | _Between]],
) -> None:
    times = Counter(item.name for item in interval.seen if isinstance(item, Got))
    verdict.expected, verdict.delivered = len(must), len(must & times.keys())
    verdict.doubled = times.total() - len(times)
    verdict.strange += len(times.keys() - possible)
    lost = must - times.keys()
    for hole, covered in holes:
        if hole.reason not in interval.excused:
            verdict.false_gaps += 1
        here = sorted(name for name in lost if name in covered)[: hole.count]
        verdict.gapped[hole.reason] += len(here)
        lost.difference_update(here)
    verdict.gapped = +verdict.gapped
    verdict.missing = len(lost)
    if lost:
        source, number = min(lost)
        verdict.problems.append(f"{interval.id}: {len(lost)} are missing, such as {source} {number}")


def _misplaced(interval: Interval, got: Iterable[Got], published: Iterable[Publication]) -> int:
    """What came at another position than its publisher was told, or from before the subscription."""
    positions = {p.name: p.position for p in published}
    wrong = (item for item in got if positions.get(item.name) not in (None, item.through))
    return sum(1 for _ in wrong) + sum(item.through <= interval.position for item in got)


def _disorder(got: Sequence[Got], is_topic: bool) -> int:
    """How often something came behind what it should have come before; the same again is no disorder."""
    found = sum(second.through < first.through for first, second in pairwise(got))
    if is_topic:
        return found
    last: dict[str, int] = {}
    for item in got:
        found += item.number < last.get(item.source, -1)
        last[item.source] = max(item.number, last.get(item.source, -1))
    return found


def _tell(interval: Interval, verdict: Verdict) -> None:
    told = {
        "came more than once": verdict.doubled,
        "came out of order": verdict.out_of_order,
        "should not have come": verdict.strange,
    }
    verdict.problems.extend(f"{interval.id}: {count} {what}" for what, count in told.items() if count)
    if verdict.false_gaps:
        reasons = sorted({hole.reason for hole in _holes(interval)} - interval.excused)
        verdict.problems.append(f"{interval.id}: {verdict.false_gaps} gaps without a cause ({', '.join(reasons)})")
