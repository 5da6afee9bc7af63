"""A study of one's own, from a TOML file: a world, schemes, seeds.

::

    seeds = 3                      # 0, 1, 2

    [world]
    kind = "simulation"            # or "prototype"; the other keys are fields of these
    subscribers = 2000

    [pace]                         # check_s, window_s, moves_per_s, limit_bytes_s, sharing
    moves_per_s = 20

    [[schemes]]
    name = "xbal"
    placement = "nearest"          # any placement policy, with placement_options
    migrate = "xbal"               # any balancing policy, or left out; with migrate_options
    shuffle = "simsh"              # likewise, with shuffle_options
    options = { alpha = 0.1 }      # of the framework

A scheme with neither ``migrate`` nor ``shuffle`` moves nobody. Rates come averaged over the pace's window; the
framework's own ``window_s`` averages loads once more, and is 0 unless it is given.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tocsin.errors import BadArgument, ConfigError, nearest
from tocsin.lab import drawing
from tocsin.lab.debs19.prototype import Prototype
from tocsin.lab.debs19.simulation import Simulation
from tocsin.lab.engine import Pace
from tocsin.lab.jobs import Job, Runner, Settings, local
from tocsin.lab.limits import check_seeds
from tocsin.lab.trace import Trace
from tocsin.policies.multistage.framework import Framework
from tocsin.policies.multistage.snapshot import Floats
from tocsin.policies.registry import balancing_framework, balancing_policy, placement_policy

WORLDS: Mapping[str, type[Simulation] | type[Prototype]] = {"simulation": Simulation, "prototype": Prototype}
COLUMNS = ("scheme", "seed", "max_kb_s", "peak_kb_s", "cov", "migrations", "plans", "messages")


class Scheme(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Policies by name with their options as written."""

    name: str
    placement: str = "nearest"
    placement_options: dict[str, Any] = {}
    migrate: str | None = None
    migrate_options: dict[str, Any] = {}
    shuffle: str | None = None
    shuffle_options: dict[str, Any] = {}
    options: dict[str, Any] = {}

    def framework(self) -> Framework | None:
        if self.migrate is None and self.shuffle is None:
            return None
        migrate = balancing_policy(self.migrate, self.migrate_options) if self.migrate else None
        shuffle = balancing_policy(self.shuffle, self.shuffle_options) if self.shuffle else None
        return balancing_framework(migrate, shuffle, {"window_s": "0"} | self.options)


class _File(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    schemes: list[Scheme]
    world: dict[str, Any] = {}
    pace: dict[str, Any] = {}
    seeds: int = 1


@dataclass(frozen=True, slots=True)
class Study:
    settings: Settings
    pace: Pace
    schemes: tuple[Scheme, ...]
    seeds: int

    def __post_init__(self) -> None:
        check_seeds(self.seeds)

    @classmethod
    def read(cls, path: Path) -> Study:
        """ConfigError says what is wrong with the file."""
        try:
            file = msgspec.convert(tomllib.loads(path.read_text()), _File)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
            raise ConfigError(f"{path}: {problem}") from None
        if not file.schemes or len({scheme.name for scheme in file.schemes}) < len(file.schemes):
            raise ConfigError(f"{path}: expected schemes with a name each, none of them twice")
        world = dict(file.world)
        kind = world.pop("kind", "simulation")
        if kind not in list(WORLDS):
            raise ConfigError(f"{path}: world: expected kind one of {', '.join(WORLDS)}, got {kind!r}")
        settings, pace = _made("world", WORLDS[kind], world), _made("pace", Pace, file.pace)
        try:
            return cls(settings, pace, tuple(file.schemes), file.seeds)
        except BadArgument as problem:
            raise ConfigError(f"{path}: {problem}") from None

    @property
    def runs(self) -> int:
        return self.seeds * len(self.schemes)

    def jobs(self) -> list[Job]:
        """Scheme by scheme, seed by seed."""
        return [
            Job(self.settings, placement_policy(s.placement, s.placement_options), s.framework(), seed, self.pace)
            for s in self.schemes
            for seed in range(self.seeds)
        ]


def run(study: Study, out: Path, runner: Runner = local) -> tuple[list[tuple[object, ...]], list[Path]]:
    """Rows as ``COLUMNS`` has them, one a run, and the files written: the rows, and cov over time."""
    traces = runner(study.jobs())
    names = [(s.name, seed) for s in study.schemes for seed in range(study.seeds)]
    rows = [_row(name, seed, trace) for (name, seed), trace in zip(names, traces, strict=True)]
    numbers = drawing.table(out / "study.csv", COLUMNS, rows)
    covs = np.array([trace.covs() for trace in traces]).reshape(len(study.schemes), study.seeds, -1)
    return rows, [numbers, _drawn([scheme.name for scheme in study.schemes], covs, out)]


def _made(what: str, kind: type[Any], given: dict[str, Any]) -> Any:
    known = [field.name for field in fields(kind)]
    for name in given:
        if name not in known:
            raise ConfigError(f"{what}: expected one of {', '.join(known)}, got {name!r}{nearest(name, known)}")
    try:
        return msgspec.convert(given, kind)
    except (msgspec.ValidationError, BadArgument) as problem:
        raise ConfigError(f"{what}: {problem}") from None


def _row(name: str, seed: int, trace: Trace) -> tuple[object, ...]:
    """Means of the second half of the run."""
    half = len(trace.moved) // 2
    loads = trace.loads
    top, cov = float(loads[half:].max(axis=1).mean()), float(trace.covs()[half:].mean())
    peak = float(loads.max())
    loads_kb = (round(top / 1000), round(peak / 1000))
    return name, seed, *loads_kb, round(cov, 5), trace.migrations, len(trace.plans()), trace.messages


def _drawn(names: list[str], covs: Floats, out: Path) -> Path:
    """``covs`` are by scheme, seed and second: their mean over the seeds, and how far apart these are."""
    seeds = covs.shape[1]
    told = f", mean of {seeds} seeds (shaded: lowest to highest)" if seeds > 1 else ""
    figure, axes = drawing.canvas(1, 1, f"cov of the brokers' loads{told}", size=(7, 3.6))
    minutes = np.arange(1, covs.shape[2] + 1) / 60
    for at, (name, runs) in enumerate(zip(names, covs, strict=True)):
        colour = drawing.COLOURS[at % len(drawing.COLOURS)]
        axes[0][0].fill_between(minutes, runs.min(axis=0), runs.max(axis=0), color=colour, alpha=0.15, lw=0)
        axes[0][0].plot(minutes, runs.mean(axis=0), label=name, color=colour, lw=1.4)
    axes[0][0].set(xlabel="minutes", ylabel="cov", ylim=(0, None))
    axes[0][0].legend(frameon=False, labelcolor=drawing.INK)
    return drawing.save(figure, out / "study.png")
