"""``tocsin login``: try a token at a broker, and keep it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli.breaks import breaks_told
from tocsin.cli.options import ConfigFile, DataDir, Json, Sets, settings
from tocsin.cli.output import note, print_json
from tocsin.cli.people import BrokerUrl, CoordinatorUrl, Kept, keep, login_path, session_options
from tocsin.client import connect
from tocsin.errors import BadArgument
from tocsin.units import counted


def login(
    coordinator: CoordinatorUrl = None,
    broker: BrokerUrl = None,
    token: Annotated[
        str | None, typer.Option("--token", help="Token to try and keep.", envvar="TOCSIN_TOKEN", show_envvar=True)
    ] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Remove what was kept instead.")] = False,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    sets: Sets = None,
) -> None:
    """Log in with a [bold]token[/bold], and keep it for [bold]subscribe[/bold] and [bold]publish[/bold].

    They show it where neither a token nor a data directory is given to them, until --forget removes it.

    Example: tocsin login --coordinator https://tocsin.example --token "$TOKEN"
    """
    chosen = settings(config, sets, {"cluster.data_dir": data_dir}).config
    if forget:
        _forget(login_path(chosen), as_json)
        return
    if token is None:
        raise BadArgument("--token", "the token to keep")
    options = session_options(chosen, coordinator, broker, token, None, is_local=data_dir is not None)
    found = asyncio.run(_try(options))
    path = keep(chosen, Kept(token, options["coordinator"], options["broker"]))
    if as_json:
        print_json({**found, "file": str(path)})
    else:
        held = counted(len(found["subscriptions"]), "subscription")
        note(f"Logged in as {found['user']!r} at the broker {found['broker']!r}, with {held}. Kept in {path}.")


def _forget(path: Path, as_json: bool) -> None:
    was_kept = path.exists()
    path.unlink(missing_ok=True)
    if as_json:
        print_json({"forgotten": was_kept, "file": str(path)})
    else:
        note(f"Removed the login that was kept in {path}." if was_kept else f"No login was kept in {path}.")


async def _try(options: dict[str, Any]) -> dict[str, Any]:
    session = connect(**options)
    async with breaks_told(session, options), session:
        held = [standing.id for standing in await session.held()]
        return {"user": session.user, "broker": session.broker, "subscriptions": held}
