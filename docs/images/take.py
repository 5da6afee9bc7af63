"""The pictures of the dashboard in these docs: a demonstration is started, and its pages are photographed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from playwright.sync_api import Browser, Page, expect

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.browsers import chromium, opened, why_not
from tocsin.config import load
from tocsin.tokens import mint, read_secret

HERE = Path(__file__).parent
DEMO = (sys.executable, "-m", "tocsin.cli.main", "demo", "--seconds=90", "--people=1200", "--subscriptions=4000")
PICTURES = (("operator", "light"), ("operator", "dark"), ("city", "light"), ("city", "dark"), ("lab", "light"))
WINDOW = {"width": 1280, "height": 860}
PATIENCE_S = 300.0


def main() -> None:
    if chromium() is None:
        raise SystemExit(why_not())
    with TemporaryDirectory(prefix="tocsin-pictures-") as directory:
        demo = subprocess.Popen([*DEMO, "--connected=240"], cwd=directory, stdout=subprocess.DEVNULL)
        try:
            url, secret = _address(Path(directory) / ".demo", demo)
            with opened() as browser:
                _take(browser, url, secret)
        finally:
            demo.terminate()
            demo.wait(90)


def _address(root: Path, demo: subprocess.Popen[bytes]) -> tuple[str, bytes]:
    """Where the dashboard is, once a city is on its map."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and demo.poll() is None:
        time.sleep(1.0)
        if not (root / "data" / "secret").exists():
            continue
        secret = read_secret(root / "data" / "secret")
        url = load(root / "tocsin.toml").http.allowed_origins.split()[0]
        token = mint(secret, "photographer", ["read"], 60)
        try:
            found = httpx.get(f"{url}/api/city", headers={"Authorization": f"Bearer {token}"})
        except httpx.HTTPError:
            continue
        if found.status_code == 200 and found.json()["world"] is not None:
            return url, secret
    raise SystemExit("the demonstration did not start")


def _take(browser: Browser, url: str, secret: bytes) -> None:
    me = _open(browser, f"{url}/me", secret, "u00001", "light")
    _subscribe(me)
    time.sleep(25)  # for something to look at on the operator's charts
    for name, scheme in (
        ("operator", "light"),
        ("operator", "dark"),
        ("city", "light"),
        ("city", "dark"),
        ("lab", "light"),
    ):
        page = _open(browser, f"{url}/{name}", secret, "operator", scheme)
        if name == "lab":
            page.get_by_role("button", name="Run").click()
            expect(page.locator("#schemes")).to_be_visible(timeout=1000 * PATIENCE_S)
        page.wait_for_timeout(6000)
        suffix = "" if scheme == "light" else "-dark"
        page.screenshot(path=HERE / f"{name}{suffix}.png", full_page=name == "operator")
        page.context.close()
    me.screenshot(path=HERE / "me.png")
    phone = _open(browser, f"{url}/operator", secret, "operator", "light", {"width": 390, "height": 844})
    phone.wait_for_timeout(4000)
    phone.screenshot(path=HERE / "phone.png")


def _subscribe(page: Page) -> None:
    page.get_by_label("Channel").select_option("WithShelters")
    for name, value in (("kind", "fire"), ("x", "5000"), ("y", "4000"), ("radius", "3000")):
        page.locator(f"input[name={name}]").fill(value)
    page.get_by_role("button", name="Subscribe").click()
    expect(page.locator("#mine li")).to_have_count(1, timeout=1000 * PATIENCE_S)


def _open(
    browser: Browser, url: str, secret: bytes, user: str, scheme: str, window: dict[str, int] | None = None
) -> Page:
    context = browser.new_context(viewport=window or WINDOW, color_scheme=scheme)  # type: ignore[arg-type]
    token = mint(secret, user, ["admin"], 3600)
    context.add_init_script(f"sessionStorage.setItem('tocsin.token', {json.dumps(token)})")
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE_S)
    page.goto(url)
    return page


if __name__ == "__main__":
    main()
