"""``tocsin status``: is the cluster there, and what has it done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from tocsin.cli.options import ConfigFile, DataDir, Json, Sets, Token, Url, connection
from tocsin.cli.output import print_json, print_table


def status(
    url: Url = None,
    token: Token = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    sets: Sets = None,
) -> None:
    """Show whether the [bold]cluster[/bold] is ready, and its totals. Exits with 1 if it is not ready."""
    with connection(url, token, config, data_dir, sets) as client:
        found = client.get("/status")
        where = client.url
    if as_json:
        print_json(found)
    else:
        print_table(["what", "value"], [("url", where), *_flat(found)])
    if not found.get("ready", False):
        raise typer.Exit(1)


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", inner
