"""The cluster's own counters, read from its metrics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from tocsin.demo.link import Link


@dataclass(frozen=True, slots=True)
class Counted:
    """What one channel did since the cluster started."""

    executions: int = 0
    failed: int = 0
    rows: int = 0
    matched: int = 0


def read_counters(link: Link) -> dict[str, Counted]:
    """By channel."""
    return parse_counters(link.text("/metrics"))


def parse_counters(text: str) -> dict[str, Counted]:
    found: dict[str, dict[str, int]] = {}
    for channel, name, value in _samples(text):
        found.setdefault(channel, {})[name] = value
    return {
        channel: Counted(
            executions=values.get("executions done", 0),
            failed=values.get("executions failed", 0),
            rows=values.get("results", 0),
            matched=values.get("matched", 0),
        )
        for channel, values in found.items()
    }


def _samples(text: str) -> Iterator[tuple[str, str, int]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removeprefix("tocsin_").removesuffix("_total")
            if name in ("executions", "results", "matched") and sample.name.endswith("_total"):
                yield sample.labels["channel"], f"{name} {sample.labels.get('outcome', '')}".strip(), int(sample.value)
