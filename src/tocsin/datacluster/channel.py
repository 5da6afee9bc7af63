"""A channel as the running cluster holds it: its plan, its subscriptions, where its windows stand."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from tocsin.datacluster.spark.prepared import PreparedChannel
from tocsin.datacluster.storage import executions
from tocsin.datacluster.storage.dataset import DatasetStore
from tocsin.datacluster.storage.executions import Execution
from tocsin.datacluster.storage.transaction import Tx
from tocsin.datacluster.subscribers import Subscribers
from tocsin.model.catalog import ChannelSpec


@dataclass(frozen=True, slots=True)
class Progress:
    """What the ledger knows of a channel's executions; the fields are those of ``Channel``."""

    windows: dict[str, int]
    head: int
    started: Execution | None


def stored_progress(tx: Tx, channel_id: int, stores: Mapping[str, DatasetStore]) -> Progress:
    names = {store.id: name for name, store in stores.items()}
    windows = {names[dataset]: through for dataset, through in executions.windows(tx, channel_id).items()}
    return Progress(windows, executions.committed_head(tx, channel_id), executions.pending(tx, channel_id))


@dataclass(slots=True)
class Channel:
    """Live state; changed by the executor and by statements, never by both at once (see Cluster)."""

    id: int
    prepared: PreparedChannel
    subscriptions: Subscribers
    windows: dict[str, int]  # lower-case dataset name → sequence number up to which records were seen
    head: int  # number of the last committed execution
    started: Execution | None = None  # begun before a crash or a failure, to be repeated with its bounds
    problem: str | None = None
    is_paused: bool = False
    is_broken: bool = False  # did not compile when the cluster started; ``problem`` says why
    durations_s: deque[float] = field(default_factory=lambda: deque(maxlen=64))

    @property
    def spec(self) -> ChannelSpec:
        return self.prepared.spec

    @property
    def strategy(self) -> str:
        return self.prepared.plan.strategy

    @property
    def group(self) -> tuple[str, str]:
        """Channels of one group share a job: those of a scan, which is quick, apart from those that join."""
        index = self.prepared.plan.index
        work = "scan" if index and index.is_simple else self.strategy
        return (self.prepared.plan.drivers[0].lower(), work)

    def radius_parameters(self) -> list[str | None]:
        """For each parameter its name where it is a radius, else ``None``."""
        radii = {name.lower() for name in self.prepared.plan.radius_params}
        return [p.name if p.name.lower() in radii else None for p in self.spec.parameters]

    def restore(self, progress: Progress) -> None:
        """Stand where the ledger does."""
        self.windows, self.head, self.started = progress.windows, progress.head, progress.started

    def advanced(self, execution: Execution, windows: Mapping[str, int]) -> None:
        """An execution of this channel was committed."""
        self.head = execution.no
        self.windows.update(windows)
        self.started = None
        self.problem = None
