"""Samples in one line."""

from __future__ import annotations

from typing import Any

import msgspec

from tocsin.dashboard.samples import BrokerSample, ChannelSample, ClusterSample, Figures, Sample

READY = ClusterSample(True, "")


def broker(name: str = "b", load: float = 0.0, state: str = "live", **more: Any) -> BrokerSample:
    return msgspec.structs.replace(
        BrokerSample(name, state, 0, 0, load * 0.2, load * 0.8, 0.0, None, None), **more
    )  # fmt: skip


def channel(name: str = "c", **more: Any) -> ChannelSample:
    made = ChannelSample(name, "continuous", "running", "index", 0, 0, 0, 0.0, 0.0, 0.0, 0.0, None, None)
    return msgspec.structs.replace(made, **more)


def sample(n: int, *brokers: BrokerSample, **more: Any) -> Sample:
    return Sample(n, float(n), list(brokers), more.pop("figures", Figures()), [], READY, **more)
