"""What ``tocsin up`` and its programs refuse before they start anything."""

from __future__ import annotations

import socket

import pytest

from tocsin.broker import server as broker_server
from tocsin.errors import BadArgument, Unavailable
from tocsin.web import server as web_server


@pytest.mark.parametrize("section", ["cluster", "coordinator", "broker"])
def test_a_configured_port_that_is_taken_is_refused(run, section):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("up", "--no-dashboard", "--brokers", 1, "--set", f"{section}.port={port}")
    assert isinstance(done.exception, Unavailable)
    assert str(done.exception) == f"cannot listen at 127.0.0.1, port {port}: Address already in use"


def test_more_brokers_than_there_are_ports_are_refused(run):
    done = run("up", "--brokers", 5, "--set", "broker.port=65534")
    assert isinstance(done.exception, BadArgument)
    assert "broker.port: expected at most 65531" in str(done.exception)


@pytest.mark.parametrize("made", [False, True], ids=["that cannot be made", "that is a file"])
def test_a_data_directory_is_refused(run, tmp_path, made):
    path = tmp_path / "file" if made else "/proc/x"
    (tmp_path / "file").write_text("")
    done = run("up", "--data-dir", path)
    assert isinstance(done.exception, Unavailable)
    assert f"the secret file {path}/" in str(done.exception)


@pytest.mark.parametrize("listen", [broker_server.listening, web_server._listen], ids=["broker", "others"])
def test_a_host_that_is_no_name_is_refused(listen):
    with pytest.raises(Unavailable, match=r"cannot listen at é\.\., port 9999"):
        listen("é..", 9999)
