from __future__ import annotations

from typing import Any

import pytest

from tocsin.datacluster.storage import acks, catalog, executions, outbox, subscriptions
from tocsin.datacluster.storage.executions import ExecutionStats, ResultFile
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.outbox import Notice
from tocsin.datacluster.storage.subscriptions import Wanted
from tocsin.errors import AlreadyExists, InUse, NotFound
from tocsin.model.catalog import BrokerSpec, ChannelSpec, Column, DatasetSpec, FeedSpec, Parameter, Retention
from tocsin.model.position import Position
from tocsin.model.types import SqlType

DATASET = DatasetSpec(
    "Users",
    (Column("id", SqlType("BIGINT"), not_null=True), Column("tags", SqlType("DECIMAL", 9, 2, is_array=True))),
    ("id",),
    active=True,
    retain=Retention(age_s=1.5, records=3, size_bytes=4),
)
CHANNEL = ChannelSpec(
    "Near", (Parameter("x", SqlType("DOUBLE")),), "SELECT 'ü'", True, True, None, Retention(records=9)
)
BROKER = BrokerSpec("B", "http://localhost:1")
FEED = FeedSpec("F", "Users", "kafka", (("topic", "t"), ("servers", "s")))


@pytest.mark.parametrize(
    ("noun", "spec"),
    [("dataset", DATASET), ("channel", CHANNEL), ("broker", BROKER), ("feed", FEED)],
    ids=lambda value: value if isinstance(value, str) else "",
)
class TestEveryNoun:
    def _call(self, ledger: Ledger, verb: str, noun: str, *args: Any) -> Any:
        return ledger.write(lambda tx: getattr(catalog, f"{verb}_{noun}")(tx, *args))

    def test_a_spec_comes_back_as_it_was(self, ledger: Ledger, noun: str, spec: Any) -> None:
        row = self._call(ledger, "create", noun, spec, 5.0)
        assert row.spec == spec
        assert self._call(ledger, "get", noun, spec.name.upper()) == row
        assert self._call(ledger, "list", f"{noun}s") == [row]

    def test_a_name_is_taken_in_any_case(self, ledger: Ledger, noun: str, spec: Any) -> None:
        self._call(ledger, "create", noun, spec, 5.0)
        with pytest.raises(AlreadyExists, match=spec.name):
            self._call(ledger, "create", noun, spec, 6.0)

    def test_an_id_is_never_used_again(self, ledger: Ledger, noun: str, spec: Any) -> None:
        first = self._call(ledger, "create", noun, spec, 5.0)
        assert self._call(ledger, "drop", noun, spec.name.lower()) == first
        assert self._call(ledger, "create", noun, spec, 5.0).id > first.id

    def test_a_missing_one_names_the_nearest(self, ledger: Ledger, noun: str, spec: Any) -> None:
        self._call(ledger, "create", noun, spec, 5.0)
        with pytest.raises(NotFound, match=f"there is no {noun}"):
            self._call(ledger, "drop", noun, spec.name + "x")


@pytest.mark.parametrize(("noun", "spec"), [("dataset", DATASET), ("channel", CHANNEL)])
def test_replacing_keeps_the_id(ledger: Ledger, noun: str, spec: Any) -> None:
    first = ledger.write(lambda tx: getattr(catalog, f"create_{noun}")(tx, spec, 5.0))
    assert ledger.write(lambda tx: getattr(catalog, f"replace_{noun}")(tx, spec)) == first


def test_states_are_kept(ledger: Ledger) -> None:
    ledger.write(lambda tx: catalog.create_channel(tx, CHANNEL, 5.0))
    ledger.write(lambda tx: catalog.create_feed(tx, FEED))
    ledger.write(lambda tx: catalog.set_channel_state(tx, "near", catalog.PAUSED))
    ledger.write(lambda tx: catalog.set_feed_state(tx, "f", catalog.PAUSED))
    assert ledger.read(lambda tx: catalog.get_channel(tx, "near")).state == "paused"
    assert ledger.write(lambda tx: catalog.replace_channel(tx, CHANNEL)).state == "paused"
    assert ledger.read(lambda tx: catalog.get_feed(tx, "f")).state == "paused"


def test_a_dropped_channel_leaves_nothing_behind(ledger: Ledger) -> None:
    channel = ledger.write(lambda tx: catalog.create_channel(tx, CHANNEL, 5.0)).id
    dataset = ledger.write(lambda tx: catalog.create_dataset(tx, DATASET)).id
    broker = ledger.write(lambda tx: catalog.create_broker(tx, BROKER)).id
    ledger.write(lambda tx: executions.open_window(tx, channel, dataset, 0))
    ledger.write(lambda tx: subscriptions.add_subscriptions(tx, channel, [Wanted("[1]", broker, "o")], 1.0))
    run = ledger.write(lambda tx: executions.begin(tx, channel, {dataset: (0, 3)}, 1.0))
    files = [ResultFile(f"{channel}/f", 1, 1, 1)]
    ledger.write(lambda tx: executions.commit(tx, run, files, ExecutionStats(rows=1), [Notice(broker, b"{}")], 2.0))
    ledger.write(lambda tx: acks.acknowledge(tx, broker, channel, Position(1, 1)))
    with pytest.raises(InUse, match="dataset 'Users' is in use by Near"):
        ledger.write(lambda tx: catalog.drop_dataset(tx, "users"))
    with pytest.raises(InUse, match="broker 'B' is in use by 1 subscription"):
        ledger.write(lambda tx: catalog.drop_broker(tx, "b"))
    with pytest.raises(InUse, match="channel 'Near' is in use by 1 subscription"):
        ledger.write(lambda tx: catalog.drop_channel(tx, "near"))
    ledger.write(lambda tx: catalog.drop_channel(tx, "near", cascade=True))
    for table in ("subscription", "backend_subscription", "channel_window", "execution", "result_file", "outbox",
                  "acknowledgement", "channel_progress"):  # fmt: skip
        assert ledger.read(lambda tx, t=table: tx.rows(f"SELECT * FROM {t}")) == []
    ledger.write(lambda tx: catalog.drop_dataset(tx, "users"))
    ledger.write(lambda tx: catalog.drop_broker(tx, "b"))
    assert ledger.read(outbox.waiting) == {}
