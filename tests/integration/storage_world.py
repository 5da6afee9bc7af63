"""A small cluster without Spark, for tests that kill it: storage, and an evaluator that is a formula.

``live`` does the same deterministic work whenever it is started, under the same idempotency keys, so a
run that was killed anywhere can be started again. ``check`` compares what is stored with what the
formula says, and with what was acknowledged before the kill.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tocsin.datacluster.storage import catalog, executions, faults, outbox, subscriptions
from tocsin.datacluster.storage.dataset import DatasetStore, StoreOptions
from tocsin.datacluster.storage.directory import DataDirectory
from tocsin.datacluster.storage.executions import Execution, ExecutionStats
from tocsin.datacluster.storage.idempotency import Appended
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.outbox import Notice
from tocsin.datacluster.storage.results import ResultPage, ResultStore, result_path, write_result_file
from tocsin.datacluster.storage.subscriptions import Wanted
from tocsin.datacluster.storage.transaction import Tx
from tocsin.model.catalog import BrokerSpec, ChannelSpec, Column, DatasetSpec, Retention
from tocsin.model.position import START
from tocsin.model.types import SqlType

STEPS = 12
ACKS = "acknowledged"
LETTERS_KEPT = 4
SHORT_KEPT = 5
_INT, _TEXT = SqlType("INT"), SqlType("STRING")
_OPTIONS = StoreOptions(segment_bytes=600, tail_bytes=400, delete_after_s=0.0)

REPORTS = DatasetSpec("Reports", (Column("n", _INT),), active=True)
USERS = DatasetSpec("Users", (Column("id", _INT, not_null=True), Column("v", _INT)), ("id",))
LETTERS = DatasetSpec("Letters", (Column("text", _TEXT),), retain=Retention(records=LETTERS_KEPT))
CHANNELS = ("Kept", "Short")


@dataclass
class World:
    directory: DataDirectory
    ledger: Ledger
    stores: dict[str, DatasetStore]
    channels: dict[str, int]
    broker_id: int
    results: ResultStore

    def close(self) -> None:
        for store in self.stores.values():
            store.close()
        self.results.close()
        self.ledger.close()
        self.directory.close()


def open_world(root: Path) -> World:
    directory = DataDirectory(root / "data")
    ledger = Ledger(directory.ledger_path)
    if not ledger.read(catalog.list_datasets):
        ledger.write(_declare)
    directory.sweep(ledger)
    stores = {
        row.spec.name: DatasetStore(directory.dataset(row.id), row.spec, options=_OPTIONS, id=row.id)
        for row in ledger.read(catalog.list_datasets)
    }
    channels = {row.spec.name: row.id for row in ledger.read(catalog.list_channels)}
    broker_id = ledger.read(catalog.list_brokers)[0].id
    return World(directory, ledger, stores, channels, broker_id, ResultStore(directory.results_root, ledger))


def _declare(tx: Tx) -> None:
    datasets = [catalog.create_dataset(tx, spec) for spec in (REPORTS, USERS, LETTERS)]
    broker = catalog.create_broker(tx, BrokerSpec("b", "http://localhost"))
    for name in CHANNELS:
        channel = catalog.create_channel(tx, ChannelSpec(name, (), "SELECT"), 0.0)
        for row in datasets[:2]:
            executions.open_window(tx, channel.id, row.id, 0)
        wanted = [Wanted(f"[{n}]", broker.id, "owner") for n in range(3)]
        subscriptions.add_subscriptions(tx, channel.id, wanted, 0.0)


def live(root: str, point: str, hit: int) -> None:
    """Do all the work; die at the ``hit``-th passing of ``point``, never if that is 0."""
    faults.install(_killer(point, hit))
    world = open_world(Path(root))
    acks = os.open(Path(root) / ACKS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for step in range(STEPS):
        _ingest(world, step, lambda name, done: os.write(acks, f"{name} {done.first} {done.last}\n".encode()))
        for name in CHANNELS:
            _tick(world, name)
        if step == 6:
            _widen(world)
        if step % 3 == 2:
            _upkeep(world, step)
    world.close()


def _killer(point: str, hit: int) -> Callable[[str], None]:
    left = hit

    def handler(name: str) -> None:
        nonlocal left
        left -= name == point
        if name == point and left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return handler


def _ingest(world: World, step: int, acknowledged: Callable[[str, Appended], object]) -> None:
    reports = pa.table({"n": pa.array([3 * step + i for i in range(3)], pa.int32())})
    if world.stores["Reports"].spec.column("extra"):
        reports = reports.append_column("extra", pa.array([f"e{step}"] * 3))
    users = pa.table({"id": pa.array([step % 4, (step + 1) % 4], pa.int32()), "v": pa.array([step] * 2, pa.int32())})
    acknowledged("Reports", world.stores["Reports"].append(reports, f"r{step}"))
    acknowledged("Users", world.stores["Users"].append(users, f"u{step}"))
    if step % 5 == 4:
        gone = pa.table({"id": pa.array([step % 4], pa.int32())})
        acknowledged("Users", world.stores["Users"].delete(gone, f"d{step}"))
    acknowledged("Letters", world.stores["Letters"].append(pa.table({"text": [f"letter {step}"] * 2}), f"l{step}"))


def _tick(world: World, name: str) -> None:
    """One execution of a channel over everything new, written as two files."""
    channel_id, drivers = world.channels[name], [world.stores["Reports"], world.stores["Users"]]

    def begin(tx: Tx) -> Execution | None:
        after = executions.windows(tx, channel_id)
        bounds = {s.id: (after[s.id], s.head) for s in drivers}
        if executions.pending(tx, channel_id) is None and all(a == t for a, t in bounds.values()):
            return None
        return executions.begin(tx, channel_id, bounds, 0.0)

    execution = world.ledger.write(begin)
    if execution is None:
        return
    files, rows = [], 0
    for part, store in enumerate(drivers):
        found = formula(store.new(*execution.bounds[store.id]).to_pylist(), store.spec.name)
        path = result_path(world.directory.results_root, channel_id, execution.no, execution.attempt, str(part))
        files.append(_write(path, found))
        rows += len(found)
    stats = ExecutionStats(rows, rows, rows, 0.0, "formula")
    notices = [Notice(world.broker_id, b"{}")]
    world.ledger.write(lambda tx: executions.commit(tx, execution, files, stats, notices, 1.0))


def formula(records: list[dict[str, object]], dataset: str) -> list[tuple[int, int, bytes, list[int]]]:
    """(seq, ord, payload, backends) of each record: everybody gets it, and number 1 gets odd ones twice."""
    found = []
    for record in records:
        seq = int(str(record["__seq"]))
        value = record["n"] if dataset == "Reports" else [record["id"], record["v"]]
        found.append((seq, dataset == "Users", json.dumps([dataset, value]).encode(), [1, 2, 3]))
        if seq % 2:
            found.append((seq, 2 + (dataset == "Users"), json.dumps([dataset, value, "odd"]).encode(), [1]))
    return found


def _write(path: Path, rows: list[tuple[int, int, bytes, list[int]]]) -> executions.ResultFile:
    offsets = np.concatenate(([0], np.cumsum([len(r[3]) for r in rows], dtype=np.int64)))
    ids = np.array([id for r in rows for id in r[3]], np.uint32)
    seq, ord = np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.int32)
    return write_result_file(path, seq, ord, [r[2] for r in rows], offsets, ids)


def _widen(world: World) -> None:
    store = world.stores["Reports"]
    if store.spec.column("extra"):
        return
    column = Column("extra", _TEXT)
    wider = DatasetSpec(store.spec.name, (*store.spec.columns, column), active=True)
    world.ledger.write(lambda tx: catalog.replace_dataset(tx, wider))
    store.add_column(column)


def _upkeep(world: World, step: int) -> None:
    for store in world.stores.values():
        store.keep_from(world.ledger.read(lambda tx, id=store.id: executions.keep_from(tx, id)))  # type: ignore[misc]
        store._records.log.roll()
        store.compact()
        store.expire(float(step))
    world.results.expire(world.channels["Short"], Retention(records=SHORT_KEPT), 2.0)


def pages(world: World, name: str) -> list[ResultPage]:
    """Everything of a channel, in small pages."""
    found = [world.results.page(world.channels[name], START, lambda _, ids: ids > 0, max_rows=2)]
    while not found[-1].is_end:
        found.append(world.results.page(world.channels[name], found[-1].through, lambda _, ids: ids > 0, max_rows=2))
    return found


def check(root: Path) -> int:
    """Hold what is stored against the formula; the number of result rows seen."""
    world = open_world(root)
    try:
        _check_acknowledged(world, root)
        for name in CHANNELS:
            _check_windows(world, name)
        _check_files(world)
        return _check_results(world)
    finally:
        world.close()


def _check_acknowledged(world: World, root: Path) -> None:
    lines = (root / ACKS).read_text().splitlines() if (root / ACKS).exists() else []
    for line in lines:
        name, first, last = line.split()
        assert world.stores[name].head >= int(last), f"{line} was acknowledged and is gone"
        if name == "Reports":
            kept = world.stores[name].new(int(first) - 1, int(last)).column("n").to_pylist()
            assert kept == list(range(int(first) - 1, int(last)))


def _check_windows(world: World, name: str) -> None:
    """The committed executions of a channel cover each dataset without hole or overlap."""
    channel_id = world.channels[name]
    rows = world.ledger.read(lambda tx: executions.recent(tx, channel_id, 1000))
    ends = {store.id: 0 for store in (world.stores["Reports"], world.stores["Users"])}
    for row in sorted((r for r in rows if r.state != "started"), key=lambda r: r.execution.no):
        for dataset, (after, through) in row.execution.bounds.items():
            assert after == ends[dataset]
            ends[dataset] = through
    assert world.ledger.read(lambda tx: executions.windows(tx, channel_id)) == ends


def _check_files(world: World) -> None:
    """Every file has a row, every row a file."""
    named = {path for (path,) in world.ledger.read(lambda tx: tx.rows("SELECT path FROM result_file"))}
    there = {f"{p.parent.name}/{p.name}" for p in world.directory.results_root.glob("*/*")}
    assert named == there


def _check_results(world: World) -> int:
    kept = [row for page in pages(world, "Kept") for row in page.rows]
    expected = _expected(world, "Kept")
    assert [(row.payload, row.backends) for row in kept] == expected
    ids = [f"{row.row_id}-{backend}" for row in kept for backend in row.backends]
    assert len(ids) == len(set(ids)), "a notification has the id of another"
    short = pages(world, "Short")
    rows = [(row.payload, row.backends) for page in short for row in page.rows]
    everything = _expected(world, "Short")
    assert rows == everything[len(everything) - len(rows) :]
    missing = short[0].gap.count if short[0].gap else 0
    assert missing == len(everything) - len(rows)
    return len(kept)


def _expected(world: World, name: str) -> list[tuple[bytes, list[int]]]:
    """What the formula gives for the windows that were committed."""
    history = {"Reports": [], "Users": []}  # type: dict[str, list[dict[str, object]]]
    for step in range(STEPS):
        history["Reports"] += [{"n": 3 * step + i} for i in range(3)]
        history["Users"] += [{"id": step % 4, "v": step}, {"id": (step + 1) % 4, "v": step}]
        history["Users"] += [{"id": step % 4, "v": None}] if step % 5 == 4 else []
    rows = world.ledger.read(lambda tx: executions.recent(tx, world.channels[name], 1000))
    expected: list[tuple[bytes, list[int]]] = []
    for row in sorted((r for r in rows if r.state in ("committed", "expired")), key=lambda r: r.execution.no):
        found = []
        for dataset in ("Reports", "Users"):
            after, through = row.execution.bounds[world.stores[dataset].id]
            window = [r | {"__seq": seq} for seq, r in enumerate(history[dataset], 1) if after < seq <= through]
            if dataset == "Users":
                window = [r for r in {r["id"]: r for r in window}.values() if r["v"] is not None]
            found += formula(window, dataset)
        expected += [(payload, ids) for _, _, payload, ids in sorted(found, key=lambda r: (r[0], r[1], r[3][0]))]
    return expected


def check_finished(root: Path) -> None:
    """After a run to the end: everything was evaluated, told, and kept as long as it should be."""
    world = open_world(root)
    try:
        heads = {name: store.head for name, store in world.stores.items()}
        assert heads == {"Reports": 3 * STEPS, "Users": 2 * STEPS + 2, "Letters": 2 * STEPS}
        assert world.ledger.read(outbox.waiting)[world.broker_id] >= 1
        letters = world.stores["Letters"].now().column("text").to_pylist()
        assert letters == [f"letter {STEPS - 2}"] * 2 + [f"letter {STEPS - 1}"] * 2
        extra = world.stores["Reports"].now().column("extra").to_pylist()
        assert extra[-15:] == [f"e{step}" for step in range(STEPS - 5, STEPS) for _ in range(3)]
        assert {r["id"]: r["v"] for r in world.stores["Users"].now().to_pylist()} == _users()
    finally:
        world.close()


def _users() -> dict[int, int]:
    users: dict[int, int] = {}
    for step in range(STEPS):
        users |= {step % 4: step, (step + 1) % 4: step}
        if step % 5 == 4:
            users.pop(step % 4)
    return users
