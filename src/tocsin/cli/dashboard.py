"""``tocsin dashboard``: serve the dashboard until a signal comes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tocsin.cli.extras import needs
from tocsin.cli.logs import configure_logging
from tocsin.cli.options import ConfigFile, DataDir, Sets, settings


def dashboard(
    config: ConfigFile = None,
    data_dir: DataDir = None,
    host: Annotated[str | None, typer.Option(help="Address to bind.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.", show_default="8450")] = None,
    coordinator: Annotated[str | None, typer.Option(help="Address of the coordinator.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Address of the data cluster.")] = None,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show a recording of the city instead of a system.")
    ] = None,
    brokers: Annotated[int, typer.Option(help="How many brokers the replay shows.", min=1, max=64)] = 10,
    insecure: Annotated[bool | None, typer.Option("--insecure", help="No tokens; on loopback only.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.", show_default="info")] = None,
    log_format: Annotated[str | None, typer.Option(help="text or json.", show_default="text")] = None,
    sets: Sets = None,
) -> None:
    """Serve the [bold]dashboard[/bold]: the system at a glance, the city, a subscriber's page, the lab.

    Prints an address that lets its first visitor in; everyone else needs a token. What somebody may do there is
    decided by that token, at coordinator, cluster and brokers, whose `http.allowed_origins` must name the dashboard.
    """
    flags = {
        "cluster.data_dir": data_dir,
        "dashboard.host": host,
        "dashboard.port": port,
        "dashboard.coordinator": coordinator,
        "dashboard.cluster": cluster,
        "dashboard.insecure": insecure,
        "log.level": log_level,
        "log.format": log_format,
    }
    chosen = settings(config, sets, flags).config
    configure_logging(chosen.log)
    with needs("dashboard"):
        from tocsin.dashboard.program import run
        from tocsin.dashboard.replay import Replay
    run(chosen, Replay(replay, brokers) if replay else None, on_ready=_tell)


def _tell(url: str) -> None:
    """On a terminal only: a log is no place for an address that lets somebody in."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    if console.is_terminal:
        console.print(f"Open {url}", markup=False)
