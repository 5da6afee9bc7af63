from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from feed_sinks import MemorySink
from tocsin.datacluster.feeds.running import FeedState, RunningFeed
from tocsin.datacluster.feeds.stream import start_feed
from tocsin.model.catalog import Column, DatasetSpec, FeedSpec
from tocsin.model.types import SqlType

pytestmark = pytest.mark.spark

IDLE_S = 30.0
REPORTS = DatasetSpec(
    "reports",
    (Column("id", SqlType("INT"), not_null=True), Column("kind", SqlType("STRING")), Column("x", SqlType("DOUBLE"))),
)


class World:
    """A directory, a sink, and a feed between them that can be stopped and started."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark, self.home, self.sink = spark, home, MemorySink()
        self.inbox = home / "inbox"
        self.inbox.mkdir()
        self.feed: RunningFeed | None = None

    def start(self, **options: str) -> RunningFeed:
        given = {"path": str(self.inbox), "trigger": "50ms", **options}
        spec = FeedSpec("f", "reports", "directory", tuple(given.items()))
        self.feed = start_feed(self.spark, spec, lambda: REPORTS, self.sink, self.home / "checkpoint")
        return self.feed

    def stop(self) -> None:
        if self.feed:
            self.feed.stop()

    def drop(self, name: str, content: bytes | str) -> None:
        """Move a complete file in, as a producer should."""
        draft = self.home / name
        draft.write_bytes(content if isinstance(content, bytes) else content.encode())
        draft.rename(self.inbox / name)

    def ids(self) -> list[int]:
        return [row["id"] for row in self.sink.rows()]


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    world = World(spark, tmp_path)
    yield world
    world.stop()


def lines(*ids: int) -> str:
    return "".join(json.dumps({"id": i, "kind": "fire", "x": i / 2}) + "\n" for i in ids)


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


ONE_BAD: dict[str, Callable[[], tuple[str, bytes, str]]] = {
    "json": lambda: ("a.json", (lines(1) + '{"id": "no"}\n' + lines(2)).encode(), '{"id": "no"}'),
    "json, compressed": lambda: ("a.json.gz", gzip.compress((lines(1) + "nonsense\n" + lines(2)).encode()), "nonsense"),
    "csv": lambda: ("a.csv", b'x,kind,id\n0.5,fire,1\n1,"a\nb",no\n1.0,fire,2\n', '1,"a\nb",no'),
    "parquet": lambda: (
        "a.parquet",
        parquet(pa.table({"id": [1, None, 2], "kind": ["fire"] * 3, "x": [0.5, 9.0, 1.0]})),
        '{"id": null, "kind": "fire", "x": 9.0}',
    ),
}


@pytest.mark.parametrize("case", ONE_BAD)
def test_records_that_fit_are_appended_and_the_others_are_kept_with_their_text(world: World, case: str) -> None:
    name, content, raw = ONE_BAD[case]()
    world.drop(name, content)
    world.start(format=case.split(",")[0]).await_idle(IDLE_S)
    assert world.sink.rows() == [{"id": 1, "kind": "fire", "x": 0.5}, {"id": 2, "kind": "fire", "x": 1.0}]
    assert [text for text, _ in world.sink.rejected()] == [raw]
    assert all("id" in reason or "JSON" in reason for _, reason in world.sink.rejected())


def test_files_keep_their_order_within_a_batch(world: World) -> None:
    for age, name in enumerate(("c.json", "a.json", "b.json")):
        world.drop(name, lines(age))
        os.utime(world.inbox / name, (1_000_000 + age, 1_000_000 + age))
    world.start().await_idle(IDLE_S)
    assert world.ids() == [0, 1, 2]
    assert len(world.sink.tables) == 1


def test_limits_cut_a_backlog_into_batches(world: World) -> None:
    for i in range(5):
        world.drop(f"{i}.json", lines(i))
    feed = world.start(max_files_per_trigger="2")
    feed.await_idle(IDLE_S)
    assert sorted(world.ids()) == list(range(5))
    assert feed.status().last_batch == 2


def test_what_cannot_be_read_at_all_becomes_a_dead_letter_and_stops_nothing(world: World) -> None:
    world.drop("broken.json.gz", b"this is not gzip")
    world.drop("large.json", lines(*range(100)))
    world.drop("small.json", lines(7))
    feed = world.start(max_file_bytes="1 kB")
    feed.await_idle(IDLE_S)
    reasons = sorted(reason for _, reason in world.sink.rejected())
    assert world.ids() == [7]
    assert "broken.json.gz: not a gzip file" in reasons[0]
    assert "large.json: the file has" in reasons[1]
    assert feed.status().rejected == 2


def test_a_restart_continues_where_the_feed_stopped(world: World) -> None:
    world.drop("a.json", lines(1, 2))
    world.start().await_idle(IDLE_S)
    world.stop()
    world.drop("b.json", lines(3))
    world.start().await_idle(IDLE_S)
    assert world.ids() == [1, 2, 3]
    assert world.sink.duplicates == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [pytest.param(2, 0, id="refused twice, then kept"), pytest.param(0, 2, id="kept, but the answer was lost twice")],
)
def test_a_sink_that_fails_delays_records_and_neither_loses_nor_doubles_them(
    world: World, before: int, after: int
) -> None:
    world.sink.fail_before, world.sink.fail_after = before, after
    world.drop("a.json", lines(1, 2))
    feed = world.start()
    feed.await_idle(IDLE_S)
    status = feed.status()
    assert world.ids() == [1, 2]
    assert (status.state, status.failures, status.error) == (FeedState.RUNNING, 2, None)


def test_a_batch_whose_commit_was_lost_is_recognised_by_its_key(world: World) -> None:
    world.drop("a.json", lines(1, 2))
    world.start().await_idle(IDLE_S)
    world.stop()
    for entry in (world.home / "checkpoint" / "query" / "commits").iterdir():
        entry.unlink()
    world.drop("b.json", lines(3))
    world.start().await_idle(IDLE_S)
    assert world.ids() == [1, 2, 3]
    assert world.sink.duplicates == 1


def test_a_directory_that_is_not_there_is_reported_and_awaited(world: World) -> None:
    world.inbox.rmdir()
    feed = world.start()
    with pytest.raises(TimeoutError, match="inbox"):
        feed.await_idle(timeout_s=5)
    assert feed.status().state is FeedState.RETRYING
    world.inbox.mkdir()
    world.drop("a.json", lines(1))
    feed.await_idle(IDLE_S)
    assert world.ids() == [1]
