"""The whole configuration: its sections, in the order of the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from tocsin.config.broker import Broker
from tocsin.config.channels import Channels
from tocsin.config.client import Client
from tocsin.config.cluster import Cluster, Ingest, Outbox, Results, Select, Statements
from tocsin.config.coordinator import Coordinator
from tocsin.config.dashboard import Dashboard
from tocsin.config.servers import Auth, Http, Log
from tocsin.config.up import Up
from tocsin.config.upstream import Upstream
from tocsin.settings.declare import section


@dataclass(frozen=True, slots=True)
class Config:
    cluster: Cluster = section(Cluster, "Where the data cluster lives and what evaluates its channels.")
    http: Http = section(Http, "The HTTP interface: connections, web pages, TLS.")
    ingest: Ingest = section(Ingest, "Limits of what may be sent to datasets.")
    channels: Channels = section(Channels, "How channels execute.")
    results: Results = section(Results, "How long results are kept and how they are read.")
    outbox: Outbox = section(Outbox, "How brokers are told of new results.")
    select: Select = section(Select, "Limits of plain SELECT statements.")
    statements: Statements = section(Statements, "Limits of scripts sent to the cluster.")
    coordinator: Coordinator = section(Coordinator, "The coordinator: who is where, who lives, who moves.")
    broker: Broker = section(Broker, "A broker: its address, its limits, and how it treats slow subscribers.")
    upstream: Upstream = section(
        Upstream, "How a broker deals with the data cluster, the coordinator and other brokers."
    )
    dashboard: Dashboard = section(Dashboard, "The dashboard: its address, what it asks and when it raises an alert.")
    auth: Auth = section(Auth, "Tokens.")
    client: Client = section(Client, "How clients find a broker, and come back to it.")
    up: Up = section(Up, "`tocsin up`, which starts the whole system on one machine.")
    log: Log = section(Log, "Messages on standard error.")

    @property
    def data_dir(self) -> Path:
        return Path(self.cluster.data_dir)

    @property
    def secret_path(self) -> Path:
        return Path(self.auth.secret_file) if self.auth.secret_file else self.data_dir / "secret"

    def problems(self) -> Iterator[str]:
        """What each value alone cannot tell."""
        for item in fields(self):
            part = getattr(self, item.name)
            if hasattr(part, "problems"):
                yield from part.problems()
