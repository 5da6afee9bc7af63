"""``tocsin load``: send a file's records to a dataset, batch by batch."""

from __future__ import annotations

import secrets
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

from tocsin.cli.http import ClusterClient
from tocsin.cli.options import ConfigFile, DataDir, Json, Sets, Token, Url, connection
from tocsin.cli.output import note, print_json
from tocsin.cli.records import FORMATS, batches, format_of, opened
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

    def add(self, receipt: dict[str, Any], first_line: int) -> None:
        self.batches += 1
        self.accepted += receipt["accepted"]
        self.rejected += receipt["rejected"]
        self.duplicate_batches += bool(receipt.get("duplicate"))
        for one in receipt.get("problems", []):
            if len(self.problems) < SHOWN_PROBLEMS:
                self.problems.append({"record": first_line + one["line"] - 1, "reason": one["reason"]})


class LoadStopped(TocsinError):
    """A batch was not acknowledged; carries how to go on."""

    def __init__(self, problem: TocsinError, totals: Totals, run: str) -> None:
        self.problem, self.totals, self.run = problem, totals, run
        super().__init__(str(problem))

    def __str__(self) -> str:
        sent = f"stopped after {counted(self.totals.accepted, 'record')}"
        return f"{self.problem}; {sent}, repeat the command with --run {self.run} to go on without doubling any"


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

    Every batch is durable when it is acknowledged. A load that was cut off goes on with --run. Exits with 1 if any
    record was rejected: it is kept with its reason in the dead letters, and the others are in the dataset.
    """
    chosen, name = format_of(file, file_format), run or secrets.token_hex(6)
    limit = parse_size(batch_size, "--batch-size")
    if limit < 1:
        raise BadArgument("--batch-size", "at least '1 B'", batch_size)
    with connection(url, token, config, data_dir, sets) as client:
        totals = send_file(client, dataset, file, chosen, name, limit)
    _report(dataset, totals, as_json)
    if totals.rejected:
        raise typer.Exit(1)


def _columns(client: ClusterClient, dataset: str) -> dict[str, str]:
    found = client.get(f"/datasets/{quote(dataset, safe='')}")
    return {column["name"]: column["type"] for column in found["columns"]}


def send_file(client: ClusterClient, dataset: str, file: Path, form: str, run: str, limit: int = BATCH_BYTES) -> Totals:
    """Stream a file's records; batches that arrived under the name ``run`` before are not stored again."""
    columns, totals, records = _columns(client, dataset), Totals(), 0
    with opened(file) as source, _progress(source.size_bytes) as progress:
        task = progress.add_task(dataset, total=source.size_bytes, records=0)
        for number, batch in enumerate(batches(source, form, columns, limit)):
            try:
                totals.add(client.append(dataset, batch.lines, f"{run}-{number}"), records + 1)
            except TocsinError as problem:
                raise LoadStopped(problem, totals, run) from None
            records += batch.records
            progress.update(task, completed=source.position(), records=records)
    return totals


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


def _report(dataset: str, totals: Totals, as_json: bool) -> None:
    if as_json:
        print_json(totals)
        return
    again = (
        f", {totals.duplicate_batches:,} of {totals.batches:,} batches had arrived before"
        if totals.duplicate_batches
        else ""
    )
    note(f"{dataset}: {counted(totals.accepted, 'record')} accepted, {totals.rejected:,} rejected{again}.")
    for problem in totals.problems:
        note(f"  record {problem['record']}: {problem['reason']}")
    if totals.rejected:
        note(f"Rejected records are kept: SHOW DEAD LETTERS OF {dataset}")
