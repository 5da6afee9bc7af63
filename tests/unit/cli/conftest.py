"""A small cluster over real HTTP on loopback: it answers what it was told to and remembers what came."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from tocsin.cli.main import app


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Cluster:
    """``replies`` maps (method, path) to a list of (status, body, headers); the last one stays."""

    url: str = ""
    replies: dict = field(default_factory=dict)
    requests: list = field(default_factory=list)

    def on(self, method, path, body, status=200, headers=None):
        self.replies.setdefault((method, path), []).append((status, body, headers or {}))

    def reply(self, method, path):
        waiting = self.replies.get((method, path))
        if not waiting:
            return 404, {"detail": f"there is nothing at {path!r}"}, {}
        return waiting[0] if len(waiting) == 1 else waiting.pop(0)


@pytest.fixture
def cluster():
    state = Cluster()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            state.requests.append(Request(self.command, self.path, dict(self.headers), body))
            status, content, headers = state.reply(self.command, self.path)
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Commands run in an empty directory with no settings from outside."""
    monkeypatch.chdir(tmp_path)
    for name in ("TOCSIN_CONFIG", "TOCSIN_TOKEN", "TOCSIN_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def run():
    """Runs ``tocsin`` with arguments; errors of ours come back as the result's exception."""

    def invoke(*arguments, stdin=None):
        return CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)

    return invoke
