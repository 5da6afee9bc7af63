from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tocsin.clock import VirtualClock
from tocsin.datacluster.storage.dataset import DatasetStore, StoreOptions
from tocsin.datacluster.storage.frames import Frame, Kind
from tocsin.datacluster.storage.grouping import Waiting, placed, settle
from tocsin.datacluster.storage.idempotency import Appended, RememberedKeys, feed_key, joined_key
from tocsin.errors import KeyReused
from tocsin.model.catalog import Column, DatasetSpec
from tocsin.model.types import SqlType

REPORTS = DatasetSpec("Reports", (Column("n", SqlType("INT")),))
ONE = pa.table({"n": pa.array([1], pa.int32())})


class Reports:
    """A store that knows two keys for a minute."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.clock = directory, VirtualClock(1000.0)
        self.open()

    def open(self) -> None:
        self.store = DatasetStore(self.directory, REPORTS, self.clock, StoreOptions(max_keys=2, key_age_s=60.0))

    def is_new(self, key: str, digest: str = "") -> bool:
        return not self.store.append(ONE, key, digest).is_duplicate

    def reopen(self, *, compacted: bool) -> None:
        if compacted:
            self.store._records.log.roll()
            assert self.store.compact()
        self.store.close()
        self.open()

    def forget(self) -> None:
        """Let every ordinary key become too old, and too many."""
        self.clock.advance(3600.0)
        for n in range(5):
            assert self.is_new(f"other {n} {self.clock.now()}")


@pytest.fixture
def reports(tmp_path: Path) -> Reports:
    return Reports(tmp_path)


@pytest.mark.parametrize("compacted", [False, True])
def test_the_same_key_with_other_content_is_refused(reports: Reports, compacted: bool) -> None:
    assert reports.is_new("k", "one")
    reports.reopen(compacted=compacted)
    assert not reports.is_new("k", "one")
    with pytest.raises(KeyReused, match="'k' was used before with other content"):
        reports.is_new("k", "two")
    assert reports.store.head == 1


def test_content_that_nobody_described_is_not_compared(reports: Reports) -> None:
    assert reports.is_new("k")
    assert not reports.is_new("k", "one")


@pytest.mark.parametrize("compacted", [False, True])
def test_the_last_batch_of_a_feed_is_known_for_ever(reports: Reports, compacted: bool) -> None:
    for part in ("0", "1"):
        assert reports.is_new(f"{feed_key('f', 7)}/{part}")
    reports.forget()
    reports.reopen(compacted=compacted)
    reports.forget()
    assert not reports.is_new(f"{feed_key('f', 7)}/0")
    assert not reports.is_new(f"{feed_key('f', 7)}/1")
    assert reports.is_new(f"{feed_key('f', 7)}/2")
    assert reports.is_new(f"{feed_key('g', 7)}/0")


def test_a_later_batch_of_a_feed_frees_the_earlier_ones(reports: Reports) -> None:
    assert reports.is_new(f"{feed_key('f', 9)}/0")
    assert reports.is_new(f"{feed_key('f', 10)}/0")
    reports.forget()
    known = reports.store._records.log.keys_through(reports.store.head)
    assert [k.key for k in known if k.key.startswith("feed")] == [f"{feed_key('f', 10)}/0"]


@pytest.mark.parametrize(("first", "second"), [("", "one"), ("one", "")])
def test_a_key_of_the_same_group_is_held_to_the_same_rule(first: str, second: str) -> None:
    keys = RememberedKeys(VirtualClock(0.0), 10, 60.0)
    waiting = [Waiting(Frame(Kind.RECORDS, 1, 0, 1, 0, joined_key("k", digest), b"x")) for digest in (first, second)]
    fresh, again = placed(waiting, head=0, now_us=0, start=0, keys=keys, prepare=lambda _: None)
    assert ([p.waiting for p in fresh], again, waiting[1].error) == (waiting[:1], waiting[1:], None)
    settle(fresh, again, keys)
    assert [w.done for w in waiting] == [Appended(1, 1, 1), Appended(1, 1, 1).again()]
