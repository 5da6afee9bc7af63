"""Subscribing as the cluster does it, on a real ledger and a real index, without Spark: one channel, two brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tocsin.clock import SystemClock
from tocsin.compiler.channel import CompileOptions, compile_channel
from tocsin.datacluster.brokers import Brokers
from tocsin.datacluster.channels import Channels
from tocsin.datacluster.spark.prepared import PreparedChannel
from tocsin.datacluster.storage import catalog
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.subscribing import Subscribing
from tocsin.matching.maintain import CompactionRule
from tocsin.model.catalog import BrokerSpec, ChannelSpec, Column, DatasetSpec, Parameter
from tocsin.model.types import SqlType

REPORTS = DatasetSpec("Reports", (Column("user", SqlType("STRING")), Column("n", SqlType("INT"))), active=True)
MINE = ChannelSpec(
    "Mine",
    (Parameter("user", SqlType("STRING")), Parameter("n", SqlType("INT"))),
    "SELECT r.n FROM Reports r WHERE r.user = :user AND r.n = :n",
    continuous=True,
)


class Subscribed:
    """The channel ``Mine(user STRING, n INT)`` with the brokers ``north`` and ``south``."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        self.ledger, clock = ledger, SystemClock()
        self.brokers = Brokers(ledger, clock)
        for name in ("north", "south"):
            self.brokers.create(BrokerSpec(name, f"http://127.0.0.1:9/{name}"))
        nothing: Any = {}  # what only Spark and ticks use
        self.channels = Channels(
            root / "indexes", ledger, nothing, nothing, nothing, clock, CompileOptions(), 1.0, CompactionRule()
        )
        row = ledger.write(lambda tx: catalog.create_channel(tx, MINE, 0.0))
        plan = compile_channel(MINE, {"reports": REPORTS})
        self.channel = self.channels._open(row, PreparedChannel(MINE, plan, "", None))
        self.channels._channels["mine"] = self.channel
        self.subscribing = Subscribing(ledger, self.channels, self.brokers, clock, 1000.0)
