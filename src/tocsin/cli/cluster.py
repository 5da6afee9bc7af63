"""``tocsin cluster``: run the data cluster until a signal comes."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin import java
from tocsin.cli.doctor import check_port
from tocsin.cli.extras import needs
from tocsin.cli.logs import configure_logging
from tocsin.cli.options import ConfigFile, DataDir, Sets, settings
from tocsin.config import Config
from tocsin.errors import Unavailable


def cluster(
    config: ConfigFile = None,
    data_dir: DataDir = None,
    host: Annotated[str | None, typer.Option(help="Address to bind.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.", show_default="8420")] = None,
    master: Annotated[str | None, typer.Option(help="Spark master.", show_default="local[*]")] = None,
    driver_memory: Annotated[str | None, typer.Option(help="Heap of the Spark driver.", show_default="2g")] = None,
    insecure: Annotated[bool | None, typer.Option("--insecure", help="No tokens; on loopback only.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.", show_default="info")] = None,
    log_format: Annotated[str | None, typer.Option(help="text or json.", show_default="text")] = None,
    sets: Sets = None,
) -> None:
    """Run the [bold]data cluster[/bold]: datasets, channels and results, evaluated on Spark.

    It keeps everything in the data directory and can be killed at any time. Ctrl-C drains it.
    """
    flags = {
        "cluster.data_dir": data_dir,
        "cluster.host": host,
        "cluster.port": port,
        "cluster.master": master,
        "cluster.driver_memory": driver_memory,
        "cluster.insecure": insecure,
        "log.level": log_level,
        "log.format": log_format,
    }
    chosen = settings(config, sets, flags).config
    configure_logging(chosen.log)
    _check_port(chosen)
    with needs("cluster"):
        from tocsin.datacluster.server import run
    java.use()
    run(chosen)


def _check_port(config: Config) -> None:
    """Told before Spark is loaded, and with the name of who is there."""
    state, finding = check_port(config)
    if state != "ok":
        raise Unavailable(f"{finding}; choose another port with --port")
