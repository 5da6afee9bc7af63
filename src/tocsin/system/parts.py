"""Which programs make a system, and what each has to know of the others. Nothing is started here.

| stage | program     | knows                              |
|-------|-------------|------------------------------------|
| 0     | cluster     | nobody                             |
| 1     | coordinator | the cluster                        |
| 2     | brokers     | the cluster and the coordinator    |
| 3     | dashboard   | the cluster and the coordinator    |

They start stage by stage and end in the opposite order, and share one secret. There need not be a dashboard; where
there is one, the others let its pages ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tocsin.config import page_origins, url_of
from tocsin.system.process import PROGRAM

CLUSTER, COORDINATOR, DASHBOARD = "cluster", "coordinator", "dashboard"
ORIGINS = "http.allowed_origins"


@dataclass(frozen=True, slots=True)
class Part:
    """One program: its name among the others, its settings, and where it answers."""

    name: str
    kind: str
    url: str
    stage: int
    settings: Mapping[str, str] = field(default_factory=dict)

    def command(self, config: Path | None = None, program: Sequence[str] = PROGRAM) -> list[str]:
        named = [f"--config={config}"] if config else []
        return [*program, self.kind, *named, *(f"--set={name}={value}" for name, value in self.settings.items())]


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where everything answers, by port."""

    cluster: int
    coordinator: int
    brokers: Mapping[str, int]
    host: str = "127.0.0.1"
    scheme: str = "http"
    dashboard: int | None = None

    def url(self, port: int) -> str:
        return url_of(self.scheme, self.host, port)

    @property
    def cluster_url(self) -> str:
        return self.url(self.cluster)

    @property
    def coordinator_url(self) -> str:
        return self.url(self.coordinator)

    @property
    def dashboard_url(self) -> str | None:
        return self.url(self.dashboard) if self.dashboard is not None else None

    @property
    def origins(self) -> list[str]:
        """Of the dashboard's pages."""
        return page_origins(self.dashboard_url) if self.dashboard_url else []


def broker_names(count: int) -> list[str]:
    return [f"broker_{number}" for number in range(1, count + 1)]


def parts_of(data_dir: Path, addresses: Addresses, extra: Mapping[str, str] | None = None) -> list[Part]:
    """The programs in the order in which they start; ``extra`` settings are for all of them, but for addresses."""
    common = {**(extra or {}), "cluster.data_dir": str(data_dir.absolute())}
    if addresses.origins:
        common[ORIGINS] = " ".join(dict.fromkeys([*common.get(ORIGINS, "").split(), *addresses.origins]))
    known = {"broker.cluster": addresses.cluster_url, "broker.coordinator": addresses.coordinator_url}
    cluster = common | _at("cluster", addresses.host, addresses.cluster)
    coordinator = common | _at("coordinator", addresses.host, addresses.coordinator)
    coordinator["coordinator.cluster"] = addresses.cluster_url
    brokers = {
        name: common | known | _at("broker", addresses.host, port) | {"broker.name": name}
        for name, port in addresses.brokers.items()
    }
    return [
        Part(CLUSTER, CLUSTER, addresses.cluster_url, 0, cluster),
        Part(COORDINATOR, COORDINATOR, addresses.coordinator_url, 1, coordinator),
        *(Part(name, "broker", addresses.url(addresses.brokers[name]), 2, told) for name, told in brokers.items()),
        *_dashboard(addresses, common),
    ]


def _dashboard(addresses: Addresses, common: Mapping[str, str]) -> Iterator[Part]:
    if addresses.dashboard is not None and addresses.dashboard_url is not None:
        known = {"dashboard.cluster": addresses.cluster_url, "dashboard.coordinator": addresses.coordinator_url}
        told = {**common, **known, **_at(DASHBOARD, addresses.host, addresses.dashboard)}
        yield Part(DASHBOARD, DASHBOARD, addresses.dashboard_url, 3, told)


def _at(section: str, host: str, port: int) -> dict[str, str]:
    return {f"{section}.host": host, f"{section}.port": str(port)}
