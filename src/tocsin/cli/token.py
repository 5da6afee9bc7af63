"""``tocsin token``: make a token."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from tocsin import tokens
from tocsin.cli.options import ConfigFile, DataDir, Json, Sets, settings
from tocsin.cli.output import print_json
from tocsin.errors import BadArgument, Unavailable
from tocsin.units import parse_duration

_CAPABILITIES = (*tokens.PLAIN_ACTIONS, *(f"{action}:NAME" for action in tokens.NAMED_ACTIONS))
_PIN_FORM = "CHANNEL:PARAMETER=CLAIM[,PARAMETER=CLAIM]"


def token(
    subject: Annotated[str, typer.Argument(help="Whom the token names.")],
    can: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(_CAPABILITIES)}; * for any name. Repeatable."),
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(metavar=_PIN_FORM, help="May subscribe to a channel, parameters taken from claims. Repeatable."),
    ] = None,
    claim: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A further claim. Repeatable.")] = None,
    ttl: Annotated[str | None, typer.Option(help="How long it lasts, such as 30m or 7d.", show_default="12h")] = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    sets: Sets = None,
) -> None:
    """Make a [bold]token[/bold] for [italic]subject[/italic], signed with the cluster's secret.

    Example: tocsin token ann --pin NearMe:user=sub
    """
    chosen = settings(config, sets, {"cluster.data_dir": data_dir}).config
    ttl_s = parse_duration(ttl, "--ttl") if ttl else chosen.auth.token_ttl
    capabilities: list[tokens.Capability] = [*(can or []), *(parse_pin(text) for text in pin or [])]
    if not capabilities:
        raise BadArgument("--can", "at least one capability, such as --can broker:b1, or --pin")
    claims = dict(_pair("--claim", text) for text in claim or [])
    minted = tokens.mint(_secret(chosen.secret_path), subject, capabilities, ttl_s, claims=claims)
    if as_json:
        print_json({"token": minted, "subject": subject, "capabilities": capabilities, "ttl_s": ttl_s})
    else:
        typer.echo(minted)


def _secret(path: Path) -> bytes:
    """The cluster's secret. None is made here: a token signed with one of our own would open nothing."""
    if not path.exists():
        raise Unavailable(
            f"there is no secret at {path}: name the cluster's data directory with --data-dir or its file with "
            "--config; the first start of 'tocsin cluster' makes it"
        )
    return tokens.read_secret(path)


def parse_pin(text: str) -> dict[str, Any]:
    """The capability behind ``NearMe:user=sub``."""
    channel, colon, pins = text.partition(":")
    if not (channel and colon and pins):
        raise BadArgument("--pin", _PIN_FORM, text)
    return {
        "channel": channel,
        "pin": {name: str(value) for name, value in (_pair("--pin", p) for p in pins.split(","))},
    }


def _pair(option: str, text: str) -> tuple[str, Any]:
    """``name=value``; a claim's value is JSON where it reads as such, else a text."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise BadArgument(option, "NAME=VALUE", text)
    if option == "--pin":
        return name, value
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value
