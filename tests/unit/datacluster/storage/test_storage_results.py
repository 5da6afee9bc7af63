from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tocsin.datacluster.storage import catalog, executions, faults, retention
from tocsin.datacluster.storage.executions import ExecutionStats
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.results import Gap, ResultStore, result_path, write_result_file
from tocsin.errors import Unavailable
from tocsin.model.catalog import ChannelSpec, DatasetSpec, Retention
from tocsin.model.position import START, Position

Row = tuple[int, int, bytes, list[int]]


class Results:
    """A channel whose executions are given as rows of (seq, ord, payload, backends), file by file."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        self.root, self.ledger = root, ledger
        self.channel = ledger.write(lambda tx: catalog.create_channel(tx, ChannelSpec("C", (), "q"), 0.0)).id
        self.dataset = ledger.write(lambda tx: catalog.create_dataset(tx, DatasetSpec("D", ()))).id
        ledger.write(lambda tx: executions.open_window(tx, self.channel, self.dataset, 0))
        self.store = ResultStore(root, ledger)
        self.through = 0

    def execute(self, *files: list[Row], now: float = 1.0) -> None:
        bounds = {self.dataset: (self.through, self.through + 1)}
        run = self.ledger.write(lambda tx: executions.begin(tx, self.channel, bounds, now))
        written = [self._write(run, part, rows) for part, rows in enumerate(files)]
        stats = ExecutionStats(rows=sum(map(len, files)))
        self.ledger.write(lambda tx: executions.commit(tx, run, written, stats, [], now))
        self.through += 1

    def _write(self, run: executions.Execution, part: int, rows: list[Row]) -> executions.ResultFile:
        path = result_path(self.root, self.channel, run.no, run.attempt, str(part))
        seq, ord, payload, backends = zip(*rows, strict=True) if rows else ((), (), (), ())
        offsets = np.concatenate(([0], np.cumsum([len(b) for b in backends], dtype=np.int64)))
        ids = np.array([i for b in backends for i in b], np.uint32)
        return write_result_file(path, np.array(seq, np.int64), np.array(ord, np.int32), list(payload), offsets, ids)

    def replay(self, backend: int, after: Position, through: Position):
        return self.store.page(self.channel, after, lambda _, ids: ids == backend, through=through)

    def pull(self, *wanted: int, after: Position = START, max_rows: int = 100, max_bytes: int = 1 << 20):
        return self.store.page(self.channel, after, lambda _, ids: np.isin(ids, wanted), max_rows, max_bytes)


@pytest.fixture
def results(tmp_path: Path, ledger: Ledger) -> Results:
    return Results(tmp_path / "results", ledger)


def shown(page) -> list[tuple[bytes, list[int]]]:
    return [(row.payload, row.backends) for row in page.rows]


def test_rows_are_ordered_over_all_files_by_record_then_ordinal(results: Results) -> None:
    results.execute([(5, 1, b"d", [1]), (5, 0, b"c", [1])], [(2, 0, b"a", [1, 2]), (5, 0, b"b", [0, 1])])
    page = results.pull(0, 1, 2)
    assert shown(page) == [(b"a", [1, 2]), (b"b", [0, 1]), (b"c", [1]), (b"d", [1])]
    assert [row.position for row in page.rows] == [Position(1, n) for n in (1, 2, 3, 4)]


def test_only_what_is_wanted_comes(results: Results) -> None:
    results.execute([(1, 0, b"a", [1, 2, 3]), (2, 0, b"b", [2]), (3, 0, b"c", [1, 3])])
    page = results.pull(1, 3)
    assert shown(page) == [(b"a", [1, 3]), (b"c", [1, 3])]
    assert [row.position.row for row in page.rows] == [1, 3]
    assert (page.through, page.is_end) == (Position.end_of(1), True)


def test_who_wants_what_may_depend_on_the_execution(results: Results) -> None:
    results.execute([(1, 0, b"a", [1])])
    results.execute([(2, 0, b"b", [1])])
    page = results.store.page(results.channel, START, lambda no, ids: (ids == 1) & (no >= 2))
    assert shown(page) == [(b"b", [1])]


def test_a_full_page_ends_at_its_last_row_and_the_next_goes_on(results: Results) -> None:
    results.execute([(n, 0, b"x" * 10, [1]) for n in range(3)])
    results.execute([(n, 0, b"y" * 10, [1]) for n in range(2)])
    first = results.pull(1, max_rows=2)
    assert (len(first.rows), first.through, first.is_end) == (2, Position(1, 2), False)
    second = results.pull(1, after=first.through, max_bytes=25)
    assert (shown(second), second.through) == ([(b"x" * 10, [1]), (b"y" * 10, [1])], Position(2, 1))
    third = results.pull(1, after=second.through)
    assert (shown(third), third.is_end) == ([(b"y" * 10, [1])], True)
    assert results.pull(1, after=third.through).rows == []


def test_a_row_larger_than_the_page_still_comes(results: Results) -> None:
    results.execute([(1, 0, b"x" * 1000, [1]), (2, 0, b"y", [1])])
    assert shown(results.pull(1, max_bytes=10)) == [(b"x" * 1000, [1])]


def test_nothing_committed_is_the_end(results: Results) -> None:
    page = results.pull(1)
    assert (page.rows, page.through, page.is_end, page.gap) == ([], START, True, None)


def test_an_execution_without_rows_moves_the_position(results: Results) -> None:
    results.execute([])
    results.execute()
    assert results.pull(1).through == Position.end_of(2)


def test_ids_do_not_depend_on_the_attempt_and_tell_rows_apart(results: Results) -> None:
    results.execute([(1, 0, b"a", [1]), (1, 1, b"b", [1]), (2, 0, b"c", [1])])
    ids = [row.row_id for row in results.pull(1).rows]
    again = ResultStore(results.root, results.ledger)
    assert [row.row_id for row in again.page(results.channel, START, lambda _, i: i > 0).rows] == ids
    assert len(set(ids)) == 3


def test_replay_is_one_backend_subscription_within_bounds(results: Results) -> None:
    for n in range(4):
        results.execute([(n, 0, b"%d" % n, [1, 2]), (n, 1, b"other", [2])])
    page = results.replay(1, Position(1, 1), Position(3, 1))
    assert (shown(page), page.through) == ([(b"1", [1]), (b"2", [1])], Position(3, 1))
    page = results.replay(2, Position.end_of(1), Position.end_of(2))
    assert shown(page) == [(b"1", [2]), (b"other", [2])]
    assert page.through == Position.end_of(2)


def test_a_file_of_several_batches_reads_as_one(results: Results) -> None:
    results.execute([(1, 0, b"a", [1])])
    path = next(results.root.glob("*/*"))
    reader = pa.ipc.open_file(path)
    batch = reader.get_batch(0)
    with path.open("wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    assert shown(results.pull(1)) == [(b"a", [1]), (b"a", [1])]


@pytest.mark.parametrize(
    "retain",
    [
        pytest.param(Retention(age_s=10), id="by age"),
        pytest.param(Retention(records=2), id="by rows"),
        pytest.param(Retention(size_bytes=2500), id="by bytes"),
    ],
)
def test_expired_results_are_gone_and_told_as_a_gap(results: Results, retain: Retention) -> None:
    for n, now in enumerate((1.0, 2.0, 50.0, 51.0)):
        results.execute([(n, 0, b"%d" % n, [1])], now=now)
    assert results.store.expire(results.channel, retain, 55.0) == 2
    assert len(list(results.root.glob("*/*"))) == 2
    page = results.pull(1)
    assert shown(page) == [(b"2", [1]), (b"3", [1])]
    assert page.gap == Gap(START, Position.end_of(2), 2)
    assert results.pull(1, after=Position(1, 1)).gap == Gap(Position(1, 1), Position.end_of(2), 1)
    assert results.pull(1, after=Position.end_of(2)).gap is None
    assert results.store.expire(results.channel, retain, 55.0) == 0


def test_a_gap_of_nothing_is_no_gap(results: Results) -> None:
    results.execute([(1, 0, b"a", [1])])
    results.execute([(2, 0, b"b", [1])], now=50.0)
    results.store.expire(results.channel, Retention(age_s=10), 55.0)
    assert results.pull(1, after=Position(1, 1)).gap is None


def test_old_executions_without_results_are_forgotten(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "RECENT", 2)
    monkeypatch.setattr(retention, "COUNTED", 1)
    results.execute([(1, 0, b"a", [1])])
    for _ in range(3):
        results.execute([])
    results.execute([(1, 0, b"b", [1])])
    results.execute([(1, 0, b"c", [1])], now=50.0)
    assert results.store.expire(results.channel, Retention(age_s=10), 55.0) == 5
    kept = results.ledger.read(lambda tx: executions.recent(tx, results.channel, 100))
    assert [row.execution.no for row in kept] == [6, 5]
    assert results.pull(1).gap == Gap(START, Position.end_of(5), None)
    inside = Position(1, 0)  # of the last execution that is forgotten: nobody knows how much of it is missing
    assert results.pull(1, after=inside).gap == Gap(inside, Position.end_of(5), None)
    assert len(list(results.root.glob("*/*"))) == 1


def test_with_nothing_to_forget_nothing_is_written_and_little_is_read(results: Results) -> None:
    insert = """INSERT INTO execution (channel_id, no, state, attempt, bounds, window_time, ended_at, result_rows)
                VALUES (?, ?, 'committed', 1, '{}', 1.0, 50.0, 1)"""
    rows = [(results.channel, no) for no in range(1, 20_001)]
    results.ledger.write(lambda tx: tx.executemany(insert, rows))
    sql = "UPDATE channel_progress SET committed = 20000, started = 20000, pruned = 19000, kept_rows = 20000"
    results.ledger.write(lambda tx: tx.execute(sql))
    steps: list[str] = []
    faults.install(steps.append)
    retain = Retention(age_s=10, records=20_000, size_bytes=1 << 20)
    with results.ledger._readers.transaction() as connection:
        connection.set_progress_handler(lambda: steps.append("a hundred instructions"), 100)
    assert results.store.expire(results.channel, retain, 55.0) == 0
    assert "ledger.after-commit" not in steps
    assert len(steps) < 5


def test_what_is_kept_is_summed_up_again_when_an_older_ledger_is_opened(
    tmp_path: Path,
) -> None:
    with Ledger(tmp_path / "l") as ledger:
        results = Results(tmp_path / "results", ledger)
        for n in range(3):
            results.execute([(n, 0, b"a", [1]), (n, 1, b"b", [1])])
        before = ledger.read(lambda tx: retention.progress(tx, results.channel))
        for column in ("pruned", "kept_rows", "kept_bytes"):
            ledger.write(lambda tx, c=column: tx.execute(f"ALTER TABLE channel_progress DROP COLUMN {c}"))
        for column in ("broken_through", "left_after", "held_since"):
            ledger.write(lambda tx, c=column: tx.execute(f"ALTER TABLE backend_subscription DROP COLUMN {c}"))
        ledger.write(lambda tx: tx.execute("ALTER TABLE subscription DROP COLUMN making"))
        ledger.write(lambda tx: tx.execute("DROP TABLE dataset_progress"))
        ledger.write(lambda tx: tx.execute("DELETE FROM schema_version WHERE version > 1"))
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.read(lambda tx: retention.progress(tx, results.channel)) == before
    assert (before.kept_rows, before.kept_bytes > 0) == (6, True)


def _remove(path: Path) -> None:
    path.unlink()


def _replace(path: Path) -> None:
    path.write_bytes(b"no Arrow file")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200] + path.read_bytes()[-20:])


def _scramble(path: Path) -> None:
    """Offsets that point outside the file."""
    content = path.read_bytes()
    at = content.rindex(np.array([0, 1, 2], np.int64).tobytes())
    path.write_bytes(content[:at] + np.array([0, 2**40, 2**41], np.int64).tobytes() + content[at + 24 :])


@pytest.mark.parametrize("harm", [_remove, _replace, _cut, _scramble])
def test_a_lost_file_is_a_gap_and_what_stands_around_it_comes(results: Results, harm: Callable[[Path], None]) -> None:
    results.execute([(1, 0, b"a", [1])])
    results.execute([(2, 0, b"b", [1]), (2, 1, b"c", [1])])
    results.execute([(3, 0, b"d", [1])])
    harm(sorted(results.root.glob("*/*"))[1])
    first = results.pull(1)
    assert (shown(first), first.through, first.is_end, first.gap) == ([(b"a", [1])], Position.end_of(1), False, None)
    second = results.pull(1, after=first.through)
    assert second.gap == Gap(first.through, Position.end_of(2), 2, "lost")
    assert (shown(second), second.is_end) == ([(b"d", [1])], True)
    assert results.store.lost_rows(results.channel) == 2
    results.store.expire(results.channel, Retention(None, 1, None), 10.0)
    assert results.store.lost_rows(results.channel) == 0


def test_a_channel_that_is_gone_has_lost_nothing(results: Results) -> None:
    results.execute([(1, 0, b"a", [1])])
    _remove(next(iter(results.root.glob("*/*"))))
    results.pull(1)
    assert results.store.lost_rows(results.channel) == 1
    results.ledger.write(lambda tx: catalog.drop_channel(tx, "C", cascade=True))
    results.store.sweep()
    assert results.store.lost_rows(results.channel) == 0


def test_a_loss_next_to_what_retention_took_is_one_gap(results: Results, caplog: pytest.LogCaptureFixture) -> None:
    for no in range(1, 5):
        results.execute([(no, 0, b"%d" % no, [1])], now=no)
    results.store.expire(results.channel, Retention(None, 3, None), 10.0)
    for path in sorted(results.root.glob("*/*"))[:2]:
        path.unlink()
    for _ in range(2):
        page = results.pull(1)
        assert page.gap == Gap(START, Position.end_of(3), 3, "lost")
        assert shown(page) == [(b"4", [1])]
    assert sum("lost" in message for message in caplog.messages) == 2


def test_a_loss_beyond_the_limit_is_not_told(results: Results) -> None:
    results.execute([(1, 0, b"a", [1])])
    results.execute([(2, 0, b"b", [1])])
    max(results.root.glob("*/*")).unlink()
    page = results.replay(1, START, Position.end_of(1))
    assert (shown(page), page.gap, page.through) == ([(b"a", [1])], None, Position.end_of(1))


def test_results_whose_directory_is_away_are_not_lost(results: Results) -> None:
    results.execute([(1, 0, b"a", [1])])
    results.root.rename(results.root.with_name("elsewhere"))
    with pytest.raises(Unavailable, match="results cannot be read"):
        results.pull(1)
    results.root.with_name("elsewhere").rename(results.root)
    assert shown(results.pull(1)) == [(b"a", [1])]


def test_writing_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = result_path(tmp_path, 7, 255, 2, "0")
    made = write_result_file(path, np.array([1]), np.array([0]), pa.array(["{}"]), np.array([0, 2]), np.array([4, 5]))
    assert [p.name for p in path.parent.iterdir()] == ["0000000000ff-2-0.arrow"]
    assert (made.name, made.rows, made.pairs) == ("7/0000000000ff-2-0.arrow", 1, 2)
    assert made.size_bytes == path.stat().st_size
