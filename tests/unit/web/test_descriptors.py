"""In a process of its own, whose limits may be changed."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import logging, resource, sys
from tocsin.web.descriptors import OWN, allow_connections
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s", level="INFO")
resource.setrlimit(resource.RLIMIT_NOFILE, (64, {hard}))
allow_connections({count}, {usual})
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - OWN)
"""


def told(count: int, hard: int, usual: int | None = None) -> list[str]:
    command = [sys.executable, "-c", SCRIPT.format(count=count, hard=hard, usual=usual)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_limit_is_raised_for_the_connections() -> None:
    assert told(100, 1000) == ["100"]


def test_what_the_system_forbids_is_told() -> None:
    assert told(1000, 800) == [
        "WARNING 1000 connections are configured, and the system allows 800 open files; `ulimit -n` raises that",
        "288",
    ]


def test_what_nobody_asked_for_is_no_warning() -> None:
    assert told(1000, 800, usual=1000)[0].startswith("INFO 1000 connections are configured")
