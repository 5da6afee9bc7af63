"""Many seeds in one table, and in one line of JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tocsin.chaos.evaluate import Verdict
from tocsin.chaos.run import SeedResult
from tocsin.chaos.schedule import Kind


@dataclass(slots=True)
class Totals:
    runs: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    verdict: Verdict = field(default_factory=Verdict)
    failed_seeds: list[int] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, result: SeedResult) -> None:
        self.runs += 1
        self.seconds += result.seconds
        self.faults.update(result.faults)
        self.verdict.add(result.verdict)
        if result.has_failed:
            self.failed_seeds.append(result.seed)

    def line(self) -> dict[str, Any]:
        verdict = self.verdict
        return {
            "runs": self.runs,
            "faults": {kind.value: self.faults[kind.value] for kind in Kind},
            "expected": verdict.expected,
            "delivered": verdict.delivered,
            "gapped": dict(sorted(verdict.gapped.items())),
            "missing": verdict.missing,
            "doubled": verdict.doubled,
            "out_of_order": verdict.out_of_order,
            "strange": verdict.strange,
            "false_gaps": verdict.false_gaps,
            "failed_seeds": self.failed_seeds,
            "seconds": round(self.seconds, 1),
        }


def seed_line(result: SeedResult) -> dict[str, Any]:
    verdict = result.verdict
    return {
        "seed": result.seed,
        "seconds": round(result.seconds, 1),
        "faults": dict(result.faults),
        "expected": verdict.expected,
        "delivered": verdict.delivered,
        "gapped": dict(verdict.gapped),
        "missing": verdict.missing,
        "doubled": verdict.doubled,
        "out_of_order": verdict.out_of_order,
        "problems": [*result.problems, *verdict.problems],
        **({"journal": str(result.journal)} if result.has_failed else {}),
    }
