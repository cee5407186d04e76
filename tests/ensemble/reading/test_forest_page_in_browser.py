"""The page of a forest in a real browser: three widths, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from branchwise import RandomForestClassifier
from forest_tables import mixed
from programs import IN_BROWSER, opened_browser  # noqa: F401  (a fixture)
from selection import first_fast

pytestmark = IN_BROWSER
LOUD = "<img src=https://example.invalid/x onerror=alert(1)>"


@pytest.fixture(scope="module")
def forest() -> Any:
    X, y = mixed(200)
    X, y = X.rename(columns={"age": LOUD}), y.replace("yes", LOUD)
    return RandomForestClassifier(n_estimators=8).fit(X, y)


SCREENS = [(375, "dark"), (1280, "light"), (768, "light")]
OTHERS = [(375, "light"), (1280, "dark"), (768, "dark")]


@pytest.mark.parametrize("screen", first_fast([*SCREENS, *OTHERS], n_fast=2))
def test_it_fits_every_screen(
    browser: Any, tmp_path: Path, forest: Any, screen: tuple[int, str]
) -> None:
    width, scheme = screen
    path, wrong = tmp_path / "forest.html", []
    forest.to_html(path)
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    shown = context.new_page()
    shown.on("console", lambda message: wrong.append(message.text))
    shown.on("pageerror", lambda error: wrong.append(str(error)))
    shown.on("dialog", lambda dialog: (wrong.append("?"), dialog.dismiss()))
    shown.on("request", lambda request: wrong.append(request.url))
    shown.goto(path.as_uri())
    shown.frame_locator("iframe.viewer").locator("svg").first.wait_for()
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    links = shown.eval_on_selector_all("nav a", "a => a.map(e => e.textContent)")
    assert links == shown.eval_on_selector_all("h2", "h => h.map(e => e.textContent)")
    charts = shown.locator("svg.chart")
    for at in range(charts.count()):
        assert charts.nth(at).bounding_box()["width"] > 250
    ground = shown.eval_on_selector("body", "e => getComputedStyle(e).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(13, 17, 23)")
    context.close()
    own = (path.as_uri(), "about:srcdoc", "data:")
    assert [text for text in wrong if not text.startswith(own)] == []
