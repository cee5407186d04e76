"""Make the pictures of viewer.md, report.md, studio.md and screenshots.md.

`make screenshots` runs this.

Needs Chromium. The adult table (https://archive.ics.uci.edu/dataset/2/adult, 32,561
rows) is not part of the project: `make screenshots ADULT=adult.csv` takes a CSV file of
it whose target is the column `class`; without it, its pictures stay as they are.
"""

import asyncio
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from pyarrow import Table, csv

from branchwise import C45Classifier, CARTClassifier, CARTRegressor, datasets, fit_tree
from branchwise.model import Model
from branchwise.report import make_report
from branchwise.studio.server import StudioApp, listening_socket, server_of
from branchwise.studio.workspace import Workspace

IMAGES = Path(__file__).parent / "images"
CREDIT = Path(__file__).parents[1] / "tests" / "data" / "credit-g.csv"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync")
DESKTOP = {"width": 1200, "height": 720}
PHONE = {"width": 390, "height": 844}
STUDIO = {"width": 1180, "height": 720}
#: The windows of screenshots.md.
SIZES = (
    {"width": 1440, "height": 900},
    {"width": 1024, "height": 768},
    PHONE,
)
#: Colours of a picture; more do not show in pages of flat colours.
COLOURS = 256


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
    "viewer_phone": (weather, "Play today?", select, PHONE, "light"),
}


def keep(page: Any, name: str, close: bool = True) -> None:
    """Save what the window shows, in few colours."""
    page.wait_for_timeout(300)
    pixels = np.asarray(Image.open(BytesIO(page.screenshot())).convert("RGB"))
    colours, which, counts = np.unique(
        pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    # The most frequent colours stay as they are; rare ones, of the edges of letters, do
    # not: grounds, bars and lines keep theirs.
    frequent = colours[np.argsort(-counts)[:COLOURS]]
    apart = colours[:, np.newaxis].astype(int) - frequent
    nearest = (apart**2).sum(axis=2).argmin(axis=1).astype(np.uint8)
    small = Image.fromarray(nearest[which].reshape(pixels.shape[:2]))
    small.putpalette(frequent.ravel().tolist())
    small.save(IMAGES / f"{name}.png", optimize=True)
    if close:
        page.close()


def opened(browser: Any, path: Path, size: dict[str, int], scheme: str) -> Any:
    """Open a page in a window of its own."""
    page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page.goto(path.as_uri())
    return page


def show_viewer(browser: Any, folder: Path) -> None:
    """Make the pictures of the viewer."""
    for name, (model, title, action, size, scheme) in PICTURES.items():
        file = folder / f"{name}.html"
        model().to_html(file, title=title)
        page = opened(browser, file, size, scheme)
        action(page)
        keep(page, name)


@cache
def rows(path: Path) -> tuple[Table, Any]:
    """Return the columns of a table, and its target."""
    table = csv.read_csv(path)
    return table.drop_columns(["class"]), table["class"]


def show_report(browser: Any, folder: Path) -> None:
    """Make the pictures of a report: where it begins, and its tests on a telephone."""
    tree = C45Classifier(min_samples_branch=20)
    title = "Credit risk: who repays?"
    report = make_report(*rows(CREDIT), tree, target_name="class", title=title)
    report.save(folder / "r.html")
    for name, size, part in (
        ("report", {"width": 980, "height": 900}, "h1"),
        ("report_tests", {"width": 1000, "height": 860}, "#evaluation"),
        ("report_phone", PHONE, "#evaluation figure"),
    ):
        page = opened(browser, folder / "r.html", size, "light")
        page.locator(part).first.evaluate("e => e.scrollIntoView()")
        keep(page, name)


@contextmanager
def studio(table: Path) -> Iterator[tuple[str, Workspace]]:
    """Serve the studio with a table; yield its address."""
    workspace, token = Workspace(), "studio"
    workspace.open_file(str(table))
    with listening_socket(0) as listening:
        port = listening.getsockname()[1]
        server = server_of(StudioApp(workspace, token, port))
        serving = server.serve(sockets=[listening])
        thread = threading.Thread(target=lambda: asyncio.run(serving))
        thread.start()
        yield f"http://127.0.0.1:{port}/{token}/", workspace
        server.should_exit = True
        thread.join()
    workspace.close()


def act(page: Any, do: str, node: str, **how: Any) -> None:
    """Do something in the studio, as a click does."""
    page.evaluate(
        "action => window.branchwise.apply(action)", {"do": do, "node": node, **how}
    )


def choose(page: Any, path: str, column: str) -> None:
    """Select a node, and open a candidate of it."""
    page.evaluate(
        "p => window.branchwise.select(window.branchwise.tree.numbers.get(p))", path
    )
    candidate = page.locator(f"#candidates li[data-column={column}]")
    candidate.locator(".column").click()
    candidate.locator(".preview table").wait_for()
    candidate.evaluate("e => e.scrollIntoView()")


def show_studio(browser: Any) -> None:
    """Make the film strip of studio.md: a session of credit-g."""
    with studio(CREDIT) as (address, _):
        page = browser.new_page(
            viewport=STUDIO, color_scheme="light", reduced_motion="reduce"
        )
        page.goto(address)
        page.select_option("#target", "class")
        page.select_option("#positive", "bad")
        keep(page, "studio_table", close=False)
        page.click("#start")
        page.wait_for_selector("#candidates li")
        act(page, "split", "/", column="checking_status")
        page.wait_for_selector("#live b")
        keep(page, "studio_candidates", close=False)
        choose(page, "/0", "duration")
        for _ in range(6):
            page.locator(".handle").press("ArrowLeft")
        keep(page, "studio_threshold", close=False)
        page.click("text=Split here")
        page.wait_for_selector("text=Splits on duration")
        choose(page, "/1", "credit_history")
        page.locator(".chip").first.press("2")
        page.wait_for_selector("text=Split into 4 branches")
        keep(page, "studio_groups", close=False)
        page.click("text=Split into 4 branches")
        page.wait_for_selector("text=Splits on credit_history")
        act(page, "lock", "/0")
        act(page, "note", "/0", text="Agreed with the credit desk.")
        act(page, "grow", "/3")
        page.click("#tab-score")
        page.wait_for_selector("#panel-score .mean")
        page.click("#fit")
        keep(page, "studio_score", close=False)
        page.click("#tab-export")
        page.click("[data-export=sql]")
        page.wait_for_selector(".verified")
        keep(page, "studio_export")
        phone = browser.new_page(
            viewport=PHONE, color_scheme="dark", reduced_motion="reduce"
        )
        phone.goto(address)
        phone.wait_for_selector("#candidates li")
        keep(phone, "studio_phone")


def two_sessions(
    browser: Any, folder: Path, size: dict[str, int], scheme: str
) -> Iterator[Any]:
    """Yield a window in which two sessions of credit-g are beside each other."""
    with studio(CREDIT) as (address, workspace):
        page = browser.new_page(
            viewport=size, color_scheme=scheme, reduced_motion="reduce"
        )
        page.goto(address)
        page.select_option("#target", "class")
        page.select_option("#positive", "bad")
        page.click("#start")
        page.wait_for_selector("#candidates li")
        act(page, "split", "/", column="checking_status")
        act(page, "split", "/0", column="duration")
        act(page, "split", "/1", column="credit_history")
        other = folder / "other.actions.json"
        other.write_text(workspace.save()["content"])
        act(page, "prune", "/1")
        act(page, "split", "/0", column="duration", threshold=22.5)
        act(page, "split", "/3", column="purpose", values=True)
        page.click("#tab-session")
        page.set_input_files("#panel-session input[type=file]", other)
        page.click("#both-trees")
        page.wait_for_selector(".differences li")
        yield page


def show_two_sessions(browser: Any, folder: Path) -> None:
    """Make the picture of two sessions beside each other."""
    for page in two_sessions(browser, folder, SIZES[0], "light"):
        keep(page, "studio_two_sessions")


def tables(adult: Path | None) -> Iterator[tuple[str, Path, str, Any]]:
    """Yield the tables of screenshots.md: name, file, title, estimator."""
    credit = C45Classifier(min_samples_branch=20)
    yield "credit", CREDIT, "Credit risk: who repays?", credit
    if adult is not None:
        income = CARTClassifier(ccp_alpha=0.0005)
        yield "adult", adult, "Adult: who earns more than 50K?", income


def show_screens(browser: Any, folder: Path, adult: Path | None) -> None:
    """Make the pictures of screenshots.md: both pages in all windows and colours."""
    for name, file, title, tree in tables(adult):
        X, y = rows(file)
        report = make_report(X, y, tree, target_name="class", title=title)
        report.save(folder / f"report_{name}.html")
        report.model.to_html(folder / f"viewer_{name}.html", title=title)
        for kind in ("viewer", "report"):
            for size in SIZES:
                for scheme in ("light", "dark"):
                    path = folder / f"{kind}_{name}.html"
                    page = opened(browser, path, size, scheme)
                    if (kind, name) == ("report", "adult"):
                        rules = page.locator("#rules")
                        rules.evaluate("e => e.scrollIntoView()")
                    keep(page, f"screen_{kind}_{name}_{size['width']}_{scheme}")


def main() -> None:
    """Make all pictures."""
    adult = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    path = next(found for name in BROWSERS if (found := shutil.which(name)))
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        show_viewer(browser, Path(folder))
        show_report(browser, Path(folder))
        show_studio(browser)
        show_two_sessions(browser, Path(folder))
        show_screens(browser, Path(folder), adult)
        browser.close()


if __name__ == "__main__":
    main()
