"""The pictures of the dashboard in these docs: of a recording, and of a subscriber's page on a system of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, expect

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.browsers import chromium, opened, why_not
from tocsin.scenarios.city import Scenario
from tocsin.system.ports import free_port
from tocsin.system.process import PROGRAM, Process
from tocsin.tokens import mint, read_secret

HERE = Path(__file__).parent
PICTURES = (("operator", "light"), ("operator", "dark"), ("city", "light"), ("city", "dark"), ("lab", "light"))
WINDOW, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
PATIENCE_MS = 300_000.0
CITY = Scenario(people=2_000, subscribers=0, speed=5.0, channel_names=("WithShelters",))
RECORDED_S, LOOKED_MS = 40.0, 12_000.0


def main() -> None:
    if chromium() is None:
        raise SystemExit(why_not())
    with TemporaryDirectory(prefix="tocsin-pictures-") as directory, opened() as browser:
        with _replayed(Path(directory)) as (url, secret):
            _take_pages(browser, url, secret)
        with _running(Path(directory)) as (where, secret):
            _take_mine(browser, where, secret)


def _take_pages(browser: Browser, url: str, secret: bytes) -> None:
    for name, scheme in PICTURES:
        page = _open(browser, f"{url}/{name}", secret, "operator", scheme)
        if name == "lab":
            page.get_by_role("button", name="Run").click()
            expect(page.locator("#schemes")).to_be_visible(timeout=PATIENCE_MS)
        page.wait_for_timeout(LOOKED_MS)
        page.screenshot(path=HERE / f"{name}{'' if scheme == 'light' else '-dark'}.png", full_page=name == "operator")
        page.context.close()
    page = _open(browser, f"{url}/operator", secret, "operator", "light", PHONE)
    page.wait_for_timeout(LOOKED_MS)
    page.screenshot(path=HERE / "phone.png")
    page.context.close()


def _take_mine(browser: Browser, where: dict[str, str], secret: bytes) -> None:
    ask = httpx.Client(headers={"Authorization": f"Bearer {mint(secret, 'me', ['admin'], 3600)}"}, timeout=120)
    ask.post(f"{where['cluster']}/statements", json={"text": ";\n".join(CITY.statements())}).raise_for_status()
    _append(ask, where, "Shelters", [shelter.record() for shelter in CITY.city.shelters])
    scene = {"seed": CITY.seed, "people": 0}
    ask.put(f"{where['dashboard']}/api/city", json=scene).raise_for_status()
    page = _open(browser, f"{where['dashboard']}/me", secret, "u00001", "light")
    fires = [event.payload for event in CITY.events(60.0) if event.kind == "report" and event.payload["kind"] == "fire"]
    around = {"kind": "fire", "x": fires[0]["x"], "y": fires[0]["y"], "radius": 2500}
    for name, value in around.items():
        page.locator(f"input[name={name}]").fill(str(value))
    page.get_by_role("button", name="Subscribe").click()
    expect(page.locator("#mine li")).to_have_count(1, timeout=PATIENCE_MS)
    for fire in islice(fires, 6):
        _append(ask, where, "Reports", [fire])
    expect(page.locator("#told > li").nth(2)).to_be_visible(timeout=PATIENCE_MS)
    page.wait_for_timeout(1_500)
    page.screenshot(path=HERE / "me.png")


def _append(ask: httpx.Client, where: dict[str, str], dataset: str, records: list[dict[str, Any]]) -> None:
    lines = "\n".join(map(json.dumps, records))
    headers = {"Content-Type": "application/x-ndjson"}
    ask.post(f"{where['cluster']}/datasets/{dataset}/records", content=lines, headers=headers).raise_for_status()


@contextmanager
def _replayed(root: Path) -> Iterator[tuple[str, bytes]]:
    recording, data, port = root / "city.jsonl", root / "replay", free_port()
    CITY.record(recording, RECORDED_S)
    options = [f"--replay={recording}", f"--port={port}", f"--data-dir={data}"]
    url = f"http://127.0.0.1:{port}"
    process = Process("dashboard", [*PROGRAM, "dashboard", *options], url, log=root / "dashboard.log")
    try:
        process.wait_ready()
        yield url, read_secret(data / "secret")
    finally:
        process.stop()


@contextmanager
def _running(root: Path) -> Iterator[tuple[dict[str, str], bytes]]:
    sets = [
        "cluster.port=0",
        "coordinator.port=0",
        "broker.port=0",
        "dashboard.port=0",
        f"cluster.data_dir={root}/data",
    ]
    command = [*PROGRAM, "up", "--brokers=2", "--json", *(f"--set={one}" for one in sets)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = (json.loads(line) for line in process.stdout)
        yield next(line["ready"] for line in said if "ready" in line), read_secret(root / "data" / "secret")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


def _open(
    browser: Browser, url: str, secret: bytes, user: str, scheme: str, window: dict[str, int] | None = None
) -> Page:
    context = browser.new_context(viewport=window or WINDOW, color_scheme=scheme)  # type: ignore[arg-type]
    token = mint(secret, user, ["admin"], 3600)
    context.add_init_script(f"sessionStorage.setItem('tocsin.token', {json.dumps(token)})")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(url)
    return page


if __name__ == "__main__":
    main()
