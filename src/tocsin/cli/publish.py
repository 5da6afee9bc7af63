"""``tocsin publish``: publish under a topic."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import msgspec
import typer

from tocsin.cli.options import ConfigFile, DataDir, Sets, Token, settings
from tocsin.cli.people import BrokerUrl, CoordinatorUrl, UserName, session_options
from tocsin.client import connect
from tocsin.errors import BadArgument


def publish(
    topic: Annotated[str, typer.Argument(help="The topic.")],
    payload: Annotated[str, typer.Argument(help="JSON, or else a text; - takes lines of JSON from standard input.")],
    coordinator: CoordinatorUrl = None,
    broker: BrokerUrl = None,
    token: Token = None,
    user: UserName = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    sets: Sets = None,
) -> None:
    """Publish under a [bold]topic[/bold], and print the position that its owner gave.

    Example: tocsin publish news '{"headline": "The bridge is open"}'
    """
    chosen = settings(config, sets, {"cluster.data_dir": data_dir}).config
    options = session_options(chosen, coordinator, broker, token, user)
    payloads = _lines() if payload == "-" else [_value(payload)]
    asyncio.run(_publish(options, topic, payloads))


async def _publish(options: dict[str, Any], topic: str, payloads: Iterable[Any]) -> None:
    async with connect(**options) as session:
        for payload in payloads:
            typer.echo(await session.publish(topic, payload))


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _lines() -> Iterator[Any]:
    for number, line in enumerate(sys.stdin, 1):
        if line.strip():
            try:
                yield msgspec.json.decode(line)
            except msgspec.DecodeError as problem:
                raise BadArgument(f"line {number}", "a JSON value", str(problem)) from None
