"""``tocsin lab``: simulate, reproduce the papers' figures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from tocsin.cli.commands import Command, Group
from tocsin.cli.extras import needs
from tocsin.cli.output import note
from tocsin.errors import BadArgument

if TYPE_CHECKING:
    from tocsin.lab.claims import Claim
    from tocsin.lab.jobs import Runner

app = typer.Typer(help="Simulate brokers with the policies that the coordinator runs.", no_args_is_help=True, cls=Group)


@app.callback()
def lab() -> None:
    """Simulate brokers with the policies that the coordinator runs."""


@app.command("run", cls=Command)
def run(
    what: Annotated[str, typer.Argument(metavar="PAPER|FILE", help="debs19, or a study in a TOML file.")],
    figure: Annotated[list[int] | None, typer.Option(help="Only this figure of the paper; may be repeated.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="How many seeds; 3 for a paper, as the file says for a study.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Directory for figures, tables and reports.")] = Path("papers"),
    spark: Annotated[
        str | None, typer.Option(metavar="MASTER", help="Run beside each other on Spark: local[4].")
    ] = None,
) -> None:
    """Reproduce a [bold]paper[/bold], or run a study of your own.

    A paper's figures are written as PNG and CSV, and its claims beside what was measured as report.md and report.json.
    """
    if what != "debs19" and not what.endswith(".toml"):
        raise BadArgument("what to run", "debs19, or a file that ends in .toml", what)
    with needs("lab"):
        import matplotlib  # noqa: F401
        import numba  # noqa: F401
    began = time.monotonic()
    runner = _runner(spark)
    if what == "debs19":
        files = _paper(out, figure or [], 3 if seeds is None else seeds, runner)
    else:
        files = _study(Path(what), out, figure, seeds, runner)
    note(f"{len(files)} files in {out}, {time.monotonic() - began:.0f} s")


def _runner(master: str | None) -> Runner:
    if master is None:
        from tocsin.lab.jobs import local

        return local
    with needs("cluster"):
        from tocsin.datacluster.spark import fanout
    return fanout.at(master)


def _paper(out: Path, figures: list[int], seeds: int, runner: Runner) -> list[Path]:
    from tocsin.lab.debs19.run import reproduce

    found = reproduce(out, figures, seeds, runner)
    _tell([claim for claim in found.claims if claim.paper == "debs19"])
    return [*found.files, out / "report.json", out / "report.md"]


def _study(path: Path, out: Path, figures: list[int] | None, seeds: int | None, runner: Runner) -> list[Path]:
    from dataclasses import replace

    from tocsin.lab import study

    if figures:
        raise BadArgument("--figure", "a paper", str(path))
    if seeds is not None and seeds < 1:
        raise BadArgument("--seeds", "a number from 1 on", seeds)
    wanted = study.Study.read(path)
    rows, files = study.run(replace(wanted, seeds=seeds or wanted.seeds), out, runner)
    table = Table(box=None, pad_edge=False)
    for column in study.COLUMNS:
        table.add_column(column, no_wrap=True, justify="left" if column == "scheme" else "right")
    for row in rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    Console().print(table)
    return files


def _tell(claims: list[Claim]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for claim in claims:
        state = "[green]agrees[/green]" if claim.agrees else "[bold red]differs[/bold red]"
        console.print(f"{state}  {claim.section}: {claim.claim}")
        console.print(f"         measured: {claim.measured}", markup=False, style="dim")
