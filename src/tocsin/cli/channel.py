"""``tocsin channel``: list and explain channels."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.syntax import Syntax

from tocsin.cli.commands import Command, Group
from tocsin.cli.options import ConfigFile, DataDir, Json, Sets, Token, Url, connection
from tocsin.cli.output import cell, console, print_json, print_table, visible

app = typer.Typer(help="List and explain [bold]channels[/bold].", no_args_is_help=True, cls=Group)

_COLUMNS = ("channel", "mode", "state", "strategy", "subscriptions", "backends", "executions", "lag_s", "problem")


@app.command("list", cls=Command)
def list_channels(
    url: Url = None,
    token: Token = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    sets: Sets = None,
) -> None:
    """List the channels and how they are doing."""
    with connection(url, token, config, data_dir, sets) as client:
        found = client.get("/channels")["channels"]
    if as_json:
        print_json(found)
        return
    shown = [{**one, "channel": one["name"]} for one in found]
    print_table(_COLUMNS, [[one.get(name) for name in _COLUMNS] for one in shown])


@app.command(cls=Command)
def explain(
    name: Annotated[str, typer.Argument(help="The channel.")],
    url: Url = None,
    token: Token = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    sets: Sets = None,
) -> None:
    """Show a channel's shared plan, the SQL it compiles to, and the counts of its last executions."""
    with connection(url, token, config, data_dir, sets) as client:
        found = client.get(f"/channels/{quote(name, safe='')}/explain")["explanation"]
    if as_json:
        print_json(found)
        return
    for key, value in found.items():
        _show(key, value)


def _show(key: str, value: Any) -> None:
    """Lists of objects as tables, SQL in colour, everything else on a line."""
    out = console()
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        columns = list(dict.fromkeys(name for one in value for name in one))
        print_table(columns, [[one.get(name) for name in columns] for one in value], title=key)
    elif isinstance(value, str) and ("sql" in key.lower() or key == "query"):
        out.print(visible(f"{key}:"))
        out.print(Syntax("", "sql").highlight(visible(value).plain), soft_wrap=True)
    else:
        out.print(visible(f"{key}: ") + cell(value), soft_wrap=True)
