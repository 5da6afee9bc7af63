"""``tocsin sql``: statements from the command line, a file, a pipe, or an interactive shell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli.answers import print_answer
from tocsin.cli.http import ClusterClient, ClusterProblem
from tocsin.cli.options import ConfigFile, DataDir, Json, Sets, Token, Url, connection
from tocsin.cli.output import print_json
from tocsin.cli.scripts import ScriptStopped, run_script
from tocsin.errors import BadArgument


def sql(
    file: Annotated[Path | None, typer.Argument(help="File of statements; - reads standard input.")] = None,
    command: Annotated[str | None, typer.Option("--command", "-c", help="Statements to run instead of a file.")] = None,
    url: Url = None,
    token: Token = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    sets: Sets = None,
) -> None:
    """Run [bold]statements[/bold]: a file, [bold]-c[/bold], a pipe, or a shell with history and completion.

    Examples: tocsin sql city.sql; tocsin sql -c 'SHOW CHANNELS'; tocsin sql
    """
    if file is not None and command is not None:
        raise BadArgument("FILE", "either a file or --command, not both", str(file))
    with connection(url, token, config, data_dir, sets) as client:
        if command is not None:
            _run(client, command, as_json)
        elif file is None and sys.stdin.isatty():
            _shell(client)
        else:
            _run(client, _read(file), as_json, "standard input" if file in (None, Path("-")) else str(file))


def _read(file: Path | None) -> str:
    try:
        return sys.stdin.read() if file in (None, Path("-")) else Path(str(file)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        because = error.strerror or "" if isinstance(error, OSError) else str(error)
        raise BadArgument("FILE", "a file of statements in UTF-8", str(file or "-"), because=because) from None


def _run(client: ClusterClient, text: str, as_json: bool, source: str | None = None) -> None:
    """Print each answer as it comes; of a script that stops, those before the failure, and its ``source``."""
    answers = []
    try:
        for answer in run_script(client, text):
            answers.append(answer)
            if not as_json:
                print_answer(answer)
    except (ClusterProblem, ScriptStopped) as problem:
        if source is None:
            raise
        raise ScriptStopped(problem, source) from None
    finally:
        if as_json:
            print_json(answers)


def _shell(client: ClusterClient) -> None:
    from tocsin.cli.shell import Shell

    Shell(client).run()
