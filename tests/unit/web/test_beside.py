"""What runs beside a server: in its loop, for as long as it serves."""

from __future__ import annotations

import asyncio
import threading

import httpx
from fastapi import FastAPI

from tocsin.web.app import new_app
from tocsin.web.server import ApiServer, ServerOptions


class Shared:
    def __init__(self) -> None:
        self.is_draining = threading.Event()

    def drain(self) -> None:
        self.is_draining.set()


def application(shared: Shared) -> FastAPI:
    app = new_app("a test", shared)

    @app.get("/loop")
    async def loop() -> int:
        return id(asyncio.get_running_loop())

    return app


def test_it_runs_in_the_servers_loop_until_the_end():
    loops, ended = [], threading.Event()

    async def beside() -> None:
        loops.append(id(asyncio.get_running_loop()))
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    server = ApiServer(application(Shared()), ServerOptions(port=0), beside=beside)
    server.start()
    assert httpx.get(f"{server.url}/loop", trust_env=False).json() == loops[0]
    assert not ended.is_set()
    server.stop()
    assert ended.is_set()


def test_where_it_fails_the_server_drains():
    shared, go = Shared(), threading.Event()

    async def beside() -> None:
        while not go.is_set():
            await asyncio.sleep(0.01)
        raise RuntimeError("the disk is full")

    server = ApiServer(application(shared), ServerOptions(port=0), beside=beside)
    server.start()
    assert not shared.is_draining.is_set()
    go.set()
    assert shared.is_draining.wait(10)
    server.stop()
