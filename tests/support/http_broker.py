"""A broker of a few lines: a real HTTP server that keeps the notices it was sent."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.authority import Certificate


class HttpBroker:
    """Answers 204 to every notification, or ``status`` where a test sets another; waits for ``gate`` first."""

    def __init__(self, port: int = 0, certificate: Certificate | None = None) -> None:
        self.status = 204
        self.gate = threading.Event()
        self.gate.set()
        self.requests: list[dict[str, Any]] = []
        self.tokens: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        self._scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.chain, certificate.key)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}/notify"

    @property
    def notices(self) -> list[dict[str, Any]]:
        return [notice for request in list(self.requests) for notice in request["notices"]]

    def about(self, channel: str) -> list[dict[str, Any]]:
        return [notice for notice in self.notices if notice["channel"] == channel]

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def http_broker(port: int = 0, certificate: Certificate | None = None) -> Iterator[HttpBroker]:
    broker = HttpBroker(port, certificate)
    try:
        yield broker
    finally:
        broker.close()


def _handler(broker: HttpBroker) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            broker.gate.wait()
            if broker.status < 300:
                broker.requests.append(body)
                broker.tokens.append(self.headers["Authorization"])
            self.send_response(broker.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Stay silent."""

    return Handler
