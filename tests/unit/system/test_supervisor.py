"""A supervisor over small programs in the places of the real ones."""

import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from tocsin.errors import Unavailable
from tocsin.system.backoff import Backoff
from tocsin.system.parts import Addresses, parts_of
from tocsin.system.ports import free_ports
from tocsin.system.process import is_ready
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


class Ready(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


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

    def make(program=SERVES, heard=None, **options):
        ports = free_ports([0, 0, 0])
        parts = parts_of(tmp_path, Addresses(ports[0], ports[1], {"broker_1": ports[2]}))
        heard = heard or Heard()
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


def test_one_whose_place_a_stranger_has_is_not_taken_for_ready(system):
    supervisor, heard = system()
    stranger = ThreadingHTTPServer(("127.0.0.1", urlsplit(supervisor._parts["cluster"].url).port), Ready)
    threading.Thread(target=stranger.serve_forever, args=(0.01,), daemon=True).start()
    try:
        with pytest.raises(Unavailable, match="the cluster ended with code 1"):
            supervisor.start(30)
    finally:
        stranger.shutdown()
        stranger.server_close()
    assert ("broker_1", "stopped", False) in heard.events


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


DEAF = SERVES.replace("signal.signal(signal.SIGTERM, end)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
TALKS = SERVES.replace("server.serve_forever()", "while True: print('x' * 1000, flush=True); server.handle_request()")
NAMES = ("cluster", "coordinator", "broker_1")


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Impatient(Heard):
    """Presses Ctrl-C as soon as something is told of stopping, or a moment later."""

    pause_s = None

    def event(self, part, what, *, is_bad=False):
        super().event(part, what, is_bad=is_bad)
        if what == "stopping" and self.pause_s is not None:
            threading.Timer(self.pause_s, os.kill, (os.getpid(), signal.SIGINT)).start()
            self.pause_s = time.sleep(0.2)


@pytest.mark.parametrize("pause_s", [pytest.param(0.0, id="while it tells"), pytest.param(0.5, id="while it waits")])
def test_a_ctrl_c_during_the_stop_kills_everybody_who_is_left(system, pause_s):
    supervisor, heard = system(DEAF, heard=Impatient())
    supervisor.start(30)
    pids = [supervisor.pid(name) for name in NAMES]
    heard.pause_s = pause_s
    supervisor.stop(60)
    assert not any(map(is_alive, pids))
    assert sorted(heard.events[-3:]) == sorted((name, "killed", True) for name in NAMES)


@pytest.mark.parametrize("problem", [BrokenPipeError(), SystemExit(1)], ids=["of a file", "of a console"])
def test_an_audience_that_has_gone_stops_everything_and_holds_nobody_up(system, problem):
    supervisor, heard = system(TALKS)
    supervisor.start(30)

    def fail(*_, **__):
        raise problem

    heard.line = heard.event = fail
    watching = watch(supervisor)
    url = supervisor._parts["broker_1"].url
    for _ in range(200):  # more than a pipe holds
        assert is_ready(url)
    watching.join(10)
    assert not watching.is_alive()
    assert supervisor.unheard is problem
    began = time.monotonic()
    supervisor.stop(60)
    assert time.monotonic() - began < 30
