"""``tocsin load``: send a file's records to a dataset, batch by batch."""

from __future__ import annotations

import secrets
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from tocsin.cli.http import ClusterClient, may_pass
from tocsin.cli.options import ConfigFile, DataDir, Json, Sets, Token, Url, connection
from tocsin.cli.output import note, print_json
from tocsin.cli.records import FORMATS, Batch, batches, format_of, opened
from tocsin.errors import BadArgument, TocsinError
from tocsin.units import counted, parse_size

SHOWN_PROBLEMS = 5
BATCH_BYTES = 10**6


@dataclass(slots=True)
class Totals:
    """What the cluster has acknowledged so far."""

    batches: int = 0
    accepted: int = 0
    rejected: int = 0
    duplicate_batches: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)

    def add(self, receipt: dict[str, Any], batch: Batch) -> None:
        self.batches += 1
        self.accepted += receipt["accepted"]
        self.rejected += receipt["rejected"]
        self.duplicate_batches += bool(receipt.get("duplicate"))
        for one in receipt.get("problems", []):
            if len(self.problems) < SHOWN_PROBLEMS:
                self.problems.append({"line": batch.line(one["line"]), "reason": one["reason"]})


@dataclass(frozen=True, slots=True)
class Job:
    """A file on its way into a dataset; ``run`` names it, so that batches that arrived are not stored again."""

    dataset: str
    file: Path
    form: str
    run: str = field(default_factory=lambda: secrets.token_hex(6))
    limit: int = BATCH_BYTES

    @property
    def command(self) -> str:
        """What goes on with it."""
        size = [] if self.limit == BATCH_BYTES else ["--batch-size", f"{self.limit} B"]
        words = ["tocsin", "load", self.dataset, str(self.file), "--format", self.form, *size, "--run", self.run]
        return shlex.join(words)


class LoadStopped(TocsinError):
    """A batch was not acknowledged, or the file cannot be read on; carries how to go on."""

    def __init__(self, problem: str, totals: Totals, job: Job) -> None:
        self.problem, self.totals, self.job = problem, totals, job
        super().__init__(problem)

    def __str__(self) -> str:
        done = f"stopped after {counted(self.totals.accepted, 'record')}"
        return f"{self.problem}; {done}, which are stored; to go on without doubling any: {self.job.command}"


def load(
    dataset: Annotated[str, typer.Argument(help="The dataset.")],
    file: Annotated[Path, typer.Argument(help="JSON lines, CSV or Parquet, .gz too; - reads standard input.")],
    file_format: Annotated[
        str | None, typer.Option("--format", help=f"{', '.join(FORMATS)}.", show_default="from the file's name")
    ] = None,
    batch_size: Annotated[str, typer.Option(help="Most bytes in one request.")] = "1 MB",
    run: Annotated[
        str | None,
        typer.Option(
            help="Name of this load: batches that arrived under it are not stored again.", show_default="random"
        ),
    ] = None,
    url: Url = None,
    token: Token = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    sets: Sets = None,
) -> None:
    """[bold]Load[/bold] a file into a dataset, with a progress bar.

    Every batch is durable when it is acknowledged. A load that is cut off tells the command that goes on with it. Exits
    with 1 if any record was rejected: it is kept with its reason in the dead letters, the others are in the dataset.
    """
    chosen = format_of(file, file_format)
    limit = parse_size(batch_size, "--batch-size")
    if limit < 1:
        raise BadArgument("--batch-size", "at least '1 B'", batch_size)
    job = Job(dataset, file, chosen, run or secrets.token_hex(6), limit)
    with connection(url, token, config, data_dir, sets) as client:
        totals = send_file(client, job)
    _report(job, totals, as_json)
    if totals.rejected:
        raise typer.Exit(1)


def send_file(client: ClusterClient, job: Job) -> Totals:
    """Stream a file's records; stopped by whatever, it says how to go on."""
    client.get(f"/datasets/{quote(job.dataset, safe='')}")  # one that does not exist is told for an empty file, too
    totals = Totals()
    try:
        _send(client, job, totals)
    except KeyboardInterrupt:
        note(str(LoadStopped("interrupted", totals, job)))
        raise
    except TocsinError as problem:
        if not totals.batches and not may_pass(problem):
            raise  # nothing was stored, and the same would be refused again
        raise LoadStopped(str(problem), totals, job) from None
    return totals


def _send(client: ClusterClient, job: Job, totals: Totals) -> None:
    records = 0
    with opened(job.file) as source, _progress(source.size_bytes) as progress:
        task = progress.add_task(job.dataset, total=source.size_bytes, records=0)
        for number, batch in enumerate(batches(source, job.form, job.limit)):
            totals.add(client.append(job.dataset, batch.body, f"{job.run}-{number}", job.form), batch)
            records += batch.records
            progress.update(task, completed=source.position(), records=records)


@contextmanager
def _progress(size_bytes: int | None) -> Iterator[Progress]:
    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[records]:,} records"),
        TimeRemainingColumn(),
    ]
    shown = sys.stderr.isatty() and (size_bytes is None or size_bytes > 0)
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        yield progress


def sentence(job: Job, totals: Totals) -> str:
    """What became of the file."""
    if not totals.batches:
        return f"nothing was loaded into {job.dataset}: {job.file} holds no records"
    again = ""
    if totals.duplicate_batches:
        again = f", {totals.duplicate_batches:,} of {totals.batches:,} batches had arrived before"
    return f"loaded {counted(totals.accepted, 'record')} into {job.dataset}, {totals.rejected:,} rejected{again}"


def _report(job: Job, totals: Totals, as_json: bool) -> None:
    if as_json:
        print_json(totals)
        return
    note(sentence(job, totals))
    place = "row" if job.form == "parquet" else "line"
    for problem in totals.problems:
        note(f"  {place} {problem['line']}: {problem['reason']}")
    if totals.rejected:
        note(f"Rejected records are kept: SHOW DEAD LETTERS OF {job.dataset}")
