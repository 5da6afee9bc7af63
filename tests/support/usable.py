"""Whether everyone can use a page, as far as a program can tell."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def check_usable(page: Page, *schemes: str) -> None:
    """As it is now; or after the machine has gone light, or dark."""
    for scheme in schemes or (None,):
        if scheme is not None:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        results = Axe().run(page, options={"resultTypes": ["violations"]})
        assert results.violations_count == 0, f"{scheme}: {results.generate_report()}"


def check_fits(page: Page) -> None:
    """Nothing is wider than the window."""
    found, wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert found <= wide
