"""Settings of the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tocsin.config.checks import is_loopback
from tocsin.settings.declare import Bytes, Seconds, duration, flag, integer, number, size, text


@dataclass(frozen=True, slots=True)
class Dashboard:
    host: str = text("127.0.0.1", "Address the dashboard binds.", pattern=r"\S+", expected="a host name or address")
    port: int = integer(
        8450, "The dashboard's one port, for its pages and their WebSocket; 0 takes a free one.", low=0, high=65535
    )
    url: str = text(
        "",
        "Address that browsers reach the dashboard at; empty means `http://host:port`.",
        pattern=r"(https?://[^\s/]+)?",
        expected="http://host:port",
    )
    insecure: bool = flag(False, "Everyone may see everything without a token; allowed on loopback only.")
    coordinator: str = text(
        "",
        "Address of the coordinator, for the dashboard and for browsers; empty means `client.coordinator`, or the one "
        "in `[coordinator]`.",
        pattern=r"(https?://[^\s/]+)?",
        expected="http://host:port",
    )
    cluster: str = text(
        "",
        "Address of the data cluster; empty means the one in `[cluster]`.",
        pattern=r"(https?://[^\s/]+)?",
        expected="http://host:port",
    )
    sample_every: Seconds = duration(
        "1s", "How often coordinator, cluster and brokers are asked how they are.", low="100ms", high="1m"
    )
    timeout: Seconds = duration("3s", "How long each of them may take to answer.", low="100ms", high="1m")
    history: int = integer(
        900, "Samples that a page gets when it opens: a quarter of an hour at one a second.", low=2, high=100_000
    )
    assignments_every: Seconds = duration(
        "2s", "How often it is asked who is at which broker, while somebody looks at the map.", low="100ms", high="1m"
    )
    enter_ttl: Seconds = duration(
        "1h", "How long the address that a start prints lets its first visitor in without a token.", low="1s", high="7d"
    )
    lag_budget: Seconds = duration("30s", "A channel that is further behind raises an alert.", low="0s", high="1d")
    cov_budget: float = number(
        0.5, "Brokers whose loads vary more (coefficient of variation) raise an alert.", high=100.0
    )
    cov_load: float = number(
        10_000.0, "Below so many bytes a second in the mean, uneven loads are nothing to tell.", high=1e15
    )
    loss_budget: int = integer(
        0, "Notifications shed, or gaps told, in the last minute beyond which there is an alert.", low=0, high=10**9
    )
    papers: str = text("papers", "Directory with the report and the figures that `tocsin lab run` wrote.")
    study_timeout: Seconds = duration(
        "2m", "A study asked for on the lab page is ended after so long.", low="1s", high="1h"
    )
    study_subscribers: int = integer(20_000, "Most subscribers of such a study.", low=1, high=10**6)
    study_seconds: int = integer(3_600, "Longest simulated time of such a study, in seconds.", low=60, high=86_400)
    topic_bytes: Bytes = size(
        "2 MB", "Bytes of the past kept of each of its topics, for pages that come back.", low="100 kB", high="1 GB"
    )

    max_body_bytes: Bytes = size("100 kB", "Longest body of a request, such as a study's.", low="1 kB", high="16 MB")

    def problems(self) -> Iterator[str]:
        if self.insecure and not is_loopback(self.host):
            yield f"dashboard.insecure: allowed on a loopback address only, and dashboard.host is {self.host!r}"
