"""``tocsin config``: show, check and document the settings."""

from __future__ import annotations

import typer

from tocsin.cli.commands import Command, Group
from tocsin.cli.options import ConfigFile, DataDir, Json, Sets, settings
from tocsin.cli.output import note, print_json
from tocsin.config import Config
from tocsin.settings.describe import as_mapping, as_markdown, as_toml
from tocsin.units import counted

app = typer.Typer(help="Show, check and document the [bold]settings[/bold].", no_args_is_help=True, cls=Group)


@app.command(cls=Command)
def show(config: ConfigFile = None, data_dir: DataDir = None, as_json: Json = False, sets: Sets = None) -> None:
    """Print every setting that holds, and where it came from if it is not the default."""
    found = settings(config, sets, {"cluster.data_dir": data_dir})
    if as_json:
        print_json({"settings": as_mapping(found.config), "sources": found.sources})
    else:
        typer.echo(as_toml(found.config, found.sources), nl=False)


@app.command(cls=Command)
def check(config: ConfigFile = None, data_dir: DataDir = None, sets: Sets = None) -> None:
    """Read file, environment and flags, and tell every problem at once."""
    found = settings(config, sets, {"cluster.data_dir": data_dir})
    note(f"The configuration is fine: {counted(len(found.sources), 'setting')} given, the others at their defaults.")


@app.command(cls=Command)
def docs() -> None:
    """Print the reference of all settings as Markdown."""
    typer.echo(as_markdown(Config), nl=False)
