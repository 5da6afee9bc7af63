"""``tocsin lab``: simulate, reproduce the papers' figures."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tocsin.cli.commands import Command, Group
from tocsin.cli.extras import needs
from tocsin.cli.output import note
from tocsin.cli.signals import ended_by_signals
from tocsin.errors import BadArgument

if TYPE_CHECKING:
    from tocsin.lab.debs19.run import Reproduced
    from tocsin.lab.jobs import Runner

LIVE = "debs19-live"
HERE = "none"
MANY_RUNS = 64  # from here on it pays to start Spark
app = typer.Typer(help="Simulate brokers with the policies that the coordinator runs.", no_args_is_help=True, cls=Group)


@app.callback()
def lab() -> None:
    """Simulate brokers with the policies that the coordinator runs."""


@app.command("run", cls=Command)
def run(
    what: Annotated[str, typer.Argument(metavar="PAPER|FILE", help="debs19, debs19-live, or a study in a TOML file.")],
    figure: Annotated[list[int] | None, typer.Option(help="Only this figure of the paper; may be repeated.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="How many seeds; 3 for a paper, 1 live, as the file says for a study.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Directory for figures, tables and reports.")] = Path("papers"),
    spark: Annotated[
        str | None,
        typer.Option(
            metavar="MASTER",
            help="Spark on which runs go beside each other, such as local[4]; none runs one after the other.",
            show_default=f"local[*] for a study of {MANY_RUNS} runs or more, if Spark is installed",
        ),
    ] = None,
    compress: Annotated[
        float | None, typer.Option(help="Live: how many times faster than the paper's half hour.")
    ] = None,
    reports: Annotated[int | None, typer.Option(help="Live: emergency reports, 10,000 in the paper.")] = None,
    beside: Annotated[int, typer.Option(help="Live: runs beside each other on one cluster.")] = 1,
) -> None:
    """Reproduce a [bold]paper[/bold], or run a study of your own.

    A paper's figures are written as PNG and CSV, and its claims beside what was measured as report.md and report.json.
    With debs19-live they are measured on a cluster, a coordinator, five brokers and 400 connected subscribers.
    """
    if what not in ("debs19", LIVE) and not what.endswith(".toml"):
        raise BadArgument("what to run", f"debs19, {LIVE}, or a file that ends in .toml", what)
    if what != LIVE and (compress, reports, beside) != (None, None, 1):
        raise BadArgument("--compress, --reports, --beside", LIVE, what)
    if what == LIVE and spark is not None:
        raise BadArgument("--spark", "debs19 or a study, for a living system has its own", what)
    _check_out(out)
    with needs("lab"):
        import matplotlib  # noqa: F401
        import numba  # noqa: F401
    began = time.monotonic()
    if what == LIVE:
        files = _live(out, figure or [], 1 if seeds is None else seeds, compress, reports, beside)
    elif what == "debs19":
        files = _paper(out, figure or [], 3 if seeds is None else seeds, _runner(spark))
    else:
        files = _study(Path(what), out, figure, seeds, spark)
    note("\n  ".join([f"Written, after {time.monotonic() - began:.0f} s:", *map(str, files)]))


def _check_out(out: Path) -> None:
    """Before minutes of work are lost; what is not there yet is made below the nearest that is."""
    there = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        raise BadArgument("--out", "a directory that can be written to", str(out))


def _runner(master: str | None) -> Runner:
    if master in (None, HERE):
        from tocsin.lab.jobs import local

        return local
    with needs("cluster"):
        from tocsin.datacluster.spark import fanout
    return fanout.at(master)


def master_for(runs: int) -> str:
    """Where to run that many if nobody said where."""
    return "local[*]" if runs >= MANY_RUNS and find_spec("pyspark") else HERE


def _paper(out: Path, figures: list[int], seeds: int, runner: Runner) -> list[Path]:
    from tocsin.lab.debs19.run import reproduce

    return _told(reproduce(out, figures, seeds, runner), out)


def _live(
    out: Path, figures: list[int], seeds: int, compress: float | None, reports: int | None, beside: int
) -> list[Path]:
    with needs("broker"):
        import uvloop

        from tocsin.lab.limits import check_seeds
        from tocsin.live import run as live
        from tocsin.live.experiment import Experiment
    check_seeds(seeds)
    if not 1 <= beside <= len(live.EVERY):
        raise BadArgument("--beside", f"a number from 1 to {len(live.EVERY)}", beside)
    labels = live.labels_of(figures)
    experiment = Experiment() if compress is None else Experiment(speed=compress)
    experiment = experiment if reports is None else replace(experiment, reports=reports)
    note(experiment.told())
    with ended_by_signals():
        measured = uvloop.run(live.measure(experiment, labels, seeds, beside, note))
    return _told(live.reproduce(measured, experiment, out, figures), out)


def _study(path: Path, out: Path, figures: list[int] | None, seeds: int | None, spark: str | None) -> list[Path]:
    from tocsin.lab import study

    if figures:
        raise BadArgument("--figure", "a paper", str(path))
    wanted = study.Study.read(path)
    wanted = wanted if seeds is None else replace(wanted, seeds=seeds)
    rows, files = study.run(wanted, out, _runner(spark or master_for(wanted.runs)))
    table = Table(box=None, pad_edge=False)
    for column in study.COLUMNS:
        table.add_column(column, no_wrap=True, justify="left" if column == "scheme" else "right")
    for row in rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    Console().print(table)
    return files


def _told(found: Reproduced, out: Path) -> list[Path]:
    """The claims that these runs renewed, and the files written."""
    console = Console(soft_wrap=True, highlight=False)
    for claim in found.claims:
        state = ("agrees ", "green") if claim.agrees else ("differs", "bold red")
        console.print(Text.assemble(state, f"  {claim.section}: {claim.claim}"))
        console.print(Text(f"         measured: {claim.measured}", style="dim"))
    if found.unchanged:
        note(f"{found.unchanged} others are unchanged, in {out / 'report.md'}")
    return found.files
