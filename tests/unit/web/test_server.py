"""Real sockets on loopback: serving behind a test, and leaving when told to."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from support.cluster_api import Token
from support.memory_cluster import MemoryCluster
from tocsin.errors import Unavailable
from tocsin.web.server import ApiServer, ServerOptions

FREE_PORT = ServerOptions(port=0)

PROGRAM = """
import sys
from support.memory_cluster import MemoryCluster
from tocsin.datacluster.api import create_app
from tocsin.web.server import ApiServer, ServerOptions
app = create_app(MemoryCluster(), verify=lambda token: None, insecure=True)
server = ApiServer(app, ServerOptions(port=0), on_drain=lambda: print("draining", flush=True))
print(server.url, flush=True)
server.run()
print("closed", flush=True)
"""


@pytest.fixture
def server(app: FastAPI) -> Iterator[ApiServer]:
    server = ApiServer(app, FREE_PORT)
    server.start()
    yield server
    server.stop()


def test_it_answers_at_its_url_and_does_not_name_itself(server: ApiServer):
    answer = httpx.get(f"{server.url}/healthz")
    assert (answer.json(), answer.headers.get("server")) == ({"alive": True}, None)


def test_a_body_over_the_limit_is_refused_over_a_real_socket(server: ApiServer, token):
    answer = httpx.post(f"{server.url}/datasets/Reports/records", content=b"x" * 5000, headers=token("admin"))
    assert answer.status_code == 413


def test_stopping_drains_and_lets_go_of_the_port(app: FastAPI):
    drained: list[bool] = []
    server = ApiServer(app, FREE_PORT, on_drain=lambda: drained.append(True))
    server.start()
    server.stop()
    server.stop()
    assert (drained, app.state.api.is_draining) == ([True], True)
    ApiServer(app, ServerOptions(port=server.port)).stop()


def test_a_request_that_outlasts_the_drain_is_answered_503(
    app: FastAPI, cluster: MemoryCluster, token: Token, caplog: pytest.LogCaptureFixture
):
    entered, go = threading.Event(), threading.Event()
    cluster.datasets = lambda who: entered.set() or (go.wait(30) and [])  # type: ignore[method-assign, assignment]
    server = ApiServer(app, ServerOptions(port=0, drain_timeout_s=1))
    server.start()
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(httpx.get, f"{server.url}/datasets", headers=token("read"), timeout=30)
        assert entered.wait(10)
        server.stop()
        answer = asked.result()
        go.set()
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:tocsin:unavailable")
    assert [record for record in caplog.records if record.exc_info] == []


def test_a_port_that_is_taken_is_told_as_such(app: FastAPI, server: ApiServer):
    with pytest.raises(Unavailable, match=f"port {server.port}"):
        ApiServer(app, ServerOptions(port=server.port))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_drains_and_ends_the_program_in_peace(number: signal.Signals):
    support = str(Path(__file__).parents[2])
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": support}
    )
    try:
        url = program.stdout.readline().strip()  # type: ignore[union-attr]
        assert httpx.get(f"{url}/healthz", timeout=20).is_success
        program.send_signal(number)
        rest, _ = program.communicate(timeout=20)
    finally:
        program.kill()
    assert (rest.split(), program.returncode) == (["draining", "closed"], 0)
