"""How the commands of subscribers and publishers find their broker, and whose token they show.

The address: given, else configured, else kept by ``tocsin login``, else the coordinator of the
configuration. The token: given, else kept for that very address, else, on this machine only, one made for
the moment from the secret in the data directory. Who names a data directory means its secret: nothing kept counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from tocsin.cli.local import local_token, own_coordinator
from tocsin.cli.options import token_option
from tocsin.config import Config, check_address
from tocsin.errors import Unavailable

CoordinatorUrl = Annotated[
    str | None,
    typer.Option("--coordinator", help="Address of the coordinator.", show_default="from the configuration"),
]
PersonToken = Annotated[str | None, token_option("that of tocsin login, else made from the local secret")]
PersonDataDir = Annotated[
    str | None,
    typer.Option(
        "--data-dir",
        help="Directory of the cluster's data; given, its secret counts and no login.",
        show_default=".tocsin",
    ),
]
BrokerUrl = Annotated[
    str | None, typer.Option("--broker", help="Address of one broker, where there is no coordinator.")
]
UserName = Annotated[str | None, typer.Option("--user", help="Who to be, with the local secret.", show_default="local")]


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """What ``tocsin login`` keeps."""

    token: str
    coordinator: str | None = None
    broker: str | None = None


def session_options(
    config: Config,
    coordinator: str | None,
    broker: str | None,
    token: str | None,
    user: str | None,
    *,
    is_local: bool = False,
) -> dict[str, Any]:
    """What ``tocsin.client.connect`` needs; ``is_local`` where the data directory was named."""
    kept = None if is_local else read_kept(config)
    if coordinator is None and broker is None:
        coordinator, broker = config.client.coordinator or None, config.client.broker or None
    if coordinator is None and broker is None:
        coordinator, broker = (kept.coordinator, kept.broker) if kept else (own_coordinator(config), None)
    for option, given in (("--coordinator", coordinator), ("--broker", broker)):
        if given:
            check_address(option, given, own_coordinator(config))
    url = coordinator or broker or ""
    shown: str | Callable[[], str] | None = token
    if token is None and user is None and kept and url in (kept.coordinator, kept.broker):
        shown = kept.token
    elif token is None:
        shown = local_token(config, url, user or "local")
    trusted = replace(config.client, ca_file=config.client.ca_file or config.http.ca_file)
    options = {"coordinator": coordinator, "broker": broker, "token": shown, "settings": trusted}
    return options if shown is not None else {**options, "user": user or "local"}


def read_kept(config: Config) -> Kept | None:
    path = login_path(config)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Kept)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as problem:
        raise Unavailable(f"{path} cannot be read ({problem}); run 'tocsin login' again") from None


def keep(config: Config, kept: Kept) -> Path:
    """Write aside and rename, readable by its owner only from the first byte on."""
    path = login_path(config)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(kept))
        draft.replace(path)
    except OSError as problem:
        raise Unavailable(f"{path} cannot be written: {problem.strerror}") from None
    return path


def login_path(config: Config) -> Path:
    return Path(config.client.login_file).expanduser()
