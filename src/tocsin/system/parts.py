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

CLUSTER, COORDINATOR, BROKER, DASHBOARD = "cluster", "coordinator", "broker", "dashboard"
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
    """Where everything answers, by port; at ``host``, save for those kinds of programs that have their own."""

    cluster: int
    coordinator: int
    brokers: Mapping[str, int]
    host: str = "127.0.0.1"
    scheme: str = "http"
    dashboard: int | None = None
    hosts: Mapping[str, str] = field(default_factory=dict)

    def host_of(self, kind: str) -> str:
        return self.hosts.get(kind, self.host)

    @property
    def cluster_url(self) -> str:
        return self._url(CLUSTER, self.cluster)

    @property
    def coordinator_url(self) -> str:
        return self._url(COORDINATOR, self.coordinator)

    def broker_url(self, name: str) -> str:
        return self._url(BROKER, self.brokers[name])

    @property
    def dashboard_url(self) -> str | None:
        return self._url(DASHBOARD, self.dashboard) if self.dashboard is not None else None

    def _url(self, kind: str, port: int) -> str:
        return url_of(self.scheme, self.host_of(kind), port)

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
    cluster = common | _at(CLUSTER, addresses, addresses.cluster)
    coordinator = common | _at(COORDINATOR, addresses, addresses.coordinator)
    coordinator["coordinator.cluster"] = addresses.cluster_url
    brokers = {
        name: common | known | _at(BROKER, addresses, port) | {"broker.name": name}
        for name, port in addresses.brokers.items()
    }
    return [
        Part(CLUSTER, CLUSTER, addresses.cluster_url, 0, cluster),
        Part(COORDINATOR, COORDINATOR, addresses.coordinator_url, 1, coordinator),
        *(Part(name, BROKER, addresses.broker_url(name), 2, told) for name, told in brokers.items()),
        *_dashboard(addresses, common),
    ]


def _dashboard(addresses: Addresses, common: Mapping[str, str]) -> Iterator[Part]:
    if addresses.dashboard is not None and addresses.dashboard_url is not None:
        known = {"dashboard.cluster": addresses.cluster_url, "dashboard.coordinator": addresses.coordinator_url}
        told = {**common, **known, **_at(DASHBOARD, addresses, addresses.dashboard)}
        yield Part(DASHBOARD, DASHBOARD, addresses.dashboard_url, 3, told)


def _at(kind: str, addresses: Addresses, port: int) -> dict[str, str]:
    return {f"{kind}.host": addresses.host_of(kind), f"{kind}.port": str(port)}
