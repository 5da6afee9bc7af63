"""A supervisor over small programs in the places of the real ones."""

import os
import signal
import sys
import threading
import time

import pytest

from tocsin.errors import Unavailable
from tocsin.system.backoff import Backoff
from tocsin.system.parts import Addresses, parts_of
from tocsin.system.ports import free_ports
from tocsin.system.supervisor import Supervisor

SERVES = """
import http.server, os, signal, sys
kind = sys.argv[1]
port = next(int(a.split("=")[2]) for a in sys.argv if a.startswith(f"--set={kind}.port="))
def end(*_):
    os.write(1, b"bye\\n"); os._exit(0)
signal.signal(signal.SIGTERM, end)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
print("hello from", kind, flush=True)
server.serve_forever()
"""


class Heard:
    def __init__(self):
        self.lines, self.events = [], []

    def line(self, part, text):
        self.lines.append((part, text))

    def event(self, part, what, *, is_bad=False):
        self.events.append((part, what.split()[0].strip(","), is_bad))


@pytest.fixture
def system(tmp_path):
    made = []

    def make(program=SERVES, **options):
        ports = free_ports([0, 0, 0])
        parts = parts_of(tmp_path, Addresses(ports[0], ports[1], {"broker_1": ports[2]}))
        heard = Heard()
        made.append(Supervisor(parts, heard, program=(sys.executable, "-c", program), **options))
        return made[-1], heard

    yield make
    for one in made:
        one.stop(1.0)


def test_parts_start_in_order_and_stop_in_the_opposite_one(system):
    supervisor, heard = system()
    supervisor.start(30)
    supervisor.stop(10)
    assert [part for part, what, _ in heard.events if what == "ready"] == ["cluster", "coordinator", "broker_1"]
    stopped = [(part, is_bad) for part, what, is_bad in heard.events if what == "stopped"]
    assert stopped == [("broker_1", False), ("coordinator", False), ("cluster", False)]
    assert ("cluster", "hello from cluster") in heard.lines
    assert ("broker_1", "bye") in heard.lines


def test_one_that_cannot_start_stops_the_others(system):
    supervisor, heard = system(
        SERVES.replace("kind = sys.argv[1]", "kind = sys.argv[1]\nif kind == 'broker': sys.exit(3)")
    )
    with pytest.raises(Unavailable, match="the broker_1 ended with code 3"):
        supervisor.start(30)
    assert [part for part, what, _ in heard.events if what == "stopped"] == ["broker_1", "coordinator", "cluster"]


def watch(supervisor):
    thread = threading.Thread(target=supervisor.watch, daemon=True)
    thread.start()
    return thread


def until(holds):
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_one_that_ends_by_itself_is_told_and_stays_away(system):
    supervisor, heard = system()
    supervisor.start(30)
    watching = watch(supervisor)
    os.kill(supervisor.pid("broker_1"), signal.SIGKILL)
    until(lambda: ("broker_1", "ended", True) in heard.events)
    supervisor.interrupt()
    watching.join(10)
    assert not watching.is_alive()
    assert supervisor.ended_unasked == 1
    assert [part for part, what, _ in heard.events if what == "starting"].count("broker_1") == 1


def test_with_a_backoff_it_is_started_again(system):
    supervisor, heard = system(backoff=Backoff(least_s=0.05))
    supervisor.start(30)
    watching, first = watch(supervisor), supervisor.pid("broker_1")
    os.kill(first, signal.SIGKILL)
    until(lambda: [part for part, what, _ in heard.events if what == "starting"].count("broker_1") == 2)
    supervisor.interrupt()
    watching.join(10)
    assert supervisor.pid("broker_1") != first


def test_watching_ends_when_nobody_is_left(system):
    supervisor, _ = system()
    supervisor.start(30)
    watching = watch(supervisor)
    for name in ("broker_1", "coordinator", "cluster"):
        os.kill(supervisor.pid(name), signal.SIGKILL)
    watching.join(20)
    assert not watching.is_alive()
    assert supervisor.ended_unasked == 3
