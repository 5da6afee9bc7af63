"""One system for all tests of the pages: a cluster on Spark, a coordinator, two brokers, the dashboard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from support.browsers import chromium, opened, why_not
from tocsin.dashboard.entering import entrance
from tocsin.system.ports import free_ports
from tocsin.tokens import mint, read_secret

PATIENCE_MS = 90_000  # a busy machine takes its time; a quiet one takes none of it
CHANNEL = """
CREATE ACTIVE DATASET Reports (report_id STRING, kind STRING, severity INT, x DOUBLE, y DOUBLE, text STRING);
CREATE DATASET Shelters (name STRING, x DOUBLE, y DOUBLE) PRIMARY KEY (name);
INSERT INTO Shelters VALUES ('Town hall', 100.0, 100.0), ('School', 400.0, 100.0), ('Church', 4000.0, 100.0);
CREATE CONTINUOUS CHANNEL Near(kind STRING, x DOUBLE, y DOUBLE, radius DOUBLE) AS
    SELECT r.report_id, r.kind, r.severity, r.x, r.y, r.text, n.shelters
    FROM Reports r, LATERAL (
        SELECT collect_list(struct(name, d)) AS shelters
        FROM (SELECT s.name, distance(s.x, s.y, r.x, r.y) AS d FROM Shelters s ORDER BY d LIMIT 2)
    ) n
    WHERE r.kind = :kind AND distance(r.x, r.y, :x, :y) < :radius
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.skipif(chromium() is None, reason=why_not()))


@dataclass(frozen=True)
class System:
    where: dict[str, str]
    secret: bytes

    @property
    def url(self) -> str:
        return self.where["dashboard"]

    def token(self, name: str, *capabilities: str, ttl_s: float = 3600.0) -> str:
        return mint(self.secret, name, capabilities or ["admin"], ttl_s)

    def entrance(self, page: str = "/operator") -> str:
        return entrance(self.url, self.secret, 600, page)

    def ask(self, part: str, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token('tester')}"}
        answer = httpx.request(method, self.where[part] + path, json=body, headers=headers, timeout=120)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def kill(self, part: str) -> None:
        """kill -9 of a part by its name and port; ``tocsin up --restart`` starts it again."""
        port = f"--set={part}.port={urlsplit(self.where[part]).port}".encode()
        found = [path for path in Path("/proc").glob("[0-9]*/cmdline") if {part.encode(), port} <= _words(path)]
        assert len(found) == 1, found
        os.kill(int(found[0].parent.name), signal.SIGKILL)

    def report(self, number: int, text: str, kind: str = "fire", x: float = 120.0, y: float = 80.0) -> None:
        record = {"report_id": f"r{number}", "kind": kind, "severity": 4, "x": x, "y": y, "text": text}
        self.ask("cluster", "POST", "/datasets/Reports/records", record)


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    root = tmp_path_factory.mktemp("system")
    ports = free_ports([0, 0, 0])
    sets = {
        "cluster.port": ports[0],
        "coordinator.port": ports[1],
        "dashboard.port": ports[2],
        "broker.port": 0,
        "cluster.driver_memory": "768m",
        "dashboard.sample_every": "500ms",
        "dashboard.cov_load": 1,  # a few bytes a second are enough to be warned of
    }
    command = [sys.executable, "-m", "tocsin.cli.main", "up", "--brokers", "2", "--json", "--restart"]
    command += [f"--set={name}={value}" for name, value in sets.items()]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        found = System(_until_ready(process), read_secret(root / ".tocsin" / "secret"))
        found.ask("cluster", "POST", "/statements", {"text": CHANNEL})
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def _words(path: Path) -> set[bytes]:
    with suppress(OSError):  # it has ended meanwhile
        return set(path.read_bytes().split(b"\0"))
    return set()


def _until_ready(process: subprocess.Popen[str]) -> dict[str, str]:
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(json.loads(line))
        if "ready" in said[-1]:
            threading.Thread(target=deque, args=(process.stdout, 0), daemon=True).start()  # nobody reads the rest
            where: dict[str, str] = said[-1]["ready"]
            return where
    raise AssertionError(said)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with opened() as made:
        yield made


@dataclass(frozen=True)
class Visit:
    """A page somebody opened, and what its console complained of."""

    page: Page
    complaints: list[str]


@pytest.fixture
def visit(browser: Browser, system: System) -> Iterator[Callable[..., Visit]]:
    """Open a page as somebody, in a window of its own."""
    made = []

    def open_page(path: str, token: str | None = None, **window: Any) -> Visit:
        context = browser.new_context(viewport=window.pop("viewport", {"width": 1280, "height": 900}), **window)
        made.append(context)
        if token is not None:
            context.add_init_script(f"sessionStorage.setItem('tocsin.token', {json.dumps(token)})")
        page, complaints = context.new_page(), list[str]()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path if path.startswith("http") else system.url + path)
        return Visit(page, complaints)

    yield open_page
    for context in made:
        context.close()
