"""Serving from a real ledger and real result files, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from support.subscribed import Subscribed
from tocsin.datacluster.service import ChannelPage, Wanted
from tocsin.datacluster.serving import Serving
from tocsin.datacluster.storage import executions
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.results import ResultStore, result_path, write_result_file
from tocsin.errors import NotFound, Refused
from tocsin.model.position import START, Position
from tocsin.tokens import LOCAL_ADMIN


class Served(Subscribed):
    """Two subscriptions on ``north``, one of them on ``south`` too; executions that give both a result."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        super().__init__(root, ledger)
        self.root = root / "results"
        self.serving = Serving(ledger, ResultStore(self.root, ledger), self.channels, self.brokers, 100, 1 << 20)
        self.one, self.two = self.subscribe("north", 1), self.subscribe("north", 2)

    def subscribe(self, broker: str, n: int) -> int:
        return self.subscribing.subscribe("Mine", broker, [Wanted(["ann", n])], LOCAL_ADMIN)[0].backend

    def unsubscribe(self, broker: str, n: int) -> None:
        held = self.subscribing.list(LOCAL_ADMIN, "Mine", broker, 100, None)
        self.subscribing.unsubscribe([one.id for one in held if one.arguments["n"] == n], LOCAL_ADMIN)

    def begin(self) -> executions.Execution:
        return self.ledger.write(lambda tx: executions.begin(tx, self.channel.id, {}, 0.0))

    def replay(self, after: Position) -> list[object]:
        """Executions with results of the first backend subscription and gaps, page by page."""
        told: list[object] = []
        while True:
            page = self.serving.replay("Mine", self.one, after, None, 10)
            assert page.after == after
            if page.gap:
                told.append((page.gap.after, page.gap.through, page.gap.count, page.gap.reason))
            told += [row.position.execution for row in page.results]
            after = page.through
            if page.is_end:
                return told

    def execute(self) -> None:
        run = self.begin()
        path = result_path(self.root, self.channel.id, run.no, run.attempt, "0")
        ids = np.array([self.one, self.two], np.uint32)
        file = write_result_file(path, np.array([1]), np.array([0], np.int32), [b"{}"], np.array([0, 2]), ids)
        stats = executions.ExecutionStats(rows=1)
        self.ledger.write(lambda tx: executions.commit(tx, run, [file], stats, [], 1.0))
        self.channel.advanced(run, {})


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Ledger(tmp_path / "ledger.db") as ledger:
        yield Served(tmp_path, ledger)


def shown(page: ChannelPage) -> list[tuple[int, tuple[int, ...]]]:
    return [(row.position.execution, row.backends) for row in page.results]


def test_a_channel_that_is_named_twice_has_one_page_after_the_earlier_cursor(served: Served) -> None:
    served.execute()
    served.execute()
    [page] = served.serving.pull("north", {"Mine": Position.end_of(1), "mine": START}, None, None, 0.0)
    assert (page.channel, shown(page)) == ("Mine", [(1, (1, 2)), (2, (1, 2))])


def test_a_lost_file_is_told_as_a_gap_and_does_not_stop_the_broker(served: Served) -> None:
    served.execute()
    served.execute()
    min(served.root.glob("*/*")).unlink()
    [page] = served.serving.pull("north", {"Mine": START}, None, None, 0.0)
    assert shown(page) == [(2, (1, 2))]
    assert page.gap is not None
    assert (page.gap.through, page.gap.count, page.gap.reason) == (Position.end_of(1), 1, "lost")


def test_a_broker_replays_what_it_holds_from_when_it_began(served: Served) -> None:
    served.execute()
    served.subscribe("south", 2)
    served.execute()
    north, south = served.brokers.id_of("north"), served.brokers.id_of("south")

    def replay(backend: int, *brokers: int) -> list[tuple[int, tuple[int, ...]]]:
        return shown(served.serving.replay("Mine", backend, START, None, 10, brokers))

    assert replay(served.two, north) == [(1, (2,)), (2, (2,))]
    assert replay(served.two, south) == [(2, (2,))]
    assert replay(served.two, south, north) == [(1, (2,)), (2, (2,))]
    assert shown(served.serving.replay("Mine", served.two, START, None, 10)) == [(1, (2,)), (2, (2,))]
    for brokers in ([south], []):
        with pytest.raises(Refused, match="a broker that holds it"):
            served.serving.replay("Mine", served.one, START, None, 10, brokers)


def test_a_pull_that_waits_ends_when_its_channel_is_dropped(served: Served) -> None:
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(served.serving.pull, "north", {"Mine": START}, None, None, 30.0)
        del served.channels._channels["mine"]
        while not waiting.done():
            served.serving.committed()
        with pytest.raises(NotFound):
            waiting.result()


def test_a_page_names_the_life_of_its_channel_as_its_subscriptions_do(served: Served) -> None:
    made = served.subscribing.subscribe("Mine", "north", [Wanted(["ann", 3])], LOCAL_ADMIN)
    [page] = served.serving.pull("north", {"Mine": START}, None, None, 0.0)
    assert page.life == made[0].life == served.channel.id


def hole(after: Position, last: int) -> tuple[object, ...]:
    return (after, Position.end_of(last), None, "unheld")


def test_executions_that_ran_while_nobody_held_a_set_are_a_gap_for_who_comes_from_before(served: Served) -> None:
    served.execute()
    served.execute()
    served.unsubscribe("north", 1)
    served.one = 0  # executions make nothing for it
    served.execute()
    served.one = served.subscribe("south", 1)
    served.execute()
    assert served.replay(Position(1, 1)) == [2, hole(Position.end_of(2), 3), 4]
    assert served.replay(Position.end_of(2)) == [hole(Position.end_of(2), 3), 4]
    assert served.replay(Position(3, 1)) == [hole(Position(3, 1), 3), 4]
    assert served.replay(Position.end_of(3)) == [4]
    assert served.replay(START) == [1, 2, 4]


def test_of_two_times_that_nobody_held_it_all_before_the_end_of_the_first_is_a_gap(served: Served) -> None:
    number = served.one
    for _ in range(2):
        served.one = number
        served.execute()
        served.unsubscribe("north", 1)
        served.one = 0
        served.execute()
        assert served.subscribe("north", 1) == number
    served.one = number
    served.execute()
    assert served.replay(Position.end_of(0)) == [hole(Position.end_of(0), 2), 3, hole(Position.end_of(3), 4), 5]
    assert served.replay(Position.end_of(2)) == [3, hole(Position.end_of(3), 4), 5]


def test_what_somebody_held_all_along_has_no_gap_nor_has_what_was_let_go_between_executions(served: Served) -> None:
    served.execute()
    served.subscribe("south", 1)
    served.unsubscribe("north", 1)
    served.execute()
    served.unsubscribe("south", 1)
    served.subscribe("north", 1)
    served.execute()
    assert served.replay(Position.end_of(0)) == [1, 2, 3]


def test_what_is_let_go_while_an_execution_runs_may_miss_it(served: Served) -> None:
    served.execute()
    served.begin()
    served.unsubscribe("north", 1)
    served.subscribe("north", 1)
    served.execute()
    served.execute()
    assert served.replay(Position.end_of(1)) == [hole(Position.end_of(1), 2), 3]


def test_what_nobody_holds_now_has_a_gap_up_to_the_last_execution(served: Served) -> None:
    served.execute()
    served.unsubscribe("north", 1)
    number, served.one = served.one, 0
    served.execute()
    served.one = number
    assert served.replay(Position.end_of(0)) == [1, hole(Position.end_of(1), 2)]
