from __future__ import annotations

import pytest

from tocsin.datacluster.storage import acks, catalog, executions, outbox
from tocsin.datacluster.storage.executions import Execution, ExecutionStats, ResultFile, StaleExecution
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.outbox import Notice
from tocsin.model.catalog import BrokerSpec, ChannelSpec, DatasetSpec
from tocsin.model.position import Position

STATS = ExecutionStats(5, 4, 3, 0.5, "join")


class Channel:
    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.id = ledger.write(lambda tx: catalog.create_channel(tx, ChannelSpec("C", (), "q"), 0.0)).id
        self.data, self.more = (
            ledger.write(lambda tx, n=name: catalog.create_dataset(tx, DatasetSpec(n, ()))).id for name in "dm"
        )
        self.broker = ledger.write(lambda tx: catalog.create_broker(tx, BrokerSpec("b", "u"))).id
        ledger.write(lambda tx: executions.open_window(tx, self.id, self.data, 10))

    def begin(self, after: int, through: int, now: float = 1.0) -> Execution:
        return self.ledger.write(lambda tx: executions.begin(tx, self.id, {self.data: (after, through)}, now))

    def commit(self, run: Execution, files: int = 1, notices: int = 1, max_waiting: int = 1000) -> None:
        made = [ResultFile(f"/somewhere/{self.id}/{run.no}-{n}.arrow", 3, 4, 100) for n in range(files)]
        notes = [Notice(self.broker, b"n")] * notices
        self.ledger.write(lambda tx: executions.commit(tx, run, made, STATS, notes, 9.0, max_waiting))

    def windows(self) -> dict[int, int]:
        return self.ledger.read(lambda tx: executions.windows(tx, self.id))


@pytest.fixture
def channel(ledger: Ledger) -> Channel:
    return Channel(ledger)


def test_a_commit_advances_window_files_and_outbox_together(channel: Channel) -> None:
    run = channel.begin(10, 15)
    assert channel.windows() == {channel.data: 10}
    channel.commit(run, files=2)
    assert channel.windows() == {channel.data: 15}
    paths = channel.ledger.read(lambda tx: tx.rows("SELECT path FROM result_file ORDER BY path"))
    assert paths == [(f"{channel.id}/1-0.arrow",), (f"{channel.id}/1-1.arrow",)]
    assert channel.ledger.read(outbox.waiting) == {channel.broker: 1}
    assert channel.ledger.read(lambda tx: executions.committed_head(tx, channel.id)) == 1


def test_a_started_execution_is_taken_up_again_unchanged(channel: Channel) -> None:
    first = channel.begin(10, 15, now=1.0)
    again = channel.begin(10, 99, now=2.0)
    assert again == Execution(channel.id, first.no, {channel.data: (10, 15)}, 1.0, 2)
    assert channel.ledger.read(lambda tx: executions.pending(tx, channel.id)) == again


def test_a_former_attempt_cannot_commit(channel: Channel) -> None:
    first = channel.begin(10, 15)
    second = channel.begin(10, 15)
    with pytest.raises(StaleExecution, match="execution 1, attempt 1"):
        channel.commit(first)
    channel.commit(second)


def test_a_commit_is_refused_the_second_time(channel: Channel) -> None:
    run = channel.begin(10, 15)
    channel.commit(run)
    with pytest.raises(StaleExecution):
        channel.commit(run)
    assert channel.ledger.read(outbox.waiting) == {channel.broker: 1}


@pytest.mark.parametrize(
    ("after", "through"),
    [
        pytest.param(9, 15, id="starting before the window's end"),
        pytest.param(11, 15, id="leaving a hole"),
        pytest.param(10, 9, id="ending before it starts"),
    ],
)
def test_bounds_that_do_not_continue_the_window_are_refused(channel: Channel, after: int, through: int) -> None:
    with pytest.raises(ValueError, match="is stored through 10"):
        channel.begin(after, through)
    assert channel.ledger.read(lambda tx: executions.pending(tx, channel.id)) is None


def test_an_abandoned_window_is_evaluated_anew_under_another_number(channel: Channel) -> None:
    channel.begin(10, 15)
    channel.ledger.write(lambda tx: executions.abandon(tx, channel.id, 2.0))
    run = channel.begin(10, 20)
    assert (run.no, run.attempt) == (2, 1)


def test_windows_open_and_close(channel: Channel) -> None:
    channel.ledger.write(lambda tx: executions.open_window(tx, channel.id, channel.more, 3))
    assert channel.windows() == {channel.data: 10, channel.more: 3}
    assert channel.ledger.read(lambda tx: executions.keep_from(tx, channel.more)) == 3
    channel.ledger.write(lambda tx: executions.close_window(tx, channel.id, channel.more))
    assert channel.ledger.read(lambda tx: executions.keep_from(tx, channel.more)) is None


def test_a_failure_is_kept_until_the_execution_succeeds(channel: Channel) -> None:
    run = channel.begin(10, 15)
    channel.ledger.write(lambda tx: executions.record_failure(tx, run, "division by zero", "SELECT 1/0", 3.0))
    (row,) = channel.ledger.read(lambda tx: executions.recent(tx, channel.id))
    assert (row.state, row.problem, row.failed_sql, row.failed_at) == ("started", "division by zero", "SELECT 1/0", 3.0)
    channel.commit(run)
    (row,) = channel.ledger.read(lambda tx: executions.recent(tx, channel.id))
    assert (row.state, row.problem, row.stats, row.ended_at) == ("committed", None, STATS, 9.0)


def test_notices_wait_until_delivered(channel: Channel) -> None:
    channel.commit(channel.begin(10, 15), notices=2)
    (first, second) = channel.ledger.read(lambda tx: outbox.due(tx, 9.0))
    channel.ledger.write(lambda tx: outbox.postpone(tx, [first.id], 20.0, "refused"))
    channel.ledger.write(lambda tx: outbox.delivered(tx, [second.id]))
    assert channel.ledger.read(lambda tx: outbox.due(tx, 19.0)) == []
    (again,) = channel.ledger.read(lambda tx: outbox.due(tx, 20.0))
    assert (again.id, again.attempts, again.execution_no, again.body) == (first.id, 1, 1, b"n")


def test_too_many_notices_become_the_newest_of_each_channel(channel: Channel) -> None:
    through = 10
    for _ in range(5):
        channel.commit(channel.begin(through, through + 1), max_waiting=3)
        through += 1
    waiting = channel.ledger.read(lambda tx: outbox.due(tx, 99.0))
    assert [notice.execution_no for notice in waiting] == [4, 5]


def test_an_acknowledgement_never_goes_back(channel: Channel) -> None:
    for position in (Position(2, 1), Position(10, 0), Position(9, 7)):
        channel.ledger.write(lambda tx, p=position: acks.acknowledge(tx, channel.broker, channel.id, p))
    assert channel.ledger.read(lambda tx: acks.acknowledged(tx, channel.broker)) == {channel.id: Position(10, 0)}
