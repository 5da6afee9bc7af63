"""The program: its commands, and how errors leave it.

Exit codes: 0 done, 1 an error of ours told in one line, 2 the command line itself was wrong, 130
interrupted. Nothing heavy is imported here: a base installation has neither Spark nor a web server.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from tocsin import __version__
from tocsin.cli import (
    broker,
    channel,
    chaos,
    cluster,
    config,
    coordinator,
    dashboard,
    demo,
    doctor,
    lab,
    load,
    login,
    publish,
    rebalance,
    record,
    sql,
    status,
    subscribe,
    token,
    up,
    version,
)
from tocsin.cli.commands import Command, Group
from tocsin.cli.output import tell
from tocsin.errors import ConfigError, TocsinError

app = typer.Typer(
    name="tocsin",
    cls=Group,
    help="Active data publish/subscribe on Spark.",
    epilog="Start with [bold]tocsin up[/bold], then talk to it with [bold]tocsin sql[/bold].",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("up", rich_help_panel="Run", cls=Command)(up.up)
app.command("cluster", rich_help_panel="Run", cls=Command)(cluster.cluster)
app.command("coordinator", rich_help_panel="Run", cls=Command)(coordinator.coordinator)
app.command("broker", rich_help_panel="Run", cls=Command)(broker.broker)
app.command("dashboard", rich_help_panel="Run", cls=Command)(dashboard.dashboard)
app.command("demo", rich_help_panel="Run", cls=Command)(demo.demo)
app.command("record", rich_help_panel="Run", cls=Command)(record.record)
app.command("chaos", rich_help_panel="Run", cls=Command)(chaos.chaos)
app.add_typer(lab.app, name="lab", rich_help_panel="Run")
app.command("sql", rich_help_panel="Use", cls=Command)(sql.sql)
app.command("load", rich_help_panel="Use", cls=Command)(load.load)
app.add_typer(channel.app, name="channel", rich_help_panel="Use")
app.command("subscribe", rich_help_panel="Use", cls=Command)(subscribe.subscribe)
app.command("publish", rich_help_panel="Use", cls=Command)(publish.publish)
app.command("status", rich_help_panel="Use", cls=Command)(status.status)
app.command("rebalance", rich_help_panel="Use", cls=Command)(rebalance.rebalance)
app.command("login", rich_help_panel="Set up", cls=Command)(login.login)
app.command("token", rich_help_panel="Set up", cls=Command)(token.token)
app.add_typer(config.app, name="config", rich_help_panel="Set up")
app.command("doctor", rich_help_panel="Set up", cls=Command)(doctor.doctor)
app.command("version", rich_help_panel="Set up", cls=Command)(version.version)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tocsin {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


def main() -> None:
    """Run one command and exit."""
    try:
        app()
    except ConfigError as error:
        for problem in error.problems:
            tell(problem)
        sys.exit(1)
    except TocsinError as error:
        tell(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
