"""Ticks of several channels, one of which the ledger refuses."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Timer

import pytest

from support.ticking import Ticking
from tocsin.datacluster.channel import Channel
from tocsin.datacluster.storage import catalog, executions, faults
from tocsin.datacluster.storage.executions import ExecutionStats
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.transaction import Tx
from tocsin.model.position import Position


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Ticking]:
    with Ledger(tmp_path / "ledger.db") as ledger:
        made = Ticking(tmp_path, ledger)
        yield made
        made.close()


def stored(world: Ticking, channel: Channel) -> list[int]:
    return list(world.ledger.read(lambda tx: executions.windows(tx, channel.id)).values())


def problems(world: Ticking, channels: list[Channel]) -> dict[str, str]:
    """Run the channels once; what each failed of."""
    return {t.channel.spec.name: t.problem.problem for t in world.executor.run(channels) if t.problem}


def test_one_dropped_while_its_group_is_evaluated_fails_alone(world: Ticking) -> None:
    a, b, c = (world.create(name) for name in "abc")
    world.feed()
    world.engine.meanwhile = lambda name: (
        name == "b" and world.ledger.write(lambda tx: catalog.drop_channel(tx, "b", cascade=True))
    )
    refused = problems(world, [a, b, c])
    assert list(refused) == ["b"]
    assert "StaleExecution" in refused["b"]
    assert [a.windows, c.windows] == [{"reports": 1}] * 2
    assert [stored(world, a), stored(world, c)] == [[1], [1]]


def test_one_dropped_before_its_group_begins_fails_alone(world: Ticking) -> None:
    a, b = world.create("a"), world.create("b")
    world.feed()
    world.ledger.write(lambda tx: catalog.drop_channel(tx, "a", cascade=True))
    assert list(problems(world, [a, b])) == ["a"]
    assert stored(world, b) == [1]


def test_a_channel_whose_memory_is_behind_the_ledger_fails_once_and_goes_on(world: Ticking) -> None:
    a, b = world.create("a"), world.create("b")
    world.feed()
    assert not problems(world, [a, b])
    b.windows["reports"], b.head = 0, 0
    world.feed()
    assert "cannot cover (0, 2]" in problems(world, [a, b])["b"]
    assert (a.windows, b.windows, b.head) == ({"reports": 2}, {"reports": 1}, 1)
    assert not problems(world, [a, b])
    assert (b.windows, stored(world, b)) == ({"reports": 2}, [2])


def test_what_another_run_committed_meanwhile_is_not_evaluated_again(world: Ticking) -> None:
    channel = world.create("a")
    world.feed()

    def other(tx: Tx) -> None:
        execution = executions.begin(tx, channel.id, {}, 0.0)
        executions.commit(tx, execution, [], ExecutionStats(), [], 0.0)

    world.engine.meanwhile = lambda _: world.ledger.write(other)
    assert "StaleExecution" in problems(world, [channel])["a"]
    assert (channel.windows, channel.head, channel.started) == ({"reports": 1}, 1, None)
    assert not problems(world, [channel])
    assert len(world.engine.queries) == 1


@pytest.mark.parametrize("held", [0, 1])
def test_what_the_ledger_added_before_an_execution_began_is_in_its_snapshot(world: Ticking, held: int) -> None:
    """The subscription is in the ledger's transaction, and not in memory, when the tick takes up its window."""
    channel = world.create("a") if held else world.create_empty("a")
    world.feed()
    is_written, goes_on = Event(), Event()

    def hold_up(point: str) -> None:
        if point == "ledger.before-commit" and not is_written.is_set():
            is_written.set()
            goes_on.wait()

    faults.install(hold_up)
    try:
        with ThreadPoolExecutor(2) as pool:
            added = pool.submit(world.subscribe, "a", 9)
            is_written.wait()
            ticking = pool.submit(world.executor.run, [channel])
            Timer(0.2, goes_on.set).start()  # a tick that does not wait has its snapshot by then
            assert not ticking.result()[0].problem
        assert str(added.result().position) < str(Position(1, 1))
    finally:
        faults.install(None)
    assert world.engine.subscribed == [held + 1]


def test_a_tick_of_twenty_channels_commits_twice(world: Ticking) -> None:
    channels = [world.create(f"c{n}") for n in range(20)]
    world.feed()
    commits: list[str] = []
    faults.install(commits.append)
    try:
        assert not problems(world, channels)
    finally:
        faults.install(None)
    assert commits.count("ledger.after-commit") == 2
