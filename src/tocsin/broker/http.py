"""Plain HTTP on the broker's port, by uvicorn, on a connection that may become something else.

Browsers and HTTP clients use a connection again: after a publication, the next request on it may be
for ``/events``. Such a request is given back to the listener, which opens what it asks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.server import ServerState

from tocsin.broker.handshake import route
from tocsin.web.connection import ConnectionLimits, bounded

Open = Callable[[], asyncio.Protocol]


def http_protocol(
    app: FastAPI, limits: ConnectionLimits, max_connections: int, listener: Open
) -> tuple[Open, ServerState]:
    """What makes the protocol of one connection, and the state that all of them share."""
    config = uvicorn.Config(
        app,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        limit_concurrency=max_connections,
    )
    config.load()
    state = ServerState()
    kind: Any = type("BrokerHttp", (_Returning, bounded(limits)), {"listener": staticmethod(listener)})
    return lambda: cast(asyncio.Protocol, kind(config, state, {})), state


class _Returning:
    """Mixed into uvicorn's protocol."""

    listener: Open

    def data_received(self: Any, data: bytes) -> None:
        conn = self.conn
        is_between = conn.their_state is h11.IDLE and conn.our_state is h11.IDLE and not conn.trailing_data[0]
        if is_between and route(data) != "" and not self.transport.is_closing():
            self._give_back(data)
        else:
            super().data_received(data)  # type: ignore[misc]

    def _give_back(self: Any, data: bytes) -> None:
        transport, listener = self.transport, self.listener()
        self._unset_keepalive_if_required()
        self.connection_lost(ConnectionResetError("the connection is used for something else"))
        transport.set_protocol(listener)
        listener.connection_made(transport)
        listener.data_received(data)
