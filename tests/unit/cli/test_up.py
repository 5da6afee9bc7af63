"""What ``tocsin up`` refuses before it starts anything."""

from __future__ import annotations

import socket

import pytest

from tocsin.errors import Unavailable


@pytest.mark.parametrize("section", ["cluster", "coordinator", "broker"])
def test_a_configured_port_that_is_taken_is_refused(run, section):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("up", "--no-dashboard", "--brokers", 1, "--set", f"{section}.port={port}")
    assert isinstance(done.exception, Unavailable)
    assert str(done.exception) == f"cannot listen at 127.0.0.1, port {port}: Address already in use"
