"""``tocsin broker``: run a broker until a signal comes."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.extras import needs
from tocsin.cli.logs import configure_logging
from tocsin.cli.options import ConfigFile, DataDir, Sets, settings


def broker(
    config: ConfigFile = None,
    data_dir: DataDir = None,
    name: Annotated[str | None, typer.Option(help="Name of the broker.", show_default="broker_1")] = None,
    host: Annotated[str | None, typer.Option(help="Address to bind.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.", show_default="8430")] = None,
    cluster: Annotated[str | None, typer.Option(help="Address of the data cluster.")] = None,
    coordinator: Annotated[str | None, typer.Option(help="Address of the coordinator.")] = None,
    insecure: Annotated[bool | None, typer.Option("--insecure", help="No tokens; on loopback only.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.", show_default="info")] = None,
    log_format: Annotated[str | None, typer.Option(help="text or json.", show_default="text")] = None,
    sets: Sets = None,
) -> None:
    """Run a [bold]broker[/bold]: connections of subscribers and publishers, by WebSocket, SSE and HTTP.

    Its data directory holds the secret that it shares with the rest of the system. Ctrl-C drains it.
    """
    flags = {
        "cluster.data_dir": data_dir,
        "broker.name": name,
        "broker.host": host,
        "broker.port": port,
        "broker.cluster": cluster,
        "broker.coordinator": coordinator,
        "broker.insecure": insecure,
        "log.level": log_level,
        "log.format": log_format,
    }
    chosen = settings(config, sets, flags).config
    configure_logging(chosen.log)
    with needs("broker"):
        from tocsin.broker.program import run
    run(chosen)
