"""``tocsin record``: write down the city, for ``tocsin dashboard --replay`` and for programs of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli.extras import needs
from tocsin.cli.output import note
from tocsin.errors import BadArgument


def record(
    file: Annotated[Path, typer.Argument(help="JSON lines; compressed where the name ends in .gz.")],
    seconds: Annotated[float, typer.Option(help="How long the recording plays.")] = 60.0,
    people: Annotated[int, typer.Option(help="People who move through the city.", min=1)] = 2_000,
    subscribers: Annotated[int, typer.Option(help="How many of them log in and subscribe.", min=0)] = 400,
    speed: Annotated[float, typer.Option(help="How many times faster than life.")] = 5.0,
    seed: Annotated[int, typer.Option(help="Another seed is another city.", min=0)] = 1,
    storms: Annotated[bool, typer.Option("--storms", help="Make one district after the other hot.")] = False,
) -> None:
    """Write a [bold]recording[/bold] of the city: who moves, reports, logs in, subscribes, leaves.

    The city is generated, and like no real one. The same options give the same file.
    """
    with needs("dashboard"):
        from tocsin.scenarios.city import Scenario, Storms
    if not seconds > 0:
        raise BadArgument("--seconds", "a number above 0", seconds)
    scenario = Scenario(
        seed=seed,
        people=people,
        subscribers=min(subscribers, people),
        speed=speed,
        storms=Storms() if storms else None,
    )
    count = scenario.record(file, seconds)
    note(f"{count:,} events of a generated city are in {file}; look at them with: tocsin dashboard --replay {file}")
