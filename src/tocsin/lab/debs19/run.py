"""Reproduce the paper: run what the figures need, each scheme once a seed; draw; hold claims against measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tocsin.errors import BadArgument
from tocsin.lab import claims as report
from tocsin.lab.claims import Claim
from tocsin.lab.debs19 import figure13, figure14, figures5to12, others, prototype_claims, sections
from tocsin.lab.debs19.schemes import Runs
from tocsin.lab.jobs import Job, Runner, local
from tocsin.lab.limits import check_seeds

NUMBERS = (*figures5to12.NUMBERS, 13, 14)


@dataclass(frozen=True, slots=True)
class Reproduced:
    """Claims that were held against these runs, how many stand in the report as they were, and all files written."""

    claims: list[Claim]
    unchanged: int
    files: list[Path]

    @classmethod
    def written(cls, out: Path, held: list[Claim], drawn: list[Path], *, whole: str | None, live: bool) -> Reproduced:
        everything = report.write(out, held, whole=whole, live=live)
        return cls(held, len(everything) - len(held), [*drawn, out / "report.md", out / "report.json"])


def runs(jobs: dict[str, Job], seeds: Sequence[int], runner: Runner = local) -> Runs:
    """The traces of each job, one a seed."""
    traces = iter(runner([replace(job, seed=seed) for job in jobs.values() for seed in seeds]))
    return {label: [next(traces) for _ in seeds] for label in jobs}


def reproduce(out: Path, figures: Sequence[int] = (), seeds: int = 3, runner: Runner = local) -> Reproduced:
    """All of it, or only some figures and what is said of them; everything is written under ``out``."""
    wanted = tuple(figures) or NUMBERS
    if unknown := [number for number in wanted if number not in NUMBERS]:
        raise BadArgument("figure", f"one of {', '.join(map(str, NUMBERS))}", unknown[0])
    check_seeds(seeds)
    city = tuple(number for number in wanted if number in figures5to12.NUMBERS)
    parts = [part for part in (figure13, figure14) if int(part.__name__[-2:]) in wanted]
    jobs = (figures5to12.jobs() if city else {}) | ({} if figures else others.jobs())
    for part in parts:
        jobs |= part.jobs()
    found, drawn = runs(jobs, range(seeds), runner), out / "debs19"
    files = figures5to12.draw(found, drawn, city) if city else []
    files += [] if figures else sections.draw(found, drawn)
    held = [] if figures else others.claims(found)
    held += prototype_claims.claims(found) if city else []
    for part in parts:
        files += part.draw(found, drawn)
        held += part.claims(found)
    return Reproduced.written(out, held, files, whole=None if figures else "debs19", live=False)
