"""The pictures of the dashboard in these docs: operator and subscriber of a running demo, map and lab of a recording.

    python docs/images/take.py [NAME ...]

Without names all are taken: operator, me, phone, city, lab; light, and but for the phone also dark.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser, Page, expect

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.browsers import chromium, opened, why_not
from tocsin.demo.plan import Plan
from tocsin.scenarios.city import Intent, Scenario
from tocsin.system.ports import free_port
from tocsin.system.process import PROGRAM, Process
from tocsin.tokens import mint, read_secret

HERE = Path(__file__).parent
SCHEMES = ("light", "dark")
WINDOW, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
PATIENCE_MS = 240_000.0
PEOPLE, SUBSCRIPTIONS, CONNECTED, BROKERS = 400, 2_000, 120, 4
WIDE_M = 1_000.0
DEMO_S, LOOKED_MS, SETTLED_MS = 90.0, 40_000.0, 1_500.0
CITY = Scenario(people=4_000, subscribers=0, speed=5.0)
RECORDED_S, PLAYED_MS = 60.0, 20_000.0
ADDRESS = re.compile(r"(http\S+?)/#enter=")


def main() -> None:
    if chromium() is None:
        raise SystemExit(why_not())
    wanted = set(sys.argv[1:]) or {"operator", "me", "phone", "city", "lab"}
    with TemporaryDirectory(prefix="tocsin-pictures-") as directory, opened() as browser:
        if wanted & {"operator", "me", "phone"}:
            with _demo(Path(directory)) as (url, secret):
                _take_running(browser, url, secret, wanted)
        if wanted & {"city", "lab"}:
            with _replayed(Path(directory)) as (url, secret):
                _take_recorded(browser, url, secret, wanted)


def _take_running(browser: Browser, url: str, secret: bytes, wanted: set[str]) -> None:
    """All pages are opened first and looked at side by side, for the demo does not wait."""
    first = _open(browser, f"{url}/operator", secret, "light")
    expect(first.locator("#channels tbody tr")).to_have_count(4, timeout=PATIENCE_MS)
    pages: dict[str, Page] = {}
    for scheme in SCHEMES:
        if "operator" in wanted:
            pages[_name("operator", scheme)] = _open(browser, f"{url}/operator", secret, scheme)
        if "me" in wanted:
            pages[_name("me", scheme)] = _subscribed(_open(browser, f"{url}/me", secret, scheme, f"ann-{scheme}"))
    if "phone" in wanted:
        pages["phone"] = _open(browser, f"{url}/operator", secret, "light", window=PHONE)
    first.get_by_role("button", name="Compare now").click()  # which compiles the policies
    first.wait_for_timeout(LOOKED_MS)
    for name, page in pages.items():
        if name.startswith("operator"):
            page.get_by_role("button", name="Compare now").click()
    for name, page in pages.items():
        if name.startswith("me"):
            expect(page.locator("#told > li").nth(2)).to_be_visible(timeout=PATIENCE_MS)
        elif name.startswith("operator"):
            expect(page.locator("#trials")).to_be_visible(timeout=PATIENCE_MS)
    for name, page in pages.items():
        _shoot(page, name, whole=name.startswith("operator"))


def _subscribed(page: Page) -> Page:
    """Follow what most people of the demo follow, so that this page asks the cluster for nothing new."""
    page.get_by_label("Channel").select_option("WithShelters")
    for name, value in _popular().args.items():
        page.locator(f"input[name={name}]").fill(value if isinstance(value, str) else f"{value:g}")
    page.get_by_role("button", name="Subscribe").click()
    expect(page.locator("#mine li")).to_have_count(1, timeout=PATIENCE_MS)
    return page


def _popular() -> Intent:
    plan = Plan(DEMO_S, PEOPLE, SUBSCRIPTIONS, datetime.now(UTC))
    near = [one for one in plan.present if one.channel == "WithShelters" and one.args["radius"] >= WIDE_M]
    most = Counter(intent.key for intent in near).most_common(1)[0][0]
    return next(intent for intent in near if intent.key == most)


def _take_recorded(browser: Browser, url: str, secret: bytes, wanted: set[str]) -> None:
    for name in sorted(wanted & {"city", "lab"}):
        for scheme in SCHEMES:
            page = _open(browser, f"{url}/{name}", secret, scheme)
            if name == "lab":
                page.get_by_role("button", name="Run").click()
                expect(page.locator("#schemes")).to_be_visible(timeout=PATIENCE_MS)
            page.wait_for_timeout(PLAYED_MS if name == "city" else SETTLED_MS)
            _shoot(page, _name(name, scheme))
            page.context.close()


@contextmanager
def _demo(root: Path) -> Iterator[tuple[str, bytes]]:
    """The demo from the moment at which its dashboard is there; afterwards it is ended."""
    numbers = {"seconds": DEMO_S, "people": PEOPLE, "subscriptions": SUBSCRIPTIONS, "connected": CONNECTED}
    options = [f"--{name}={value:g}" for name, value in numbers.items()]
    command = [*PROGRAM, "demo", f"--dir={root / 'demo'}", f"--brokers={BROKERS}", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        found = next((match for line in process.stderr if (match := ADDRESS.search(line))), None)
        if found is None:
            raise SystemExit("the demo ended before its dashboard was there")
        yield found[1], read_secret(root / "demo" / "data" / "secret")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


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


def _open(
    browser: Browser, url: str, secret: bytes, scheme: str, user: str = "operator", window: Any = None
) -> Page:  # fmt: skip
    context = browser.new_context(viewport=window or WINDOW, color_scheme=scheme)  # type: ignore[arg-type]
    token = mint(secret, user, ["admin"], 3600)
    context.add_init_script(f"sessionStorage.setItem('tocsin.token', {json.dumps(token)})")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(url)
    return page


def _name(page: str, scheme: str) -> str:
    return page if scheme == "light" else f"{page}-{scheme}"


def _shoot(page: Page, name: str, whole: bool = False) -> None:
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=HERE / f"{name}.png", full_page=whole)


if __name__ == "__main__":
    main()
