"""The city of the demonstration on the dashboard's map."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.waiting import until
from tocsin.demo.onlooker import Onlooker
from tocsin.scenarios.city import Scenario

SECRET = b"s" * 32
PLACES = {"UserLocations": [{"x": 1.0, "y": 2.0}] * 3}


@contextmanager
def dashboard(status: int) -> Iterator[tuple[str, list[str]]]:
    """One that answers publications with ``status``; its address, and who asked for what."""
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self._answer(204)

        def do_POST(self) -> None:
            self._answer(status)

        def _answer(self, code: int) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = b"" if code == 204 else json.dumps({"detail": "at most 256 kB"}).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            asked.append(f"{self.command} {self.path}")

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def shown(status: int) -> tuple[list[str], list[str]]:
    """What was asked, and what was told, when people are shown twice."""
    told: list[str] = []
    with dashboard(status) as (url, asked):
        onlooker = Onlooker(url, SECRET, Scenario(people=3, subscribers=0), told.append)
        onlooker.start()
        for t in (1.0, 2.0):
            onlooker.show(t, PLACES)
        until(lambda: len(asked) == 3, "all was asked", 10)
        onlooker.stop()
    return asked, told


def test_the_city_is_put_on_the_map_and_people_are_moved() -> None:
    assert shown(200) == (["PUT /api/city", *["POST /topics/city/messages"] * 2], [])


def test_what_the_dashboard_refuses_is_told_once() -> None:
    _, told = shown(413)
    assert told == ["The dashboard's map does not show all of the city (413: at most 256 kB)"]
