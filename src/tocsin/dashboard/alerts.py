"""When an operator should look: budgets of lag, of unevenness and of loss, and parts that do not answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from tocsin.config import Dashboard
from tocsin.dashboard.samples import Alert, BrokerSample, ChannelSample, ClusterSample, Figures

ABSENT = {
    "silent": "it does not report, keeps its people, and gets no newcomers",
    "dead": "its people are served elsewhere",
}


@dataclass(frozen=True, slots=True)
class Budgets:
    lag_s: float
    cov: float
    cov_load: float
    lost: int

    @staticmethod
    def of(settings: Dashboard) -> Budgets:
        return Budgets(settings.lag_budget, settings.cov_budget, settings.cov_load, settings.loss_budget)


class Watch:
    """Remembers since when each alert holds."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets, self._since = budgets, dict[str, float]()

    def look(
        self,
        at: float,
        brokers: Sequence[BrokerSample],
        figures: Figures | None,
        channels: Sequence[ChannelSample],
        cluster: ClusterSample,
    ) -> list[Alert]:
        found = list(exceeded(self._budgets, brokers, figures, channels, cluster))
        self._since = {alert.id: self._since.get(alert.id, at) for alert in found}
        return [msgspec.structs.replace(alert, since=self._since[alert.id]) for alert in found]


def exceeded(
    budgets: Budgets,
    brokers: Sequence[BrokerSample],
    figures: Figures | None,
    channels: Sequence[ChannelSample],
    cluster: ClusterSample,
) -> Iterator[Alert]:
    if not cluster.is_ready:
        yield Alert("cluster", f"The data cluster is not ready: {cluster.reason}")
    for channel in channels:
        if channel.lag_s is not None and channel.lag_s > budgets.lag_s:
            yield Alert(
                f"lag {channel.name}",
                f"{channel.name} is {channel.lag_s:.0f} s behind its records; the budget is {budgets.lag_s:g} s.",
            )
        if channel.lost > budgets.lost:
            text = f"{channel.name} lost {channel.lost:,} results in the last minute, of which brokers are told a gap"
            yield Alert(f"loss {channel.name}", f"{text}; the budget is {budgets.lost:,}.")
        if channel.problem and channel.state != "running":  # one that runs waits for another; its lag tells
            yield Alert(f"channel {channel.name}", f"{channel.name} is {channel.state}: {channel.problem}")
    if figures and figures.cov > budgets.cov and figures.mean >= budgets.cov_load:
        yield Alert("cov", f"Brokers are unevenly loaded: cov {figures.cov:.2f}, and the budget is {budgets.cov:g}.")
    for broker in brokers:
        if broker.state in ABSENT:
            yield Alert(f"broker {broker.name}", f"{broker.name} is {broker.state}: {ABSENT[broker.state]}.")
        if broker.lost > budgets.lost:
            text = f"{broker.name} told of {broker.lost:,} losses in the last minute; the budget is {budgets.lost:,}."
            yield Alert(f"loss {broker.name}", text)
