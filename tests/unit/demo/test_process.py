"""The demonstration's cluster as a process, with a small program in the cluster's place."""

import fcntl
import os
import socket
import sys
import tomllib

import httpx
import pytest

from tocsin.config import Client, load
from tocsin.demo.process import ClusterProcess, Servers, make_fresh
from tocsin.errors import Unavailable

SERVES = """
import http.server, os, signal, sys, tomllib
if {deaf}: signal.signal(signal.SIGTERM, signal.SIG_IGN)
cluster = tomllib.load(open(sys.argv[-1], "rb"))["cluster"]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(",".join(n for n in os.environ if n.startswith("TOCSIN_")).encode())
http.server.HTTPServer((cluster["host"], cluster["port"]), Handler).serve_forever()
"""


ANY = """
import http.server, sys
kind = sys.argv[1]
port = next(int(a.split("=")[2]) for a in sys.argv if a.startswith(f"--set={kind}.port="))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(kind.encode())
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def python(program):
    return (sys.executable, "-c", program)


@pytest.fixture
def started(tmp_path, monkeypatch):
    monkeypatch.setenv("TOCSIN_CLUSTER_PORT", "1")
    made = []

    def start(program):
        made.append(ClusterProcess(tmp_path / "demo", python(program)))
        return made[-1]

    yield start
    for process in made:
        process.stop(0.1)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_it_is_ready_when_it_answers_and_gone_after_stop(started):
    process, waits = started(SERVES.format(deaf=False)), []
    process.wait_ready(waits.append, 20)
    assert httpx.get(process.url).text == "", "settings of the surroundings reached it"
    process.check()
    process.stop()
    assert not is_alive(process.pid)
    assert waits == sorted(waits)


def test_one_that_does_not_listen_to_signals_is_killed(started):
    process = started(SERVES.format(deaf=True))
    process.wait_ready(lambda waited: None, 20)
    process.stop(0.2)
    assert not is_alive(process.pid)


def test_one_that_dies_is_told_with_its_last_words(started):
    process = started("import sys; print('no Java here'); sys.exit(3)")
    with pytest.raises(Unavailable, match=r"ended with code 3 [\s\S]*no Java here"):
        process.wait_ready(lambda waited: None, 20)


def test_one_that_never_gets_ready_is_given_up(started):
    process = started("import time; time.sleep(60)")
    with pytest.raises(Unavailable, match="not ready after 0 s"):
        process.wait_ready(lambda waited: None, 0.01)


def test_its_settings_are_a_configuration(started):
    process = started("pass")
    settings = load(process.config_path)
    assert settings.data_dir == process.root / "data"
    assert str(settings.cluster.port) in process.url
    assert settings.client.command_timeout == 10 * Client().command_timeout
    assert tomllib.loads(process.config_path.read_text())["cluster"]["host"] == "127.0.0.1"


def test_a_dashboard_whose_port_is_taken_while_spark_starts_gets_another(started, monkeypatch):
    monkeypatch.setattr("tocsin.demo.process.has_dashboard", lambda: True)
    monkeypatch.setattr("tocsin.demo.process.DASHBOARD_PORT", 0)
    process = started(SERVES.format(deaf=False))
    taken = process.addresses.dashboard
    servers = Servers(process, python(ANY))
    with socket.create_server(("127.0.0.1", taken)):
        try:
            servers.start(lambda waited: None)
            assert httpx.get(f"{servers.dashboard_url}/readyz").text == "dashboard"
        finally:
            servers.stop()
    assert servers.dashboard_url != process.addresses.dashboard_url
    allowed = load(process.config_path).http.allowed_origins.split()
    assert {servers.dashboard_url, process.addresses.dashboard_url} <= set(allowed)


def test_an_earlier_demonstration_makes_room(tmp_path):
    root = tmp_path / "demo"
    (root / "data").mkdir(parents=True)
    (root / "data" / "old").touch()
    (root / "cluster.log").touch()
    make_fresh(root)
    assert list(root.iterdir()) == []


def test_a_directory_with_anything_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(Unavailable, match=r"thesis\.tex"):
        make_fresh(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


def test_a_cluster_that_still_runs_is_left_alone(tmp_path):
    (tmp_path / "demo" / "data").mkdir(parents=True)
    with (tmp_path / "demo" / "data" / "lock").open("w+") as lock:
        lock.write("4711\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match="kill 4711"):
            make_fresh(tmp_path / "demo")
    assert (tmp_path / "demo" / "data" / "lock").exists()
