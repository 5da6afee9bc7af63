"""The datasets of a cluster, on real files and a real ledger, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tocsin.clock import VirtualClock
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.loading import load_file
from tocsin.datacluster.storage import catalog, executions, faults
from tocsin.datacluster.storage.dataset import StoreOptions
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.transaction import Tx
from tocsin.errors import BadArgument, BadRecords, InUse, KeyReused, LimitExceeded, StorageFull, Unavailable
from tocsin.model.catalog import ChannelSpec, Column, DatasetSpec
from tocsin.model.types import SqlType

REPORTS = DatasetSpec("Reports", (Column("n", SqlType("INT")),))
OTHERS = DatasetSpec("Others", (Column("n", SqlType("INT")),))


class World:
    """A ledger and the datasets in it, opened again at will."""

    def __init__(self, root: Path) -> None:
        self.root, self.clock = root, VirtualClock(1000.0)
        self.counted: list[tuple[str, int, int]] = []
        self.open()
        for spec in (REPORTS, OTHERS):
            self.datasets.create(spec)

    def open(self) -> None:
        self.ledger = Ledger(self.root / "ledger.db")
        self.datasets = Datasets(self.root / "datasets", self.ledger, self.clock, StoreOptions(), 1000)
        self.datasets.on_count = lambda *what: self.counted.append(what)
        self.datasets.open()

    def close(self) -> None:
        self.datasets.close()
        self.ledger.close()

    def kill(self) -> None:
        """End without noting anything."""
        for store in self.datasets.values():
            store.close()
        self.ledger.close()

    def ingest(self, *records: Any, key: str | None = None, name: str = "Reports") -> Any:
        return self.datasets.ingest(name, "\n".join(json.dumps(r) for r in records).encode(), key)

    def log_of(self, name: str) -> Path:
        return next((self.root / "datasets" / str(self.datasets[name].id) / "log").glob("*.log"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    faults.install(None)
    made.close()


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[10] ^= 0xFF
    path.write_bytes(data)


class TestFaults:
    def test_a_dataset_that_does_not_verify_is_out_of_order_alone(self, world: World) -> None:
        for n in range(3):
            world.ingest({"n": n})
            world.ingest({"n": n}, name="Others")
        log = world.log_of("Reports")
        world.close()
        damage(log)
        world.open()
        assert "does not verify" in (world.datasets["Reports"].problem or "")
        assert world.datasets.problems()[0].startswith("dataset Reports: ")
        with pytest.raises(Unavailable, match=r"'Reports' is out of order: .*does not verify; restore its files"):
            world.ingest({"n": 9})
        with pytest.raises(Unavailable):
            world.datasets["Reports"].now()
        assert world.ingest({"n": 9}, name="Others").last == 4
        assert world.datasets["Reports"].head == 3

    def test_it_can_be_dropped(self, world: World) -> None:
        for n in range(2):
            world.ingest({"n": n})
        log = world.log_of("Reports")
        world.close()
        damage(log)
        world.open()
        world.datasets.drop("Reports", list)
        assert "Reports" not in world.datasets
        assert not log.parent.exists()

    def test_a_log_cut_off_below_a_window_is_told_and_goes_on_behind_it(self, world: World) -> None:
        for n in range(4):
            world.ingest({"n": n})

        def watch(tx: Tx) -> None:
            channel = catalog.create_channel(tx, ChannelSpec("C", (), "SELECT"), 0.0)
            executions.open_window(tx, channel.id, world.datasets["Reports"].id, 4)

        world.ledger.write(watch)
        log = world.log_of("Reports")
        world.kill()
        log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
        world.open()
        assert world.datasets.problems() == [
            "dataset Reports: the records 3 to 4 were acknowledged and are no longer in the log"
        ]
        assert world.ingest({"n": 9}).first == 5

    def test_a_noted_head_tells_a_loss_that_no_channel_has_seen(self, world: World) -> None:
        world.ingest({"n": 1}, {"n": 2})
        world.datasets.note_progress()
        log = world.log_of("Reports")
        world.kill()
        log.write_bytes(b"")
        world.open()
        assert world.datasets["Reports"].problem
        assert world.ingest({"n": 9}).first == 3


class TestKeys:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            pytest.param([{"n": 1}], [{"n": 2}], id="good, good"),
            pytest.param([{"n": 1}], [{"n": "x"}], id="good, bad"),
            pytest.param([{"n": "x"}], [{"n": 1}], id="bad, good"),
            pytest.param([{"n": "x"}], [{"n": "y"}], id="bad, bad"),
        ],
    )
    def test_other_content_under_a_key_is_refused_and_changes_nothing(
        self, world: World, first: list[Any], second: list[Any]
    ) -> None:
        world.ingest(*first, key="k")
        before = {name: store.head for name, store in world.datasets.items()}
        with pytest.raises(KeyReused, match="'k'"):
            world.ingest(*second, key="k")
        assert {name: store.head for name, store in world.datasets.items()} == before

    def test_the_same_content_is_answered_as_before(self, world: World) -> None:
        first = world.ingest({"n": 1}, {"n": "x"}, key="k")
        again = world.ingest({"n": 1}, {"n": "x"}, key="k")
        assert (again.first, again.last, again.is_duplicate) == (first.first, first.last, True)

    def test_a_batch_of_bad_records_is_known_again(self, world: World) -> None:
        assert [world.ingest({"n": "x"}, key="k").is_duplicate for _ in range(2)] == [False, True]

    def test_a_column_that_came_meanwhile_makes_no_other_content(self, world: World) -> None:
        world.ingest({"n": 1}, key="k")
        world.datasets.add_column("Reports", Column("m", SqlType("INT")))
        assert world.ingest({"n": 1}, key="k").is_duplicate


class TestCounts:
    def test_records_are_counted_once_whichever_way_they_come(self, world: World, tmp_path: Path) -> None:
        for _ in range(2):
            world.ingest({"n": 1}, {"n": "x"}, key="k")
        world.datasets.insert("Reports", [{"n": 1}])
        (tmp_path / "file.json").write_text('{"n": 1}\n{"n": 2}\n')
        load_file(world.datasets, "Reports", tmp_path / "file.json", "json")
        assert world.counted == [("Reports", 0, 1), ("Reports", 1, 0), ("Reports", 1, 0), ("Reports", 2, 0)]

    @pytest.mark.parametrize("end", [World.close, World.kill])
    def test_rejected_counts_survive_a_restart(self, world: World, end: Any) -> None:
        world.ingest({"n": "x"}, {"n": "y"})
        world.datasets.note_progress()
        world.ingest({"n": "x"})
        world.ingest({"n": "x"}, name="Others")
        end(world)
        world.open()
        assert world.datasets.rejected() == {"reports": 3, "others": 1, "deadletters": 0}

    def test_a_dataset_made_anew_has_no_rejected_records(self, world: World) -> None:
        world.ingest({"n": "x"})
        world.datasets.drop("Reports", list)
        world.datasets.create(REPORTS)
        world.close()
        world.open()
        assert world.datasets.rejected()["reports"] == 0

    def test_csv_in_a_body_goes_by_the_rules_of_a_file(self, world: World) -> None:
        body = b"n\n1\n\n2,3\nx\n4\n"
        receipt = world.datasets.ingest("Reports", body, "k", "csv")
        assert (receipt.accepted, [problem.line for problem in receipt.problems]) == (2, [4, 5])
        assert world.datasets.rejected()["reports"] == 2
        assert world.datasets.ingest("Reports", body, "k", "csv").is_duplicate

    def test_a_wrong_header_stores_nothing(self, world: World, tmp_path: Path) -> None:
        (tmp_path / "file.csv").write_text("m\n1\n2\n")
        with pytest.raises(BadRecords, match=r"file\.csv: the header of the CSV: 'Reports' has no column 'm'"):
            load_file(world.datasets, "Reports", tmp_path / "file.csv", "csv")
        with pytest.raises(BadRecords, match="no column 'm'"):
            world.datasets.ingest("Reports", b"m\n1\n", None, "csv")
        assert (world.datasets["Reports"].head, world.datasets.rejected().get("reports", 0)) == (0, 0)

    def test_a_repeated_load_says_so(self, world: World, tmp_path: Path) -> None:
        (tmp_path / "file.json").write_text('{"n": 1}\n{"n": 2}\n{"n": "x"}\n')
        said = [load_file(world.datasets, "Reports", tmp_path / "file.json", "json").sentence("Reports") for _ in "ab"]
        assert said == [
            "loaded 2 records into Reports, 1 rejected",
            "loaded 0 records into Reports, 0 rejected; 3 records of this file came before",
        ]

    def test_a_load_ends_before_the_batch_where_it_should_not_go_on(self, world: World, tmp_path: Path) -> None:
        (tmp_path / "file.json").write_text('{"n": 1}\n')

        def go_on() -> None:
            raise Unavailable("the cluster is stopping")

        with pytest.raises(Unavailable):
            load_file(world.datasets, "Reports", tmp_path / "file.json", "json", go_on)
        assert world.datasets["Reports"].head == 0


class TestChanges:
    def test_users_are_asked_when_nobody_can_come_any_more(self, world: World) -> None:
        def users() -> list[str]:
            assert world.datasets.lock._is_owned()  # type: ignore[attr-defined]
            return ["channel C"]

        with pytest.raises(InUse, match="channel C"):
            world.datasets.drop("Reports", users)
        with pytest.raises(InUse, match="channel C"):
            world.datasets.drop_column("Reports", "n", users)

    def test_a_crash_while_a_column_is_added_keeps_what_was_written_with_it(self, world: World) -> None:
        seen: list[list[str]] = []

        def handler(point: str) -> None:
            if point == "schema.before-switch":
                row = world.ledger.read(lambda tx: catalog.get_dataset(tx, "Reports"))
                seen.append([c.name for c in row.spec.columns])

        faults.install(handler)
        world.datasets.add_column("Reports", Column("m", SqlType("INT")))
        assert seen == [["n", "m"]], "the catalog knows of a column before a record can have it"

    def test_a_column_that_cannot_be_stored_is_not_declared(self, world: World) -> None:
        def handler(point: str) -> None:
            if point == "schema.before-switch":
                raise StorageFull("full")

        faults.install(handler)
        with pytest.raises(StorageFull):
            world.datasets.add_column("Reports", Column("m", SqlType("INT")))
        faults.install(None)
        world.close()
        world.open()
        assert [c.name for c in world.datasets["Reports"].spec.columns] == ["n"]

    def test_only_the_cluster_writes_dead_letters(self, world: World) -> None:
        for attempt in (
            lambda: world.datasets.insert("deadletters", [{}]),
            lambda: world.ingest({}, name="DeadLetters"),
            lambda: world.datasets.delete("DeadLetters", [{}]),
            lambda: world.datasets.add_column("DeadLetters", Column("m", SqlType("INT"))),
            lambda: world.datasets.drop_column("DeadLetters", "raw", list),
        ):
            with pytest.raises(BadArgument, match="the cluster alone writes this one"):
                attempt()


@pytest.mark.parametrize("body", [b"x\n" * 4, b"x\nx\nx\nx"])
def test_a_batch_of_too_many_lines_is_refused_before_they_are_read(world: World, body: bytes) -> None:
    world.datasets._max_batch_lines = 3
    with pytest.raises(LimitExceeded, match="lines in a batch: at most 3, got 4"):
        world.datasets.ingest("Reports", body, None)
    assert world.datasets.rejected().get("reports", 0) == 0
    assert world.datasets.ingest("Reports", b"x\nx\nx\n", None).rejected == 3
