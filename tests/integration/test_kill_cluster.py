"""``kill -9`` of the whole program, Spark and workers included, again and again: nothing is lost or doubled.

Four kills, one of each kind, fit the time of every day; ``make kills`` is the dozen.

A client feeds numbered records, a broker pulls and acknowledges, six channels run: by index and by
join, over appending and keyed datasets, with an aggregate, with two driving datasets, periodic. What
comes out in the end is compared with an evaluator of a few lines.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.clusters import until
from support.feeding_through_kills import CHANNELS, FIRST, MOVERS, SCHEMA, Feeder, Puller, Wire, take
from support.processes import ClusterProcess, free_port
from tocsin.model.position import START

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(1200)]

KILLS = int(os.environ.get("TOCSIN_TEST_KILLS", "4"))
PROGRAM_ONLY, WHILE_STARTING = 4, 3  # these kills are of another kind
ON_A_NEW_FILE = (2, 5, 7, 10)  # between a result file and its commit, where the kill is quick enough
IN_FILES = {"results__inline_size": "0 B", "channels__driver_records": "0"}  # every result goes through a file
SEED = 20_260_401


def ledger_rows(data: Path, sql: str) -> list[tuple[Any, ...]]:
    """A query over a copy of the ledger, which is left as it is."""
    copy = data.with_name("ledger-copy")
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for path in data.glob("ledger.db*"):
        if not path.name.endswith("-shm"):
            shutil.copy(path, copy / path.name)
    connection = sqlite3.connect(copy / "ledger.db")
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def stage(data: Path) -> str:
    """What the kill interrupted."""
    started = len(ledger_rows(data, "SELECT 1 FROM execution WHERE state = 'started'"))
    named = {path for (path,) in ledger_rows(data, "SELECT path FROM result_file")}
    files = len(result_files(data) - named)
    return f"{started} executions under way, {files} result files without an owner"


def test_nothing_is_lost_or_doubled_by_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, data, port = random.Random(SEED), tmp_path / "data", free_port()
    cluster = ClusterProcess(data, port)
    try:
        cluster.wait_ready()
        wire = Wire(cluster.url)
        wire.statements(SCHEMA)
        feeder, puller = Feeder(Wire(cluster.url), random.Random(SEED)), Puller(Wire(cluster.url), random.Random(SEED))
        for channel, arguments in FIRST.items():
            for one in arguments:
                id = f"{channel}:{json.dumps(one)}"
                wire.subscribe(channel, one, id)
                feeder.subscriptions[id] = (channel, one)
        feeder.start()
        puller.start()
        stages = []
        for number in range(1, KILLS + 1):
            held = dict(feeder.subscriptions)
            stages.append(f"kill {number}: {kill(cluster, number, rng, wire, feeder, data)}, {stage(data)}")
            cluster = ClusterProcess(data, port, **(IN_FILES if number + 1 in ON_A_NEW_FILE else {}))
            if number + 1 == WHILE_STARTING:
                continue
            cluster.wait_ready()
            listed = wire.until_answered("GET", "/subscriptions", params={"limit": 10_000})["subscriptions"]
            assert {s["id"] for s in listed} >= set(held)
        feeder.stop()
        settle(wire, data)
        puller.stop()
        check(feeder, puller, wire, data)
        assert cluster.stop() == 0, cluster.log[-4000:]
    finally:
        cluster.kill()
    with capsys.disabled():
        told = f"{feeder.repeated} batches had been kept unanswered, {puller.seen_again} results were pulled twice"
        print("", *stages, f"{KILLS} kills; {told}", sep="\n  ")


def kill(cluster: ClusterProcess, number: int, rng: random.Random, wire: Wire, feeder: Feeder, data: Path) -> str:
    if number == WHILE_STARTING:
        time.sleep(rng.uniform(0.3, 4.0))
        return f"{cluster.kill_all()} processes while starting"
    progress(rng, wire, feeder)
    if number == PROGRAM_ONLY:
        cluster.kill_program()
        return "the program alone, its JVM left by itself"
    if number in ON_A_NEW_FILE:
        known = result_files(data)
        until(lambda: result_files(data) - known, "a new result file", pause_s=0.002)
    return f"{cluster.kill_all()} processes"


def result_files(data: Path) -> set[str]:
    return {f"{path.parent.name}/{path.name}" for path in (data / "results").glob("*/*")}


def progress(rng: random.Random, wire: Wire, feeder: Feeder) -> None:
    """Let a random amount of work happen, counted and not timed, so that slow machines get there too."""
    batches, executions = feeder.batches + rng.randint(0, 12), committed(wire) + rng.choice([0, 1, 2, 5, 10])
    until(lambda: feeder.batches >= batches or feeder.failures, f"{batches} batches")
    until(lambda: committed(wire) >= executions, f"{executions} executions")
    time.sleep(rng.uniform(0.0, 0.2))


def committed(wire: Wire) -> int:
    return sum(channel["executions"] for channel in wire.until_answered("GET", "/channels")["channels"])


def settle(wire: Wire, data: Path) -> None:
    """Wait until every channel has seen all that its datasets hold."""
    heads = {d["name"].lower(): d["head"] for d in wire.once("GET", "/datasets")["datasets"]}

    def is_done() -> bool:
        sql = """SELECT d.name_key, w.through FROM channel_window w JOIN entry d ON d.id = w.dataset_id"""
        return all(heads[dataset] == through for dataset, through in ledger_rows(data, sql))

    until(is_done, f"every channel reaches {heads}", timeout_s=180)


def check(feeder: Feeder, puller: Puller, wire: Wire, data: Path) -> None:
    arguments = {}
    for one in wire.once("GET", "/subscriptions", params={"limit": 10_000})["subscriptions"]:
        arguments[one["channel"], one["backend"]] = tuple(one["arguments"].values())
    for channel in CHANNELS:
        results = everything(wire, channel)
        assert puller.results[channel].items() <= results.items(), f"{channel} no longer has what was pulled"
        ids = [(r["id"], backend) for r in results.values() for backend in r["backends"]]
        assert len(set(ids)) == len(ids), f"{channel} has a notification twice"
        got = [
            (arguments[channel, b], tuple(r["payload"].values()))
            for _, r in sorted(results.items())
            for b in r["backends"]
        ]
        CHECKS[channel](feeder, [a for c, a in feeder.subscriptions.values() if c == channel], got)
    check_windows(data)


def everything(wire: Wire, channel: str) -> dict[str, Any]:
    """All results of a channel, read from the beginning."""
    results: dict[str, Any] = {}
    cursor = str(START)
    while True:
        (page,) = wire.once("POST", "/brokers/b1/pull", json={"cursors": {channel: cursor}})["pages"]
        assert take(results, page, cursor) == 0
        cursor = page["through"]
        if page["end"]:
            return results


Pairs = list[tuple[tuple[Any, ...], tuple[Any, ...]]]


def check_by_kind(feeder: Feeder, wanted: list[list[Any]], got: Pairs) -> None:
    kinds = {kind for (kind,) in wanted}
    expected = [((r["kind"],), (str(r["n"]), r["kind"])) for r in feeder.records["Reports"] if r["kind"] in kinds]
    assert Counter(got) == Counter(expected)


def check_outside(feeder: Feeder, wanted: list[list[Any]], got: Pairs) -> None:
    reports = feeder.records["Reports"]
    expected = [((low, high), (str(r["n"]),)) for low, high in wanted for r in reports if r["x"] < low or r["x"] > high]
    assert Counter(got) == Counter(expected)


def check_totals(feeder: Feeder, wanted: list[list[Any]], got: Pairs) -> None:
    """However the records fell into windows, the totals of a kind add up to all its records."""
    for (kind,) in wanted:
        numbers = [r["n"] for r in feeder.records["Reports"] if r["kind"] == kind]
        mine = [(int(count), int(total)) for (of,), (count, total) in got if of == kind]
        assert (sum(c for c, _ in mine), sum(s for _, s in mine)) == (len(numbers), sum(numbers)), kind


def check_residents(feeder: Feeder, wanted: list[list[Any]], got: Pairs) -> None:
    """A user who came once is told once; of one who moves, versions are told in order, the last for certain."""
    zones = {zone for (zone,) in wanted}
    users = [u for u in feeder.records["Users"] if u["zone"] in zones]
    settled = [((u["zone"],), (u["user"], u["version"])) for u in users if not u["user"].startswith("mover")]
    assert Counter(p for p in got if not p[1][0].startswith("mover")) == Counter(settled)
    for mover in (f"mover-{i}" for i in range(MOVERS)):
        sent = [u["version"] for u in users if u["user"] == mover]
        told = [version for _, (user, version) in got if user == mover]
        assert told == sorted(set(told)), mover
        assert set(told) <= set(sent), mover
        assert told[-1:] == sent[-1:], mover


def check_alarms(feeder: Feeder, wanted: list[list[Any]], got: Pairs) -> None:
    fires, users = feeder.records["Fires"], feeder.records["Users"]
    expected = [
        ((zone,), (f["id"], u["user"])) for (zone,) in wanted for f in fires for u in users
        if f["zone"] == u["zone"] == zone
    ]  # fmt: skip
    assert Counter(got) == Counter(expected)


def check_periodic(feeder: Feeder, _: list[list[Any]], got: Pairs) -> None:
    assert Counter(got) == Counter(((), (str(r["n"]),)) for r in feeder.records["Reports"])


CHECKS = {
    "ByKind": check_by_kind,
    "Outside": check_outside,
    "Totals": check_totals,
    "Residents": check_residents,
    "Alarms": check_alarms,
    "Periodic": check_periodic,
}


def check_windows(data: Path) -> None:
    """Each committed execution begins where the one before ended."""
    sql = "SELECT channel_id, no, bounds FROM execution WHERE state = 'committed' ORDER BY channel_id, no"
    rows = ledger_rows(data, sql)
    assert rows
    for (channel, no, bounds), (next_channel, next_no, next_bounds) in pairwise(rows):
        if channel == next_channel and next_no == no + 1:
            ends = {d: through for d, (_, through) in json.loads(bounds).items()}
            assert ends == {d: after for d, (after, _) in json.loads(next_bounds).items()}, (channel, no)
