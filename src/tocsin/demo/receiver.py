"""Where the cluster tells the demonstration's broker of new results: a small HTTP receiver on loopback.

A notice must carry a token signed with the cluster's secret; anything else is refused. What it says is
written down only: the results themselves are pulled, which works without any notice.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tocsin.demo.told import Told
from tocsin.errors import Unauthenticated
from tocsin.tokens import bearer, verify

PATH = "/notify"
MAX_BYTES = 16 * 2**20


class NoticeReceiver:
    """Listens from the beginning to the end of a ``with``."""

    def __init__(self, secret: bytes) -> None:
        self.told: dict[str, Told] = defaultdict(Told)  # by channel
        self._is_counting = True
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, secret))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}{PATH}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="notices", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def notices(self) -> int:
        with self._lock:
            return sum(told.notices for told in self.told.values())

    def heard(self, body: Any) -> None:
        """Take down what one request told; ``KeyError`` or the like if it is not a list of notices."""
        with self._lock:
            for notice in body["notices"] if self._is_counting else ():
                self.told[str(notice["channel"])].add(notice)

    def end_counting(self) -> None:
        """From here on notices are taken, and not remembered."""
        with self._lock:
            self._is_counting = False
            self.told.clear()

    def told_of(self, channel: str) -> Told:
        """What stands by now."""
        with self._lock:
            told = self.told[channel]
            return Told(set(told.executions), Counter(told.owed), told.is_whole)


def _handler(receiver: NoticeReceiver, secret: bytes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status = self._take()
            self.send_response(status)
            self.send_header("Content-Length", "0")
            if status != 204:
                self.send_header("Connection", "close")
            self.end_headers()

        def _take(self) -> int:
            length = self.headers.get("Content-Length", "")
            if self.path != PATH:
                return 404
            if not length.isdecimal():
                return 411
            if int(length) > MAX_BYTES:
                return 413
            body = self.rfile.read(int(length))
            try:
                verify(bearer(self.headers.get("Authorization")), secret, leeway_s=30.0)
                receiver.heard(json.loads(body))
            except Unauthenticated:
                return 401
            except (ValueError, KeyError, TypeError):
                return 400
            return 204

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the terminal belongs to the live table."""

    return Handler
