"""A real Chromium for tests, screenshots and the benchmark: Debian's, found on the PATH."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str | None:
    """Where it is, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def why_not() -> str:
    return f"no Chromium on the PATH ({', '.join(NAMES)}); 'make browser' installs one where it may"


@contextmanager
def opened() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        yield browser
        browser.close()
