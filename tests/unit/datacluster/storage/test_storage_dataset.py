from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tocsin.clock import VirtualClock
from tocsin.datacluster.storage import dataset, faults, manifest
from tocsin.datacluster.storage.arrow_types import arrow_schema
from tocsin.datacluster.storage.dataset import DatasetStore, StoreOptions
from tocsin.datacluster.storage.tail import Tail
from tocsin.errors import BadArgument, BadRecords, Corrupt, Unavailable
from tocsin.model.arrow import arrow_type
from tocsin.model.catalog import Column, DatasetSpec, Retention
from tocsin.model.types import SqlType

INT, TEXT = SqlType("INT"), SqlType("STRING")
REPORTS = DatasetSpec("Reports", (Column("n", INT, not_null=True), Column("t", TEXT)))
USERS = DatasetSpec("Users", (Column("id", TEXT), Column("v", INT)), ("ID",))


class Store:
    """A dataset store with rows as dicts."""

    def __init__(self, directory: Path, spec: DatasetSpec, **options: Any) -> None:
        self.clock = VirtualClock(1000.0)
        options = {"segment_bytes": 500, "delete_after_s": 0.0} | options
        self._open = lambda spec: DatasetStore(directory, spec, self.clock, StoreOptions(**options))
        self.store = self._open(spec)

    def append(self, *rows: dict[str, Any], key: str | None = None) -> Any:
        return self.store.append(pa.Table.from_pylist(list(rows), schema=arrow_schema(self.store.spec)), key)

    def delete(self, *ids: str) -> None:
        self.store.delete(pa.table({"id": list(ids)}))

    def reopen(self, spec: DatasetSpec | None = None) -> None:
        self.store.close()
        self.store = self._open(spec or self.store.spec)

    def compact(self) -> None:
        self.store._records.log.roll()
        assert self.store.compact()


@pytest.fixture
def reports(tmp_path: Path) -> Store:
    return Store(tmp_path, REPORTS)


@pytest.fixture
def users(tmp_path: Path) -> Store:
    return Store(tmp_path, USERS)


def numbers(table: pa.Table) -> list[int]:
    return table.column("n").to_pylist()


def versions(table: pa.Table) -> dict[str, tuple[int | None, int]]:
    return {r["id"]: (r["v"], r["__seq"]) for r in table.to_pylist()}


def fill(reports: Store, count: int) -> None:
    for n in range(1, count + 1):
        reports.append({"n": n})


class TestAppending:
    def test_a_window_shows_each_record_once(self, reports: Store) -> None:
        reports.append({"n": 1}, {"n": 2})
        reports.append({"n": 3})
        assert numbers(reports.store.new(0, 2)) == [1, 2]
        assert numbers(reports.store.new(1, 3)) == [2, 3]
        assert reports.store.new(2, 3).column("__seq").to_pylist() == [3]
        assert numbers(reports.store.old(2, 3)) == [1, 2]
        assert numbers(reports.store.now(2)) == [1, 2]

    def test_records_are_found_in_memory_log_and_parquet(self, reports: Store) -> None:
        fill(reports, 3)
        reports.compact()
        reports.append({"n": 4})
        reports.reopen()
        reports.append({"n": 5})
        assert numbers(reports.store.now()) == [1, 2, 3, 4, 5]
        assert numbers(reports.store.new(1, 4)) == [2, 3, 4]

    def test_a_small_memory_changes_nothing(self, tmp_path: Path) -> None:
        reports = Store(tmp_path, REPORTS, tail_bytes=0, cache_bytes=0)
        fill(reports, 9)
        reports.compact()
        fill(reports, 2)
        assert numbers(reports.store.new(5, 11)) == [6, 7, 8, 9, 1, 2]

    def test_before_images_of_new_records_are_null(self, reports: Store) -> None:
        fill(reports, 3)
        table = reports.store.now_before(2, 3)
        assert table.column("__before_n").to_pylist() == [1, 2, None]
        assert reports.store.new_before(2, 3).column("__before_n").to_pylist() == [None]

    def test_a_snapshot_is_files_and_tail(self, reports: Store) -> None:
        fill(reports, 3)
        reports.compact()
        reports.append({"n": 4})
        found = reports.store.snapshot()
        stored = [n for path in found.parquet_paths for n in numbers(pq.read_table(path))]
        assert (stored, numbers(found.tail), found.through) == ([1, 2, 3], [4], 4)

    def test_a_repeated_key_appends_nothing(self, reports: Store) -> None:
        first = reports.append({"n": 1}, key="k")
        reports.append({"n": 2})
        reports.compact()
        reports.reopen()
        assert reports.append({"n": 1}, key="k") == first.again()
        assert reports.store.head == 2

    def test_whatever_the_head_shows_can_be_read_at_every_step(self, tmp_path: Path) -> None:
        reports = Store(tmp_path, REPORTS, segment_bytes=1)
        steps: list[str] = []

        def look(name: str) -> None:
            steps.append(name)
            assert numbers(reports.store.now()) == list(range(1, reports.store.head + 1)), name

        faults.install(look)
        fill(reports, 3)
        assert {"log.after-sync", "log.before-head", "log.roll"} <= set(steps)

    def test_what_memory_does_not_hold_yet_comes_from_the_log(self, reports: Store) -> None:
        fill(reports, 2)
        records = reports.store._records
        records._tail = Tail(1, 1 << 20)
        assert numbers(reports.store.new(0, 2)) == [1, 2]
        with pytest.raises(Unavailable, match=r"the records in \(1, 3\] cannot be read"):
            records.read(0, 3)

    def test_nothing_appended_takes_no_number(self, reports: Store) -> None:
        assert reports.append().count == 0
        assert reports.store.head == 0

    def test_many_threads_append_without_loss(self, reports: Store) -> None:
        threads = [threading.Thread(target=lambda n=n: reports.append({"n": n})) for n in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(numbers(reports.store.now())) == list(range(40))
        assert reports.store.now().column("__seq").to_pylist() == list(range(1, 41))

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            pytest.param({"n": [1]}, "expects the columns n, t", id="a column is missing"),
            pytest.param({"n": ["x"], "t": ["y"]}, "expects the columns", id="a value has another type"),
            pytest.param({"n": pa.array([None], pa.int32()), "t": ["y"]}, "'n' must not be NULL", id="NULL"),
        ],
    )
    def test_records_that_do_not_fit_are_refused(self, reports: Store, table: Any, message: str) -> None:
        with pytest.raises(BadRecords, match=message):
            reports.store.append(pa.table(table))
        assert reports.store.head == 0

    def test_a_window_beyond_the_head_is_refused(self, reports: Store) -> None:
        with pytest.raises(BadArgument, match="after <= through <= 0"):
            reports.store.new(0, 1)

    def test_deleting_is_for_keyed_datasets(self, reports: Store) -> None:
        with pytest.raises(BadArgument, match="PRIMARY KEY"):
            reports.store.delete(pa.table({"n": [1]}))


class TestKeyed:
    def test_a_window_shows_the_last_version_of_each_key(self, users: Store) -> None:
        users.append({"id": "a", "v": 1}, {"id": "b", "v": 1}, {"id": "a", "v": 2})
        users.append({"id": "c", "v": 3})
        assert versions(users.store.new(0, 3)) == {"a": (2, 3), "b": (1, 2)}
        assert versions(users.store.now()) == {"a": (2, 3), "b": (1, 2), "c": (3, 4)}
        assert versions(users.store.old(3, 4)) == {"a": (2, 3), "b": (1, 2)}

    def test_a_deleted_key_is_not_new_and_not_there(self, users: Store) -> None:
        users.append({"id": "a", "v": 1}, {"id": "b", "v": 1})
        users.delete("a", "never there")
        assert users.store.head == 4
        assert versions(users.store.new(0, 4)) == {"b": (1, 2)}
        assert versions(users.store.now()) == {"b": (1, 2)}
        assert versions(users.store.now(2)) == {"a": (1, 1), "b": (1, 2)}

    def test_before_images_are_the_versions_before_the_window(self, users: Store) -> None:
        users.append({"id": "a", "v": 1}, {"id": "b", "v": 1}, {"id": "c", "v": 1})
        users.delete("c")
        users.append({"id": "a", "v": 2}, {"id": "a", "v": 3}, {"id": "c", "v": 2}, {"id": "d", "v": 1})
        found = {r["id"]: (r["v"], r["__before_v"], r["__before_id"]) for r in users.store.new_before(4, 8).to_pylist()}
        assert found == {"a": (3, 1, "a"), "c": (2, None, None), "d": (1, None, None)}
        found = {r["id"]: (r["v"], r["__before_v"]) for r in users.store.now_before(4, 8).to_pylist()}
        assert found == {"a": (3, 1), "b": (1, 1), "c": (2, None), "d": (1, None)}
        assert users.store.new_before(4, 8).column("__before_v").to_pylist() == [1, None, None]

    def test_compaction_keeps_what_windows_still_need(self, users: Store) -> None:
        for v in range(6):
            users.append({"id": "a", "v": v}, {"id": f"k{v}", "v": v})
        users.store.keep_from(4)
        users.compact()
        users.reopen()
        users.store.keep_from(4)
        assert users.store.new_before(4, 12).num_rows == 5
        assert users.store.new_before(4, 6).column("__before_v").to_pylist() == [1, None]
        with pytest.raises(Unavailable, match="oldest kept is at 4"):
            users.store.new(3, 12)

    def test_the_state_outlives_compaction_while_in_use(self, users: Store) -> None:
        users.append({"id": "a", "v": 1}, {"id": "b", "v": 1})
        users.store.now()
        users.compact()
        users.append({"id": "a", "v": 2})
        for through in (2, 3):
            assert len(versions(users.store.now(through))) == 2
        users.compact()
        users.delete("b")
        assert versions(users.store.now()) == {"a": (2, 3)}

    def test_states_after_a_compaction_need_nothing_from_before_it(self, tmp_path: Path) -> None:
        users = Store(tmp_path, USERS, tail_bytes=0)
        for v in (1, 2, 3):
            users.append({"id": "a", "v": v})
        users.store.now()
        users.store.keep_from(1)
        users.compact()
        assert versions(users.store.now(2)) == {"a": (2, 2)}
        assert versions(users.store.now(3)) == {"a": (3, 3)}

    def test_keys_of_several_columns_are_told_apart(self, tmp_path: Path) -> None:
        columns = tuple(Column(n, t) for n, t in (("a", TEXT), ("b", TEXT), ("x", SqlType("DOUBLE")), ("v", INT)))
        store = Store(tmp_path, DatasetSpec("D", columns, ("a", "b", "x")))
        store.append({"a": "1", "b": "11", "x": 0.0, "v": 1}, {"a": "11", "b": "1", "x": 0.0, "v": 2})
        store.append({"a": "1", "b": "11", "x": -0.0, "v": 3}, {"a": "1", "b": "11", "x": 0.5, "v": 4})
        assert sorted(store.store.now().column("v").to_pylist()) == [2, 3, 4]
        assert store.store.new_before(2, 4).column("__before_v").to_pylist() == [1, None]

    def test_a_key_must_not_be_null(self, users: Store) -> None:
        with pytest.raises(BadRecords, match="'id' must not be NULL"):
            users.append({"id": None, "v": 1})


class TestColumns:
    def test_old_records_read_null_in_an_added_column(self, reports: Store) -> None:
        fill(reports, 2)
        reports.compact()
        reports.append({"n": 3})
        before = reports.store.version
        reports.store.add_column(Column("extra", INT))
        reports.append({"n": 4, "extra": 7})
        assert reports.store.now().column("extra").to_pylist() == [None, None, None, 7]
        assert reports.store.version > before
        reports.reopen()
        assert reports.store.now().column("extra").to_pylist() == [None, None, None, 7]

    def test_a_column_added_again_does_not_bring_old_values_back(self, reports: Store) -> None:
        reports.append({"n": 1, "t": "old"})
        reports.compact()
        reports.append({"n": 2, "t": "old"})
        reports.store.drop_column("T")
        assert "t" not in reports.store.now().column_names
        reports.store.add_column(Column("t", INT))
        reports.append({"n": 3, "t": 5})
        assert reports.store.now().column("t").to_pylist() == [None, None, 5]
        snapshot = reports.store.snapshot()
        assert (snapshot.parquet_paths, snapshot.tail.column("t").to_pylist()) == ((), [None, None, 5])

    def test_records_checked_before_a_change_keep_their_columns(
        self, reports: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Changing:
            """A table that is serialised while somebody drops a column."""

            def __init__(self, table: pa.Table) -> None:
                self.num_rows, self._table = table.num_rows, table

            def combine_chunks(self) -> pa.Table:
                reports.store.drop_column("n")
                return self._table.combine_chunks()

        checked = dataset._checked
        monkeypatch.setattr(dataset, "_checked", lambda *given: Changing(checked(*given)))
        reports.append({"n": 1, "t": "x"})
        assert reports.store.new(0, 1).to_pylist() == [{"t": "x", "__seq": 1}]
        reports.reopen()
        assert reports.store.new(0, 1).to_pylist() == [{"t": "x", "__seq": 1}]

    def test_a_changed_declaration_is_taken_over_when_opened(self, users: Store) -> None:
        users.append({"id": "a", "v": 1})
        users.delete("b")
        users.reopen(DatasetSpec("Users", (*USERS.columns, Column("w", TEXT)), ("id",)))
        assert users.store.now().to_pylist() == [{"id": "a", "v": 1, "w": None, "__seq": 1}]

    def test_another_type_under_the_same_name_is_refused(self, reports: Store) -> None:
        with pytest.raises(Corrupt, match="stored as INT, declared as STRING"):
            reports.reopen(DatasetSpec("Reports", (Column("n", TEXT),)))

    def test_what_cannot_be_added_or_dropped_is_refused(self, users: Store) -> None:
        with pytest.raises(BadArgument, match="may be NULL"):
            users.store.add_column(Column("x", INT, not_null=True))
        with pytest.raises(BadArgument, match="outside the primary key"):
            users.store.drop_column("Id")


class TestRetention:
    def _store(self, directory: Path, spec: DatasetSpec, **limits: Any) -> Store:
        return Store(directory, DatasetSpec(spec.name, spec.columns, spec.primary_key, retain=Retention(**limits)))

    def test_by_count_exactly(self, tmp_path: Path) -> None:
        reports = self._store(tmp_path, REPORTS, records=3)
        fill(reports, 5)
        reports.compact()
        fill(reports, 1)
        reports.store.expire()
        assert numbers(reports.store.now()) == [4, 5, 1]
        assert numbers(reports.store.new(0, 6)) == [4, 5, 1]
        reports.reopen()
        assert (numbers(reports.store.now()), reports.store.snapshot().floor) == ([4, 5, 1], 3)

    def test_by_age_through_compaction(self, tmp_path: Path) -> None:
        reports = self._store(tmp_path, REPORTS, age_s=100)
        fill(reports, 2)
        reports.clock.advance(60)
        fill(reports, 3)
        reports.compact()
        reports.clock.advance(60)
        reports.reopen()
        reports.store.expire()
        assert numbers(reports.store.now()) == [1, 2, 3]

    def test_by_bytes_the_files_go(self, tmp_path: Path) -> None:
        reports = self._store(tmp_path, REPORTS, size_bytes=1)
        fill(reports, 3)
        reports.compact()
        reports.store.expire()
        assert reports.store.now().num_rows == 0
        assert list(tmp_path.glob("*.parquet")) == []

    def test_by_bytes_the_newest_stay_when_they_move_into_one_large_file(self, tmp_path: Path) -> None:
        reports = self._store(tmp_path, REPORTS, size_bytes=1500)
        for n in range(100):
            reports.append({"n": n, "t": f"{7**n:0200d}"})
        reports.compact()
        reports.store.expire()
        kept = numbers(reports.store.now())
        assert 0 < len(kept) < 50
        assert kept == list(range(100 - len(kept), 100))

    def test_times_of_what_expired_are_forgotten(self, tmp_path: Path) -> None:
        reports = self._store(tmp_path, REPORTS, age_s=100)
        for _ in range(50):
            fill(reports, 1)
            reports.clock.advance(20)
            reports.compact()
            reports.store.expire()
        assert reports.store.now().num_rows == 5
        assert len(manifest.load(tmp_path).times) < 10

    def test_a_file_given_to_a_reader_stays_for_a_while(self, tmp_path: Path) -> None:
        spec = DatasetSpec("Reports", REPORTS.columns, retain=Retention(records=1))
        reports = Store(tmp_path, spec, delete_after_s=30.0)
        fill(reports, 3)
        reports.compact()
        (path,) = reports.store.snapshot().parquet_paths
        fill(reports, 1)
        reports.store.expire()
        assert path.exists()
        reports.clock.advance(31)
        reports.store.compact()
        assert not path.exists()

    def test_what_a_window_has_not_seen_stays(self, tmp_path: Path) -> None:
        reports = self._store(tmp_path, REPORTS, records=1)
        fill(reports, 5)
        reports.store.keep_from(2)
        assert reports.store.expire() == 2
        assert numbers(reports.store.new(2, 5)) == [3, 4, 5]

    def test_keys_changed_longest_ago_go_first(self, tmp_path: Path) -> None:
        users = self._store(tmp_path, USERS, records=2)
        users.append({"id": "a", "v": 1}, {"id": "b", "v": 1}, {"id": "c", "v": 1}, {"id": "a", "v": 2})
        users.store.expire()
        assert versions(users.store.now()) == {"c": (1, 3), "a": (2, 4)}
        users.append({"id": "b", "v": 9})
        assert users.store.new_before(4, 5).column("__before_v").to_pylist() == [None]


def test_what_a_crash_left_behind_is_swept(tmp_path: Path) -> None:
    for name in ("records-1.parquet", "keys-1.json", "manifest.json.tmp"):
        (tmp_path / name).write_text("left over")
    Store(tmp_path, REPORTS)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["columns.json", "log"]


def test_a_damaged_manifest_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(Corrupt, match=r"manifest\.json does not verify"):
        Store(tmp_path, REPORTS)


@pytest.mark.parametrize(
    ("sql", "arrow"),
    [
        (SqlType("BOOLEAN"), pa.bool_()),
        (SqlType("BIGINT"), pa.int64()),
        (SqlType("TIMESTAMP"), pa.timestamp("us", "UTC")),
        (SqlType("DATE"), pa.date32()),
        (SqlType("DECIMAL", 10, 2), pa.decimal128(10, 2)),
        (SqlType("DECIMAL", 10, 2, is_array=True), pa.list_(pa.decimal128(10, 2))),
    ],
    ids=str,
)
def test_sql_types_have_an_arrow_type(sql: SqlType, arrow: pa.DataType) -> None:
    assert arrow_type(sql) == arrow
