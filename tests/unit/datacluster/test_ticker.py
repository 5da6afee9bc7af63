"""Runs that wait for the one thread of the pool while their channels are replaced, dropped or drained."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ticking import BY_JOIN, Ticking, spec
from support.waiting import until
from tocsin.datacluster.storage.ledger import Ledger

OTHER = "SELECT r.n + 1 AS m FROM {dataset} r WHERE r.n = :n"


class Busy(Ticking):
    """Its only thread evaluates ``Slow`` over ``Alerts`` until ``is_free`` is set."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        super().__init__(root, ledger)
        self.is_busy, self.is_free = threading.Event(), threading.Event()
        self.engine.meanwhile = self._hold

    def _hold(self, channel: str) -> None:
        if channel == "Slow":
            self.is_busy.set()
            self.is_free.wait(60.0)

    def occupy(self) -> None:
        self.ticker.start()
        self.create("Slow", "Alerts")
        self.feed("Alerts")
        assert self.is_busy.wait(60.0)

    def queue(self, *channels: str) -> None:
        """Channels over ``Reports`` with a run that waits."""
        with self.ticker._changed:  # so that all of them start together
            for channel in channels:
                self.create(channel)
            self.feed()
        until(lambda: set(channels) <= self.queued(), "their run waits")

    def queued(self) -> set[str]:
        with self.ticker._changed:
            return {c.spec.name for c in self.ticker._channels.values() if self.ticker._schedule.is_running(c.id)}

    def seen(self, *channels: str) -> None:
        until(lambda: all(self.channels[c].windows["reports"] == 1 for c in channels), "the record was seen")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Busy]:
    with Ledger(tmp_path / "ledger.db") as ledger:
        made = Busy(tmp_path, ledger)
        made.occupy()
        yield made
        made.is_free.set()
        made.close()


def test_a_replaced_channels_waiting_run_does_not_evaluate_the_old_query(world: Busy) -> None:
    world.queue("Mine")
    world.channels.replace(spec("Mine", query=OTHER), None)
    world.is_free.set()
    world.seen("Mine")
    assert world.engine.queries[1:] == [OTHER.format(dataset="Reports")]
    assert [t.problem for t in world.ticks] == [None] * len(world.ticks)


def test_a_dropped_channels_waiting_run_is_not_begun_and_the_others_of_its_group_are(world: Busy) -> None:
    world.queue("Mine", "Yours")
    world.channels.drop("Mine", cascade=True)
    world.is_free.set()
    world.seen("Yours")
    assert "Mine" not in {t.channel.spec.name for t in world.ticks}
    assert [t.problem for t in world.ticks] == [None] * len(world.ticks)


def test_a_drain_begins_no_run_that_waits(world: Busy) -> None:
    world.queue("Mine")
    world.ticker._stop_wait_s = 60.0
    stopping = threading.Thread(target=world.ticker.stop)
    stopping.start()
    until(lambda: world.ticker._is_stopping, "the drain began")
    world.is_free.set()
    stopping.join()
    assert [t.channel.spec.name for t in world.ticks if t.outcome] == ["Slow"]
    assert world.channels["Mine"].windows == {"reports": 0}


def test_a_replaced_channels_tables_are_dropped_outside_the_ledgers_thread(world: Busy) -> None:
    world.create("Joined", query=BY_JOIN)
    world.channels.replace(spec("Joined", query=OTHER), None)
    assert world.spark.dropped_by == [threading.current_thread().name]


def test_lag_is_the_age_of_the_oldest_record_not_seen(world: Busy, monkeypatch: pytest.MonkeyPatch) -> None:
    world.queue("Waiting")
    waiting = world.channels["Waiting"]
    stored = world.datasets["Reports"].time_of(1)
    assert stored is not None
    assert world.datasets["Reports"].time_of(2) is None
    monkeypatch.setattr(world.ticker._clock, "now", lambda: stored + 480.0, raising=False)
    assert world.ticker.lag_s(waiting) == pytest.approx(480.0)
    world.is_free.set()
    world.seen("Waiting")
    assert world.ticker.lag_s(waiting) == 0.0
