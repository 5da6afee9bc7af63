"""``tocsin rebalance``: what each balancing policy would do with the users there are, or have one do it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from tocsin.cli.http import ClusterClient, trusted
from tocsin.cli.local import local_token, own_coordinator
from tocsin.cli.options import ConfigFile, DataDir, Json, Sets, Token, settings
from tocsin.cli.output import note, print_json, print_table
from tocsin.cli.people import CoordinatorUrl
from tocsin.config import Config, check_address
from tocsin.errors import BadArgument
from tocsin.units import counted

COLUMNS = ("policy", "max B/s", "ratio to bound", "cov", "total B/s", "moves", "ms", "ended")

Policy = Annotated[
    str | None,
    typer.Option("--policy", help="A policy, or all.", show_default="all in a dry run, else the one that migrates"),
]
Options = Annotated[
    list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="A parameter of the policy; repeatable.")
]


def rebalance(
    policy: Policy = None,
    options: Options = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compare only; nobody is moved.")] = False,
    coordinator: CoordinatorUrl = None,
    token: Token = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    sets: Sets = None,
) -> None:
    """[bold]Balance[/bold] users among brokers now, or see with --dry-run what every policy would do.

    Loads are bytes a second; the highest is by the broker's capacity, and its ratio to the least that could be is 1 at
    best. Users are moved at the coordinator's pace.
    """
    asked = {"policy": policy, "options": _pairs(options or []), "dry_run": dry_run}
    with _connect(settings(config, sets, {"cluster.data_dir": data_dir}).config, coordinator, token) as client:
        found = client.post("/rebalance", asked)
    if as_json:
        print_json(found)
        return
    print_table(COLUMNS, _rows(found))
    note(_remark(found))


def _connect(config: Config, url: str | None, token: str | None) -> ClusterClient:
    chosen = url or config.client.coordinator or own_coordinator(config)
    check_address("--coordinator", chosen, own_coordinator(config))
    local = None if token else local_token(config, chosen)
    shown = token or (local() if local else None)
    return ClusterClient(
        chosen, shown, timeout_s=config.client.rebalance_timeout, kind="coordinator", tls=trusted(config)
    )


def _rows(found: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    yield "(now)", *_figures(found["now"]), 0, "", ""
    for one in found["trials"]:
        ended = f"{one['status']}: {one['reason']}"
        yield one["policy"], *_figures(one["after"]), one["moves"], f"{one['milliseconds']:.1f}", ended


def _figures(figures: Mapping[str, float]) -> tuple[str, ...]:
    maximum, ratio, cov, total = (figures[name] for name in ("maximum", "ratio", "cov", "total"))
    return f"{maximum:,.1f}", f"{ratio:.3f}", f"{cov:.4f}", f"{total:,.1f}"


def _remark(found: Mapping[str, Any]) -> str:
    users, brokers, streams = (counted(found[f"{noun}s"], noun) for noun in ("user", "broker", "stream"))
    what = f"{users} online at {brokers}, {streams}"
    pinned = f", {found['pinned']} not to be moved now" if found["pinned"] else ""
    done = f"plan {found['plan']} moves them" if found["plan"] else "nobody was moved"
    return f"{what}{pinned}; {done}"


def _pairs(options: list[str]) -> dict[str, str]:
    found = {}
    for text in options:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadArgument("--option", "NAME=VALUE", text)
        found[name.strip()] = value.strip()
    return found
