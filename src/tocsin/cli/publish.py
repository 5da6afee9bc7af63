"""``tocsin publish``: publish under a topic."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import chain
from typing import Annotated, Any, BinaryIO

import msgspec
import typer

from tocsin.cli.breaks import breaks_told
from tocsin.cli.options import ConfigFile, Sets, settings
from tocsin.cli.people import BrokerUrl, CoordinatorUrl, PersonDataDir, PersonToken, UserName, session_options
from tocsin.client import connect
from tocsin.errors import BadArgument, LimitExceeded


def publish(
    topic: Annotated[str, typer.Argument(help="The topic.")],
    payload: Annotated[str, typer.Argument(help="JSON, or else a text; - takes lines of JSON from standard input.")],
    coordinator: CoordinatorUrl = None,
    broker: BrokerUrl = None,
    token: PersonToken = None,
    user: UserName = None,
    config: ConfigFile = None,
    data_dir: PersonDataDir = None,
    sets: Sets = None,
) -> None:
    """Publish under a [bold]topic[/bold], and print the position that its owner gave.

    While there is no connection, that is told on standard error.

    Example: tocsin publish news '{"headline": "The bridge is open"}'
    """
    chosen = settings(config, sets, {"cluster.data_dir": data_dir}).config
    options = session_options(chosen, coordinator, broker, token, user, is_local=data_dir is not None)
    asyncio.run(_publish(options, topic, payload))


async def _publish(options: dict[str, Any], topic: str, payload: str) -> None:
    session = connect(**options)
    async with breaks_told(session, options), session:
        async for value in _values() if payload == "-" else _one(payload):
            typer.echo(await session.publish(topic, value))


async def _one(text: str) -> AsyncIterator[Any]:
    yield _value(text)


def _value(text: str) -> Any:
    """JSON, or else the text itself."""
    try:
        return _decoded("payload", text.encode())
    except UnicodeEncodeError:
        raise BadArgument("payload", "text in UTF-8", text) from None
    except BadArgument:
        return text


def _decoded(what: str, line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise BadArgument(what, "a JSON value", str(problem)) from None
    except RecursionError:
        raise LimitExceeded(f"{what}: values within each other", sys.getrecursionlimit()) from None


async def _values() -> AsyncIterator[Any]:
    """Standard input, line by line; the connection lives while no line comes."""
    lines: asyncio.Queue[bytes] = asyncio.Queue(1)
    threading.Thread(target=_read, args=(lines, asyncio.get_running_loop()), daemon=True).start()
    number = 0
    while line := await lines.get():
        number += 1
        if line.strip():
            yield _decoded(f"line {number}", line)


def _source() -> BinaryIO:
    """Standard input in a reader of its own, which nobody else waits for at the end."""
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except io.UnsupportedOperation:  # given by who calls this in his own process
        return sys.stdin.buffer


def _read(lines: asyncio.Queue[bytes], loop: asyncio.AbstractEventLoop) -> None:
    """Hand over every line, then an empty one."""
    with _source() as source, suppress(RuntimeError, CancelledError):  # the loop has ended, or ends
        for line in chain(source, [b""]):
            asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
