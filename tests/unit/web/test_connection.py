"""Connections that do not get on are closed, over real sockets."""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from support.authority import Certificate
from support.memory_cluster import MemoryCluster
from support.waiting import until
from tocsin.errors import Unavailable
from tocsin.web.connection import ConnectionLimits
from tocsin.web.server import ApiServer, ServerOptions, Tls

Token = Callable[..., dict[str, str]]
SHORT = ConnectionLimits(head_s=0.2, body_s=0.2, stall_s=0.2)
TRUST_S = 20.0  # for what must happen; the tests do not measure when


@pytest.fixture
def server(app: FastAPI) -> Iterator[ApiServer]:
    server = ApiServer(app, ServerOptions(port=0, max_connections=4, limits=SHORT))
    server.start()
    yield server
    server.stop()


def opened(server: ApiServer, said: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=TRUST_S)
    connection.sendall(said)
    return connection


def allowed(token: Token) -> str:
    return f"Authorization: {token('admin')['Authorization']}\r\n"


def is_closed_without_an_answer(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("said", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"])
def test_half_a_head_does_not_hold_a_connection(server: ApiServer, said: bytes):
    held = [opened(server, said) for _ in range(8)]
    assert all(is_closed_without_an_answer(connection) for connection in held)
    assert httpx.get(f"{server.url}/healthz").status_code == 200
    for connection in held:
        connection.close()


@pytest.fixture
def patient(app: FastAPI) -> Iterator[ApiServer]:
    """No limit of time helps in it."""
    server = ApiServer(app, ServerOptions(port=0, max_connections=4, limits=ConnectionLimits(600, 600, 600)))
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize("said", [b"", b"GET /healthz HT"])
def test_silent_connections_give_way_to_who_asks_and_the_longest_silent_first(patient: ApiServer, said: bytes):
    held = [opened(patient, said) for _ in range(8)]
    assert httpx.get(f"{patient.url}/healthz").status_code == 200
    assert all(is_closed_without_an_answer(connection) for connection in held[:5])
    held[7].sendall(b"TP/1.1\r\nHost: x\r\n\r\n" if said else b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert held[7].recv(65536).startswith(b"HTTP/1.1 200")
    for connection in held:
        connection.close()


def test_what_is_being_answered_gives_way_to_nobody(patient: ApiServer, token: Token):
    head = f"POST /statements HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n{allowed(token)}\r\n"
    waiting = [opened(patient, head.encode()) for _ in range(3)]
    until(lambda: len(patient._server.server_state.tasks) == 3, "three requests are under way", TRUST_S)
    assert httpx.get(f"{patient.url}/healthz").status_code == 503
    until(lambda: len(patient._server.server_state.tasks) == 3, "those three, and no more, are under way", TRUST_S)
    for connection in waiting:
        connection.close()


def test_half_a_head_after_a_whole_request_does_not_either(server: ApiServer):
    with closing(opened(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")) as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /heal")
        assert is_closed_without_an_answer(connection)


def test_a_connection_between_requests_is_kept_longer_than_a_head_may_take(server: ApiServer):
    asked = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with closing(opened(server, asked)) as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        time.sleep(4 * SHORT.head_s)
        connection.sendall(asked)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_connection_without_requests_is_closed_in_the_end(app: FastAPI):
    server = ApiServer(app, ServerOptions(port=0, limits=replace(SHORT, keep_alive_s=0.1)))
    server.start()
    with closing(opened(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")) as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        assert is_closed_without_an_answer(connection)
    server.stop()


def test_a_body_that_nobody_waits_for_does_not_hold_a_connection(server: ApiServer):
    head = b"POST /statements HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    with closing(opened(server, head)) as connection:
        answer = b""
        while part := _more(connection):
            answer += part
        assert answer.startswith(b"HTTP/1.1 401")


def test_an_answer_that_is_not_taken_does_not_hold_a_connection(
    server: ApiServer, cluster: MemoryCluster, token: Token
):
    for _ in range(300):
        cluster.publish("fire", b'"' + b"x" * 100_000 + b'"')
    body = b'{"cursors": {"ByKind": null}}'
    head = f"POST /brokers/north/pull HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{allowed(token)}\r\n"
    with closing(opened(server, head.encode() + body)) as connection:
        assert connection.recv(8) == b"HTTP/1.1"
        until(lambda: not server._server.server_state.connections, "the connection is closed", TRUST_S)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("later", [(), (b"xyz\r\n",), (b"5\r\nab", b"cdefgh\r\n", b"more")])
def test_a_body_in_broken_chunks_is_a_quiet_400(
    server: ApiServer, token: Token, later: tuple[bytes, ...], is_known: bool, caplog: pytest.LogCaptureFixture
):
    """Whether the request was answered before (401), or the chunks come with its head, or after it."""
    head = f"POST /statements HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n{allowed(token) if is_known else ''}"
    with closing(opened(server, f"{head}\r\n".encode() + (b"" if later else b"xyz\r\n"))) as connection:
        answer = b"" if is_known or not later else connection.recv(65536)
        with suppress(ConnectionError):
            for part in later:
                connection.sendall(part)
        while part := _more(connection):
            answer += part
    assert answer.startswith(b"HTTP/1.1 400" if is_known or not later else b"HTTP/1.1 401")
    assert b"application/problem+json" in answer
    until(lambda: not server._server.server_state.tasks, "the request is over", TRUST_S)
    assert not [record for record in caplog.records if record.levelname == "ERROR" or record.exc_info]


@pytest.mark.parametrize("before", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"], ids=["at first", "later"])
def test_a_request_with_two_lengths_is_refused_and_nothing_after_it_is_read(server: ApiServer, before: bytes):
    head = b"POST /statements HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    with closing(opened(server, before + head + b"0\r\n\r\nGET /version HTTP/1.1\r\nHost: x\r\n\r\n")) as connection:
        answer = b""
        while part := _more(connection):
            answer += part
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"400"][not before :]
    assert b"one way of telling the body's length" in answer


def _more(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def test_bodies_that_stand_still_take_no_places_from_others(app: FastAPI, token: Token):
    server = ApiServer(app, ServerOptions(port=0))
    server.start()
    head = f"POST /datasets/Reports/records HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n{allowed(token)}\r\n"
    held = [opened(server, head.encode() + b"{") for _ in range(4)]
    until(lambda: app.state.api.admission.size_bytes == len(held), "all have begun", TRUST_S)
    answer = httpx.post(f"{server.url}/datasets/Reports/records", content=b"{}", headers=token("admin"))
    for connection in held:
        connection.close()
    server.stop()
    assert answer.status_code == 200


def test_with_a_certificate_it_speaks_https(app: FastAPI, certificate: Certificate):
    server = ApiServer(app, ServerOptions(port=0, tls=Tls(Path(certificate.chain), Path(certificate.key))))
    server.start()
    answer = httpx.get(f"{server.url}/healthz", verify=ssl.create_default_context(cafile=certificate.ca))
    server.stop()
    assert (server.url[:8], answer.json()) == ("https://", {"alive": True})


def test_a_certificate_that_cannot_be_used_is_told_before_anything_starts(app: FastAPI, tmp_path: Path):
    with pytest.raises(Unavailable, match=r"TLS cannot be used with the certificate .*none\.pem"):
        ApiServer(app, ServerOptions(port=0, tls=Tls(tmp_path / "none.pem", tmp_path / "none.key")))
