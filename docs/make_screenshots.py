"""Make the pictures of docs/viewer.md: `make screenshots`; needs Chromium."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from branchwise import C45Classifier, CARTRegressor, datasets, fit_tree
from branchwise.model import Model

IMAGES = Path(__file__).parent / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync")
DESKTOP = {"width": 1200, "height": 720}


def weather() -> Model:
    """Return the textbook's tree."""
    table = datasets.load("weather")
    return fit_tree(table.X, table.y, target_name="play")


def cars() -> Model:
    """Return a tree of 182 nodes."""
    table = datasets.load("car")
    tree = C45Classifier().fit(table.X, table.y)
    return tree.model_


def petals() -> Model:
    """Return a tree that predicts numbers."""
    table = datasets.load("iris")
    columns = dict(table.X)
    width = columns.pop("petalwidth")
    tree = CARTRegressor(max_depth=3).fit(columns | {"species": table.y}, width)
    return tree.model_


def search(page: Any) -> None:
    """Look for a class."""
    page.fill("#query", "vgood")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")


def try_case(page: Any) -> None:
    """Type a day that stops at a node, and one more value."""
    page.click("#tab-case")
    page.locator(".field", has_text="outlook").locator("select").select_option("sunny")
    page.locator(".field", has_text="humidity").locator("input").fill("80")


def select(page: Any) -> None:
    """Tell about a node."""
    page.click("#node-2")


PICTURES = {
    "viewer_case": (weather, "Play today?", try_case, DESKTOP, "light"),
    "viewer_search": (cars, "Which cars are acceptable?", search, DESKTOP, "dark"),
    "viewer_numbers": (petals, "How wide is a petal?", select, DESKTOP, "light"),
    "viewer_narrow": (
        weather,
        "Play today?",
        select,
        {"width": 390, "height": 844},
        "light",
    ),
}


def main() -> None:
    """Make all pictures."""
    path = next(found for name in BROWSERS if (found := shutil.which(name)))
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        for name, (model, title, action, size, scheme) in PICTURES.items():
            file = Path(folder) / f"{name}.html"
            model().to_html(file, title=title)
            page = browser.new_page(
                viewport=size, color_scheme=scheme, reduced_motion="reduce"
            )
            page.goto(file.as_uri())
            action(page)
            page.wait_for_timeout(300)
            page.screenshot(path=IMAGES / f"{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
