"""What ``tocsin up`` refuses before it starts anything, and what it says when everything runs."""

from __future__ import annotations

import io
import json
import socket
from pathlib import Path

import pytest
from rich.console import Console

from tocsin.cli.up import _greet
from tocsin.config import resolve
from tocsin.errors import BadArgument, Unavailable
from tocsin.system.parts import Addresses
from tocsin.system.view import JsonView, TextView
from tocsin.tokens import ensure_secret
from tocsin.web.listening import listening

ADDRESSES = Addresses(8420, 8440, {"broker_1": 8430}, dashboard=8450)


@pytest.mark.parametrize(("is_terminal", "lets_in"), [(True, True), (False, False)], ids=["terminal", "log"])
def test_an_address_that_lets_somebody_in_is_for_a_terminal(
    tmp_path: Path, capsys, monkeypatch, is_terminal: bool, lets_in: bool
) -> None:
    monkeypatch.setattr(Console, "is_terminal", is_terminal)
    _greet(TextView(Console(), ["cluster"]), ADDRESSES, resolved(tmp_path))
    said = capsys.readouterr().out
    assert "http://127.0.0.1:8450" in said
    assert ("#enter=" in said) is lets_in


def test_json_has_addresses_and_nothing_that_lets_somebody_in(tmp_path: Path) -> None:
    out = io.StringIO()
    _greet(JsonView(out), ADDRESSES, resolved(tmp_path))
    said = json.loads(out.getvalue())
    assert said["ready"]["dashboard"] == "http://127.0.0.1:8450"
    assert "enter" not in out.getvalue()


def resolved(root: Path):
    found = resolve(overrides={"cluster.data_dir": str(root)})
    ensure_secret(found.config.secret_path)
    return found


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


def test_a_host_that_is_no_name_is_refused():
    with pytest.raises(Unavailable, match=r"cannot listen at é\.\., port 9999"):
        listening("é..", 9999)
