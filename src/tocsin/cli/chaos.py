"""``tocsin chaos``: hurt a whole system on purpose, seed after seed, and count what arrives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tocsin.cli.extras import needs
from tocsin.cli.output import note, print_json
from tocsin.cli.signals import run_until_signalled
from tocsin.errors import BadArgument

if TYPE_CHECKING:
    from tocsin.chaos.run import SeedResult
    from tocsin.chaos.totals import Totals


def chaos(
    seeds: Annotated[str, typer.Option(metavar="A:B", help="Seeds A to B, both included; or one seed.")] = "1:5",
    verbose: Annotated[bool, typer.Option("--verbose", help="Tell the story of each seed while it happens.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep journals and logs of seeds that went well, too.")] = False,
    directory: Annotated[Path, typer.Option("--dir", help="Directory for processes and journals.")] = Path(".chaos"),
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each seed.")] = False,
) -> None:
    """Run [bold]seeded faults[/bold] against a system of real processes under traffic, with real connections.

    What must arrive is computed from the acknowledgements alone. The last line is JSON. Exits with 1 if anything is
    missing, doubled, out of order, or if a gap was told without a cause. A seed that failed leaves its journal.
    """
    with needs("cluster"):
        from tocsin.chaos.schedule import seeds_of
    chosen = seeds_of(seeds)
    if chosen is None:
        raise BadArgument("--seeds", "A:B with A at most B, or one number", seeds)
    totals = run_until_signalled(_play(chosen, directory, verbose, keep, as_json))
    print_json(totals.line())
    if totals.failed_seeds:
        raise typer.Exit(1)


async def _play(seeds: range, directory: Path, verbose: bool, keep: bool, as_json: bool) -> Totals:
    from tocsin.chaos.series import play
    from tocsin.chaos.totals import Totals, seed_line

    totals = Totals()
    echo = note if verbose else None
    async for result in play(seeds, directory, keep=keep, echo=echo):
        totals.add(result)
        if as_json:
            print_json(seed_line(result))
        else:
            _tell(result)
    return totals


def _tell(result: SeedResult) -> None:
    console = Console(soft_wrap=True, highlight=False)
    verdict, faults = result.verdict, " ".join(f"{kind}:{count}" for kind, count in sorted(result.faults.items()))
    state = "[bold red]failed[/bold red]" if result.has_failed else "[green]ok[/green]"
    gapped = f", {verdict.gapped.total():,} gapped" if verdict.gapped else ""
    console.print(
        f"seed {result.seed:<5} {state}  {result.seconds:4.0f} s  {verdict.delivered:,} of {verdict.expected:,} "
        f"delivered{gapped}  {faults}"
    )
    for problem in [*result.problems, *verdict.problems][:20]:
        console.print(f"    {problem}", markup=False)
    if result.has_failed:
        console.print(f"    the whole story is in {result.journal}", markup=False)
