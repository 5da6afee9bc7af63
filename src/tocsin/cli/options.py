"""Options that several commands share, and the configuration they lead to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli.http import ClusterClient, connect
from tocsin.config import Resolved, resolve
from tocsin.errors import ConfigError

DEFAULT_FILE = Path("tocsin.toml")

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="Configuration file.", envvar="TOCSIN_CONFIG", show_default="tocsin.toml"),
]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override one setting; repeatable.")
]
DataDir = Annotated[
    str | None, typer.Option("--data-dir", help="Directory of the cluster's data.", show_default=".tocsin")
]
Url = Annotated[
    str | None,
    typer.Option("--url", help="Address of the cluster.", envvar="TOCSIN_URL", show_default="from the configuration"),
]


def token_option(default: str) -> Any:
    """``default`` says which token is shown where none is given."""
    return typer.Option("--token", help="Token to show.", envvar="TOCSIN_TOKEN", show_envvar=True, show_default=default)


Token = Annotated[str | None, token_option("made from the local secret")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def settings(file: Path | None, sets: list[str] | None, flags: Mapping[str, Any] | None = None) -> Resolved:
    """The configuration that file, environment and these flags give."""
    overrides = {**_pairs(sets or []), **{path: value for path, value in (flags or {}).items() if value is not None}}
    return resolve(file or _default_file(), os.environ, overrides)


def connection(
    url: str | None, token: str | None, file: Path | None, data_dir: str | None, sets: list[str] | None
) -> ClusterClient:
    """A client for the cluster that these options name."""
    return connect(settings(file, sets, {"cluster.data_dir": data_dir}).config, url, token)


def _default_file() -> Path | None:
    return DEFAULT_FILE if DEFAULT_FILE.exists() else None


def _pairs(sets: list[str]) -> dict[str, str]:
    found = {}
    for text in sets:
        path, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"command line: --set: expected SECTION.KEY=VALUE, got {text!r}")
        found[path.strip()] = value
    return found
