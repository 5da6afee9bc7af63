"""Telling subscribers and publishers, on standard error, when there is no connection and when there is one again.

A break shorter than ``PATIENCE_S`` is not told: a broker that hands its people over makes one. What ends a session for
good is told with what can be done about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tocsin.cli.output import note
from tocsin.client import Session
from tocsin.errors import SessionEnded, Unauthenticated, Unavailable
from tocsin.protocol.codes import BAD_TOKEN

PATIENCE_S = 2.0
_LOOK_S = 0.2
_TOKEN_ADVICE = (
    "give another token with --token, TOCSIN_TOKEN or 'tocsin login', or name the data directory of a system on this "
    "machine with --data-dir; 'tocsin login --forget' removes a login that was kept"
)
_ADDRESS_ADVICE = "start a system with 'tocsin up', or name it with --coordinator or --broker"


@asynccontextmanager
async def breaks_told(session: Session, options: Mapping[str, Any]) -> AsyncIterator[None]:
    """While the ``with`` lasts; ``options`` are those of the session."""
    telling = asyncio.create_task(_tell(session, options))
    try:
        yield
    except Unauthenticated as problem:
        raise Unauthenticated(f"{problem}; {_TOKEN_ADVICE}") from None
    except SessionEnded as problem:
        if problem.number == BAD_TOKEN.number:
            why = BAD_TOKEN.means if problem.detail == BAD_TOKEN.name else problem.detail
            raise Unauthenticated(f"{why}; {_TOKEN_ADVICE}") from None
        raise
    except Unavailable as problem:
        if not session.broker:  # never connected
            raise Unavailable(f"{problem}; {_ADDRESS_ADVICE}") from None
        raise
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)


async def _tell(session: Session, options: Mapping[str, Any]) -> None:
    while True:
        if not await _comes(session):
            note(_lost(session) if session.broker else _not_yet(session, options))
            was_there = bool(session.broker)
            await _until(session, is_connected=True)
            if was_there:
                note(f"Connected again, at the broker {session.broker!r}.")
        await _until(session, is_connected=False)


async def _comes(session: Session) -> bool:
    """Whether there is a connection soon enough to say nothing."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            await _until(session, is_connected=True)
    except TimeoutError:
        return False
    return True


async def _until(session: Session, *, is_connected: bool) -> None:
    while session.is_connected != is_connected:
        await asyncio.sleep(_LOOK_S)


def _lost(session: Session) -> str:
    return f"The connection to the broker {session.broker!r} is lost; trying until there is one again."


def _not_yet(session: Session, options: Mapping[str, Any]) -> str:
    kind, tried_s = "coordinator" if options["coordinator"] else "broker", options["settings"].connect_timeout
    why = session.problem or f"no {kind} answers at {options[kind]}"
    return f"Not connected yet: {why}; trying for {tried_s:g} s (client.connect_timeout)."
