"""``tocsin coordinator``: run the coordinator until a signal comes."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.extras import needs
from tocsin.cli.logs import configure_logging
from tocsin.cli.options import ConfigFile, DataDir, Sets, settings


def coordinator(
    config: ConfigFile = None,
    data_dir: DataDir = None,
    host: Annotated[str | None, typer.Option(help="Address to bind.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.", show_default="8440")] = None,
    store: Annotated[
        str | None, typer.Option(help="sqlite:///FILE or postgresql://...", show_default="in the data directory")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Address of the data cluster.", show_default="from the configuration")
    ] = None,
    placement: Annotated[
        str | None, typer.Option(help="nearest, round_robin, random or least_loaded.", show_default="nearest")
    ] = None,
    insecure: Annotated[bool | None, typer.Option("--insecure", help="No tokens; on loopback only.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.", show_default="info")] = None,
    log_format: Annotated[str | None, typer.Option(help="text or json.", show_default="text")] = None,
    sets: Sets = None,
) -> None:
    """Run the [bold]coordinator[/bold]: it places users, watches brokers and moves users between them.

    Its state is durable; it can be killed at any time, and brokers go on meanwhile.
    """
    flags = {
        "cluster.data_dir": data_dir,
        "coordinator.host": host,
        "coordinator.port": port,
        "coordinator.store": store,
        "coordinator.cluster": cluster,
        "coordinator.placement": placement,
        "coordinator.insecure": insecure,
        "log.level": log_level,
        "log.format": log_format,
    }
    chosen = settings(config, sets, flags).config
    configure_logging(chosen.log)
    with needs("coordinator"):
        from tocsin.coordinator.server import run
    run(chosen)
