"""Make the pictures of viewer.md and report.md: `make screenshots`; needs Chromium."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from pyarrow import csv

from branchwise import C45Classifier, CARTRegressor, datasets, fit_tree
from branchwise.model import Model
from branchwise.report import make_report

IMAGES = Path(__file__).parent / "images"
CREDIT = Path(__file__).parents[1] / "tests" / "data" / "credit-g.csv"
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
    "viewer_phone": (
        weather,
        "Play today?",
        select,
        {"width": 390, "height": 844},
        "light",
    ),
}


def show_report(browser: Any, folder: Path) -> None:
    """Make the pictures of a report: where it begins, and its tests on a telephone."""
    table = csv.read_csv(CREDIT)
    tree = C45Classifier(min_samples_branch=20)
    X, y = table.drop_columns(["class"]), table["class"]
    title = "Credit risk: who repays?"
    make_report(X, y, tree, target_name="class", title=title).save(folder / "r.html")
    for name, size, part in (
        ("report", {"width": 980, "height": 900}, "h1"),
        ("report_tests", {"width": 1000, "height": 860}, "#evaluation"),
        ("report_phone", {"width": 390, "height": 844}, "#evaluation figure"),
    ):
        page = browser.new_page(viewport=size, reduced_motion="reduce")
        page.goto((folder / "r.html").as_uri())
        page.locator(part).first.evaluate("e => e.scrollIntoView()")
        page.wait_for_timeout(300)
        page.screenshot(path=IMAGES / f"{name}.png")
        page.close()


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
        show_report(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
