"""Storage against deliberately dumb twins."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tocsin.clock import VirtualClock
from tocsin.datacluster.storage import catalog, executions, parse_records, subscriptions
from tocsin.datacluster.storage.arrow_types import arrow_schema
from tocsin.datacluster.storage.dataset import DatasetStore, StoreOptions
from tocsin.datacluster.storage.executions import ExecutionStats
from tocsin.datacluster.storage.frames import Frame, Kind
from tocsin.datacluster.storage.idempotency import RememberedKeys
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.recordlog import RecordLog
from tocsin.datacluster.storage.results import ResultStore, result_path, write_result_file
from tocsin.datacluster.storage.subscriptions import Wanted
from tocsin.errors import BadArgument, Corrupt
from tocsin.model.catalog import BrokerSpec, ChannelSpec, Column, DatasetSpec
from tocsin.model.position import START, Position
from tocsin.model.types import SCALARS, SqlType

COLUMNS = (
    Column("a", SqlType("STRING")),
    Column("b", SqlType("INT")),
    Column("v", SqlType("INT")),
    Column("l", SqlType("INT", is_array=True)),
)
SPECS = [
    DatasetSpec("Appending", COLUMNS),
    DatasetSpec("OneKey", COLUMNS, ("a",)),
    DatasetSpec("TwoKeys", COLUMNS, ("a", "b")),
]
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "a": st.sampled_from(["", "x", "1", "11", "1:"]),
            "b": st.integers(0, 2),
            "v": st.none() | st.integers(0, 9),
            "l": st.none() | st.lists(st.integers(0, 3), max_size=2),
        }
    ),
    min_size=1,
    max_size=5,
)


class DatasetMachine(RuleBasedStateMachine):
    """A dataset under appends, deletions, upkeep and restarts shows what a list of records shows."""

    spec: DatasetSpec

    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory()
        self.log: list[tuple[bool, dict[str, Any]]] = []  # (is deletion, record), number - 1 is the index
        self.keep_from = 0
        self._open()

    def _open(self) -> None:
        options = StoreOptions(segment_bytes=700, tail_bytes=600, cache_bytes=5000, delete_after_s=0.0)
        self.store = DatasetStore(Path(self._directory.name), self.spec, VirtualClock(1.0), options)
        self.store.keep_from(self.keep_from)

    def teardown(self) -> None:
        self.store.close()
        self._directory.cleanup()

    @rule(rows=ROWS)
    def append(self, rows: list[dict[str, Any]]) -> None:
        done = self.store.append(pa.Table.from_pylist(rows, schema=arrow_schema(self.spec)))
        assert done.first == len(self.log) + 1
        self.log += [(False, row) for row in rows]

    @precondition(lambda self: self.spec.is_keyed)
    @rule(rows=ROWS)
    def delete(self, rows: list[dict[str, Any]]) -> None:
        keys = [{name: row[name] for name in self.spec.primary_key} for row in rows]
        schema = pa.schema([arrow_schema(self.spec).field(name) for name in self.spec.primary_key])
        self.store.delete(pa.Table.from_pylist(keys, schema=schema))
        self.log += [(True, row) for row in rows]

    @rule(share=st.floats(0, 1))
    def advance(self, share: float) -> None:
        self.keep_from += int((len(self.log) - self.keep_from) * share)
        self.store.keep_from(self.keep_from)

    @rule(roll=st.booleans())
    def compact(self, roll: bool) -> None:
        if roll:
            self.store._records.log.roll()
        self.store.compact()

    @rule()
    def restart(self) -> None:
        self.store.close()
        self._open()

    @rule(data=st.data())
    def look(self, data: st.DataObject) -> None:
        after = data.draw(st.integers(self.keep_from, len(self.log)))
        through = data.draw(st.integers(after, len(self.log)))
        new, now, before = self._new(after, through), self._state(through), self._state(after)
        assert _rows(self.store.new(after, through)) == sorted(new.values(), key=_seq)
        assert _rows(self.store.now(through)) == sorted(now.values(), key=_seq)
        old = {key: row for key, row in now.items() if row["__seq"] <= after}
        assert _rows(self.store.old(after, through)) == sorted(old.values(), key=_seq)
        for table, shown in (
            (self.store.new_before(after, through), new),
            (self.store.now_before(after, through), now),
        ):
            expected = [row | self._image(before.get(key)) for key, row in shown.items()]
            assert _rows(table) == sorted(expected, key=_seq)

    @invariant()
    def head_is_the_number_of_records(self) -> None:
        assert self.store.head == len(self.log)

    def _key(self, number: int, row: dict[str, Any]) -> Any:
        return tuple(row[name] for name in self.spec.primary_key) or number

    def _window(self, after: int, through: int) -> dict[Any, dict[str, Any] | None]:
        found: dict[Any, dict[str, Any] | None] = {}
        for number, (is_deletion, row) in enumerate(self.log[after:through], after + 1):
            found[self._key(number, row)] = None if is_deletion else row | {"__seq": number}
        return found

    def _new(self, after: int, through: int) -> dict[Any, dict[str, Any]]:
        return {key: row for key, row in self._window(after, through).items() if row is not None}

    def _state(self, through: int) -> dict[Any, dict[str, Any]]:
        return self._new(0, through)

    def _image(self, row: dict[str, Any] | None) -> dict[str, Any]:
        return {f"__before_{c.name}": row[c.name] if row else None for c in COLUMNS}


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=_seq)


def _seq(row: dict[str, Any]) -> int:
    return int(row["__seq"])


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_dataset_shows_what_a_list_shows(spec: DatasetSpec) -> None:
    machine = type("Machine", (DatasetMachine,), {"spec": spec})
    run_state_machine_as_test(machine, settings=settings(max_examples=25, stateful_step_count=25, deadline=None))


def _log(directory: Path) -> RecordLog:
    clock = VirtualClock(1.0)
    return RecordLog(directory, clock, RememberedKeys(clock, 10, 60.0), lambda _: None, segment_bytes=400)


@settings(max_examples=60, deadline=None)
@given(bodies=st.lists(st.binary(max_size=60), min_size=1, max_size=8), data=st.data())
def test_a_log_cut_anywhere_keeps_a_prefix_or_says_it_is_corrupt(bodies: list[bytes], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        log = _log(Path(name))
        for body in bodies:
            log.append(Frame(Kind.RECORDS, 1, 0, 1, 0, b"", body))
        log.close()
        paths = sorted(Path(name).glob("*.log"))
        path = data.draw(st.sampled_from(paths))
        content = path.read_bytes()
        cut = data.draw(st.integers(0, len(content)))
        path.write_bytes(content[:cut])
        try:
            again = _log(Path(name))
        except Corrupt:
            assert path != paths[-1]
            return
        kept = [bytes(frame.body) for frame in again.read(0, again.head)]
        again.close()
        assert kept == bodies[: len(kept)]
        assert path == paths[-1] or cut == len(content)


@settings(max_examples=60, deadline=None)
@given(bodies=st.lists(st.binary(min_size=1, max_size=60), min_size=2, max_size=8), data=st.data())
def test_a_flipped_bit_never_gives_wrong_records(bodies: list[bytes], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        log = _log(Path(name))
        for body in bodies:
            log.append(Frame(Kind.RECORDS, 1, 0, 1, 0, b"", body))
        log.close()
        path = data.draw(st.sampled_from([p for p in sorted(Path(name).glob("*.log")) if p.stat().st_size]))
        content = bytearray(path.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(bytes(content))
        try:
            again = _log(Path(name))
        except Corrupt:
            return
        kept = [bytes(frame.body) for frame in again.read(0, again.head)]
        again.close()
        assert kept == bodies[:-1], "only damage to the very last frame looks like a torn write"


RESULT_ROWS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 2),
        st.binary(max_size=5),
        st.lists(st.integers(1, 5), unique=True, max_size=4),
    ),
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(
    runs=st.lists(st.lists(RESULT_ROWS, min_size=1, max_size=3), max_size=4),
    wanted=st.sets(st.integers(1, 5)),
    max_rows=st.integers(1, 4),
    max_bytes=st.integers(1, 12),
)
def test_pages_of_any_size_hold_each_wanted_row_once_in_order(
    runs: list[list[list[tuple[int, int, bytes, list[int]]]]], wanted: set[int], max_rows: int, max_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as name, Ledger(Path(name) / "ledger") as ledger:
        channel = ledger.write(lambda tx: catalog.create_channel(tx, ChannelSpec("C", (), "q"), 0.0)).id
        expected: list[tuple[int, int, list[int]]] = []
        for files in runs:
            _execute(ledger, Path(name), channel, files)
            rows = sorted((r for rows in files for r in rows), key=lambda r: (r[0], r[1], r[3][0] if r[3] else 0))
            expected += [(r[0], r[1], [b for b in r[3] if b in wanted]) for r in rows if wanted.intersection(r[3])]
        store, position, found = ResultStore(Path(name), ledger), START, []
        while True:
            page = store.page(channel, position, lambda _, ids: np.isin(ids, list(wanted)), max_rows, max_bytes)
            assert page.after == position
            assert all(position < row.position <= page.through for row in page.rows)
            found += page.rows
            position = page.through
            if page.is_end:
                break
        assert len({row.position for row in found}) == len(found)
        assert [row.backends for row in found] == [backends for _, _, backends in expected]
        assert position == (Position.end_of(len(runs)) if runs else START)


def _execute(ledger: Ledger, root: Path, channel: int, files: list[list[tuple[int, int, bytes, list[int]]]]) -> None:
    run = ledger.write(lambda tx: executions.begin(tx, channel, {}, 0.0))
    written = []
    for part, rows in enumerate(files):
        offsets = np.concatenate(([0], np.cumsum([len(r[3]) for r in rows], dtype=np.int64)))
        ids = np.array([b for r in rows for b in r[3]], np.uint32)
        seq, ord = np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.int32)
        path = result_path(root, channel, run.no, run.attempt, str(part))
        written.append(write_result_file(path, seq, ord, [r[2] for r in rows], offsets, ids))
    stats = ExecutionStats(rows=sum(map(len, files)))
    ledger.write(lambda tx: executions.commit(tx, run, written, stats, [], 1.0))


@contextmanager
def _subscribing() -> Iterator[tuple[Ledger, int, int]]:
    with tempfile.TemporaryDirectory() as name, Ledger(Path(name) / "ledger") as ledger:
        channel = ledger.write(lambda tx: catalog.create_channel(tx, ChannelSpec("C", (), "q"), 0.0)).id
        yield ledger, channel, ledger.write(lambda tx: catalog.create_broker(tx, BrokerSpec("b", "u"))).id


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 5), min_size=1, max_size=6)), max_size=12))
def test_following_the_changes_gives_the_active_set(steps: list[tuple[bool, list[int]]]) -> None:
    with _subscribing() as (ledger, channel, broker):
        holders: dict[str, list[str]] = {}
        numbers: dict[str, int] = {}
        mirror: dict[int, str] = {}
        version = 0
        for is_adding, keys in steps:
            names = [f"[{key}]" for key in keys]
            if is_adding:
                wanted = [Wanted(name, broker, "o") for name in names]
                added = ledger.write(lambda tx, w=wanted: subscriptions.add_subscriptions(tx, channel, w, 0.0))
                for name, one in zip(names, added, strict=True):
                    holders.setdefault(name, []).append(one.id)
                    assert numbers.setdefault(name, one.backend_no) == one.backend_no
            else:
                leaving = [holders[name].pop() for name in names if holders.get(name)]
                ledger.write(lambda tx, ids=leaving: subscriptions.remove_subscriptions(tx, ids))
            for row in ledger.read(lambda tx, v=version: list(subscriptions.backends_since(tx, channel, v))):
                assert row.version > version
                mirror.pop(row.no, None)
                mirror |= {row.no: row.params_key} if row.active else {}
            version = ledger.read(subscriptions.current_version)
            assert mirror == {numbers[name]: name for name, ids in holders.items() if ids}
        assert sorted(numbers.values()) == list(range(1, len(numbers) + 1))
        held = ledger.read(lambda tx: subscriptions.counts(tx, channel))
        assert (held.subscriptions, held.backends) == (sum(map(len, holders.values())), len(mirror))


JSON = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**65), 2**65), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4), st.sampled_from(["1", "-7", "2.5", "2026-01-31", "2026-01-31T10:00:00Z"]),
    st.lists(st.integers(0, 3) | st.none() | st.text(max_size=2), max_size=2),
)  # fmt: skip
TYPED = DatasetSpec(
    "Typed",
    (
        *(
            Column(f"c{n}", SqlType(name, 12, 3) if name == "DECIMAL" else SqlType(name))
            for n, name in enumerate(SCALARS)
        ),
        Column("list", SqlType("INT", is_array=True)),
        Column("must", SqlType("INT"), not_null=True),
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from([c.name for c in TYPED.columns] + ["zz"]), JSON), max_size=4))
def test_lines_together_read_as_each_alone(records: list[dict[str, Any]]) -> None:
    lines = [msgspec.json.encode(record) for record in records]
    table, bad = parse_records.parse_json_lines(b"\n".join(lines), TYPED)
    reader = parse_records._reader(TYPED)
    alone = [parse_records._one_by_one(reader, line, 1 << 20) for line in lines]
    assert table.to_pylist() == [row for one, _ in alone for row in one.to_pylist()]
    assert [b.reason for b in bad] == [b.reason for _, found in alone for b in found]
    explained = []
    for record, line in zip(records, lines, strict=True):
        try:
            explained.append(parse_records._explained(reader, line))
        except (ValueError, BadArgument):
            assert any(b.raw == line.decode() for b in bad), record
    assert len(explained) == table.num_rows
