"""A recording on the pages: a dashboard alone, without a system."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from support.usable import check_usable
from support.waiting import until
from tocsin.scenarios.city import Scenario
from tocsin.system.ports import free_port
from tocsin.system.process import PROGRAM, Process
from tocsin.tokens import mint, read_secret

PATIENCE_MS = 90_000
COLOURED = """
() => {
  const { width, height } = document.querySelector("canvas.LAYER");
  const pixels = document.querySelector("canvas.LAYER").getContext("2d").getImageData(0, 0, width, height).data;
  return Array.from({ length: pixels.length / 4 }, (_, at) => pixels[4 * at + 3]).filter(Boolean).length;
}
"""
GROUND = "document.querySelector('canvas.ground').toDataURL()"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Page]:
    """The map, with nine people at three brokers."""
    root, port = tmp_path_factory.mktemp("recorded"), free_port()
    Scenario(people=9, subscribers=0, reports_per_s=20).record(root / "city.jsonl", 20)
    options = [f"--replay={root / 'city.jsonl'}", "--brokers=3", f"--port={port}", f"--data-dir={root / 'data'}"]
    url = f"http://127.0.0.1:{port}"
    process = Process("dashboard", [*PROGRAM, "dashboard", *options], url, log=root / "dashboard.log")
    try:
        process.wait_ready()
        token = mint(read_secret(root / "data" / "secret"), "eve", ["read", "topic:*"], 600)
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.add_init_script(f"sessionStorage.setItem('tocsin.token', {json.dumps(token)})")
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{url}/city")
        yield page
        page.context.close()
    finally:
        process.stop()


def coloured(page: Page, layer: str) -> int:
    found: int = page.evaluate(COLOURED.replace("LAYER", layer))
    return found


def test_people_regions_and_reports_are_on_the_map(recorded: Page) -> None:
    expect(recorded.locator("#legend li")).to_have_count(3)
    expect(recorded.locator("#reports li").first).to_contain_text("severity")
    for layer in ("people", "regions", "marks"):
        until(lambda layer=layer: coloured(recorded, layer) > 0, f"{layer} are drawn", PATIENCE_MS / 1000)  # type: ignore[misc]
    assert coloured(recorded, "people") <= 9 * 9
    check_usable(recorded, "dark", "light")


def test_what_is_not_wanted_on_the_map_is_taken_from_it(recorded: Page) -> None:
    people = recorded.get_by_role("checkbox", name="People", exact=True)
    people.uncheck()
    until(lambda: coloured(recorded, "people") == 0, "nobody is drawn", PATIENCE_MS / 1000)
    people.check()
    until(lambda: coloured(recorded, "people") > 0, "people are drawn", PATIENCE_MS / 1000)


def test_the_map_is_moved_without_a_pointer(recorded: Page) -> None:
    whole = recorded.evaluate(GROUND)
    recorded.get_by_role("button", name="Closer").press("Enter")
    closer = recorded.evaluate(GROUND)
    recorded.get_by_role("button", name="Closer").press("ArrowRight")
    moved = recorded.evaluate(GROUND)
    assert len({whole, closer, moved}) == 3
    for _ in range(2):
        recorded.get_by_role("button", name="Farther away").press("Enter")
    assert recorded.evaluate(GROUND) == whole


def test_the_map_fits_a_finer_screen_that_the_page_came_to(recorded: Page) -> None:
    """The window keeps its size, so nothing but the screen tells of it."""

    def width() -> int:
        found: int = recorded.evaluate("document.querySelector('canvas.ground').width")
        return found

    before = width()
    finer = {"width": 1280, "height": 900, "deviceScaleFactor": 2, "mobile": False}
    devtools = recorded.context.new_cdp_session(recorded)
    devtools.send("Emulation.setDeviceMetricsOverride", finer)
    until(lambda: width() == 2 * before, "the map is drawn finer", PATIENCE_MS / 1000)
    devtools.send("Emulation.setDeviceMetricsOverride", finer | {"deviceScaleFactor": 1})
    until(lambda: width() == before, "the map is drawn coarser", PATIENCE_MS / 1000)


def test_a_page_that_came_before_the_city_gets_it_when_it_is_there(recorded: Page) -> None:
    """The world of a recording is drawn while pages can be asked for already."""
    expect(recorded.locator("#legend li")).to_have_count(3)
    empty = json.dumps({"position": None, "world": None})
    recorded.route("**/api/city", lambda route: route.fulfill(body=empty, content_type="application/json"), times=1)
    recorded.reload()
    expect(recorded.locator("#no-city")).to_be_hidden()
    expect(recorded.locator("#legend li")).to_have_count(3)


def test_a_recording_names_no_policy_and_says_what_is_made_up(recorded: Page) -> None:
    """The last of them: it leaves the map."""
    expect(recorded.locator("#played")).to_be_visible()
    recorded.goto(recorded.url.replace("/city", "/operator"))
    expect(recorded.locator("#alerts")).to_contain_text("made up for the replay")
    expect(recorded.locator("#policies")).to_contain_text("no policy decides here")
    expect(recorded.locator("#brokers tbody tr")).to_have_count(3)
