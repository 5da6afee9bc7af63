"""How smooth the dashboard is with 10 brokers and 10,000 people, and how many bytes a second it takes.

    python benchmarks/dashboard.py [--quick]

A recording of the city is made and shown by ``tocsin dashboard --replay``, in a real Chromium, page by page: first the
map, then the operator's page. A frame's time is that between two calls of requestAnimationFrame, which are 16.7 ms
apart at best; bytes are those of everything that came over the page's WebSocket. Both are measured after the page shows
all brokers and has settled; a page that shows nothing, or gets nothing, is an error. The last line is JSON with the
worse of the two pages, ``p95_frame_ms`` and ``kilobytes_per_second``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, expect
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.browsers import chromium, opened, why_not
from tocsin.scenarios.city import Scenario
from tocsin.system.ports import free_port
from tocsin.system.process import PROGRAM, Process
from tocsin.tokens import mint, read_secret

BROKERS, PEOPLE = 10, 10_000
RECORDED_S, MEASURED_S, SETTLE_S = (60.0, 40.0, 5.0)
QUICK_RECORDED_S, QUICK_MEASURED_S = 20.0, 12.0
PAGES = {"/city": "#legend li", "/operator": "#brokers tbody tr"}  # with what there is one of for each broker
PATIENCE_MS = 60_000
FRAMES = """
window.frameTimes = [];
requestAnimationFrame(function next(now) { window.frameTimes.push(now); requestAnimationFrame(next); });
"""
console = Console(stderr=True)


@dataclass(frozen=True)
class Measured:
    page: str
    frames_ms: list[float]
    bytes_per_s: float

    @property
    def p95_ms(self) -> float:
        return statistics.quantiles(self.frames_ms, n=20)[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="finish within two minutes")
    quick = parser.parse_args().quick
    if chromium() is None:
        raise SystemExit(why_not())
    with TemporaryDirectory(prefix="tocsin-bench-") as directory:
        recording = Path(directory) / "city.jsonl"
        console.print(f"recording {PEOPLE:,} people ...")
        Scenario(people=PEOPLE, subscribers=0).record(recording, QUICK_RECORDED_S if quick else RECORDED_S)
        with _dashboard(Path(directory), recording) as (url, token), opened() as browser:
            found = [_measured(browser, url, token, page, QUICK_MEASURED_S if quick else MEASURED_S) for page in PAGES]
    _tell(found)


@contextmanager
def _dashboard(root: Path, recording: Path) -> Iterator[tuple[str, str]]:
    port, data = free_port(), root / "data"
    options = [f"--replay={recording}", f"--brokers={BROKERS}", f"--port={port}", f"--data-dir={data}"]
    process = Process(
        "dashboard", [*PROGRAM, "dashboard", *options], f"http://127.0.0.1:{port}", log=root / "dashboard.log"
    )
    try:
        process.wait_ready()
        yield process.url, mint(read_secret(data / "secret"), "operator", ["admin"], 3600)
    finally:
        process.stop()


def _measured(browser: Browser, url: str, token: str, path: str, seconds: float) -> Measured:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script(f"sessionStorage.setItem('tocsin.token', {json.dumps(token)});{FRAMES}")
    page, received = context.new_page(), [0]
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: _count(received, data)))
    page.goto(url + path)
    _until_shown(page, path)
    _wait(page, SETTLE_S)
    page.evaluate("window.frameTimes.length = 0")
    before, began = received[0], time.monotonic()
    _wait(page, seconds)
    passed_s = time.monotonic() - began
    times = page.evaluate("window.frameTimes")
    context.close()
    if received[0] == before:
        raise SystemExit(f"{path}: nothing came in {passed_s:.0f} s, so there was nothing to measure")
    frames = [after - at for at, after in pairwise(times)]
    return Measured(path, frames, (received[0] - before) / passed_s)


def _until_shown(page: Page, path: str) -> None:
    """An empty page would be the smoothest of all."""
    try:
        expect(page.locator(".state")).to_have_text("playing a recording", timeout=PATIENCE_MS)
        expect(page.locator(PAGES[path])).to_have_count(BROKERS, timeout=PATIENCE_MS)
    except AssertionError as problem:
        raise SystemExit(f"{path} does not show the recording: {problem}") from None


def _wait(page: Page, seconds: float) -> None:
    page.wait_for_timeout(1000 * seconds)


def _count(received: list[int], data: str | bytes) -> None:
    received[0] += len(data.encode() if isinstance(data, str) else data)


def _tell(found: list[Measured]) -> None:
    table = Table(title=f"{BROKERS} brokers, {PEOPLE:,} people")
    for name in ("page", "frames", "median ms", "p95 ms", "worst ms", "kB/s"):
        table.add_column(name, justify="left" if name == "page" else "right")
    for one in found:
        frames = one.frames_ms
        cells = [f"{value:.1f}" for value in (statistics.median(frames), one.p95_ms, max(frames))]
        table.add_row(one.page, str(len(frames)), *cells, f"{one.bytes_per_s / 1000:.1f}")
    console.print(table)
    worst = {
        "p95_frame_ms": round(max(one.p95_ms for one in found), 1),
        "kilobytes_per_second": round(max(one.bytes_per_s for one in found) / 1000, 1),
    }
    print(json.dumps(worst))


if __name__ == "__main__":
    main()
