"""Programs of others that tests start: a browser, servers."""

from __future__ import annotations

import os
import shutil

import pytest

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
#: Marks of tests in a browser.
IN_BROWSER = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def their_environment() -> dict[str, str]:
    """Return the environment without what is loaded for our extension only."""
    return {name: of for name, of in os.environ.items() if name != "LD_PRELOAD"}


@pytest.fixture(scope="module", name="browser")
def opened_browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed"
    )
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS, env=their_environment()
        )
        yield chromium
        chromium.close()
