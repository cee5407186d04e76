"""The report in a real browser: on screen, in the dark, on paper, on a telephone."""

from __future__ import annotations

import re

import pytest

from branchwise import C45Classifier, CARTRegressor, datasets
from branchwise.report import make_report
from programs import IN_BROWSER, opened_browser  # noqa: F401  (a fixture)
from viewer_pages import BROKEN_WORDS

pytestmark = IN_BROWSER
USUAL = {"viewport": {"width": 1200, "height": 800}, "reduced_motion": "reduce"}
LOUD = "<img src=https://example.invalid/x onerror=alert(1)>"


@pytest.fixture(scope="module")
def cars():
    table = datasets.load("car")
    tree = C45Classifier()
    return make_report(table.X, table.y, tree, hold_out=0.3, target_name="car")


@pytest.fixture
def show(browser, tmp_path):
    """Open reports; whatever goes wrong in a page fails the test."""
    wrong, contexts = [], []

    def show(report, **options):
        path = tmp_path / "report.html"
        report.save(path)
        context = browser.new_context(**USUAL | options)
        contexts.append(context)
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append("?"), dialog.dismiss()))
        page.on("request", lambda request: _requested(request.url, path, wrong))
        page.goto(path.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    assert wrong == []


def _requested(url, path, wrong):
    known = (path.as_uri(), "about:srcdoc", "data:,")
    if url not in known and not url.startswith("data:image/svg+xml;base64,"):
        wrong.append(url)


def colour(page, selector, name="color"):
    found = page.eval_on_selector(selector, f"e => getComputedStyle(e)['{name}']")
    return [int(part) for part in re.findall(r"\d+", found)[:3]]


def test_all_sections_are_there(show, cars):
    page = show(cars)
    assert page.title() == "car: report on a decision tree"
    headings = page.eval_on_selector_all("h2", "h => h.map(e => e.textContent)")
    links = page.eval_on_selector_all("nav a", "a => a.map(e => e.textContent)")
    assert headings == links
    assert len(headings) == 10
    for link in page.query_selector_all("nav a"):
        assert page.query_selector(link.get_attribute("href")) is not None
    charts = page.locator("svg.chart")
    assert charts.count() == 8
    for at in range(charts.count()):
        box = charts.nth(at).bounding_box()
        assert box["width"] > 300
        assert box["height"] > 60
    accuracy = cars.sections["evaluation"]["scores"]["accuracy"]["mean"]
    # No line ends before the sign.
    assert f"{100 * accuracy:.1f}\N{NO-BREAK SPACE}%" in page.inner_text(".tiles")


def test_charts_keep_within_their_frames(show, cars):
    """Every letter and every mark is inside of its picture."""
    page = show(cars)
    outside = page.evaluate(
        """() => [...document.querySelectorAll("svg.chart")].flatMap(svg => {
             const frame = svg.getBoundingClientRect();
             return [...svg.querySelectorAll("text, rect, circle, path")]
               .map(e => [e.textContent || e.getAttribute("class"),
                          e.getBoundingClientRect()])
               .filter(([, r]) => r.left < frame.left - 1 || r.top < frame.top - 1
                 || r.right > frame.right + 1 || r.bottom > frame.bottom + 1)
               .map(([name]) => svg.querySelector("title").textContent + ": " + name);
           })"""
    )
    assert outside == []


def test_the_tree_can_be_used(show, cars):
    page = show(cars)
    page.locator("iframe.viewer").scroll_into_view_if_needed()
    tree = page.frame_locator("iframe.viewer")
    assert "182 nodes" in tree.locator("#summary").inner_text()
    tree.locator("#node-0").click()
    assert "1,728" in tree.locator("#about").inner_text()
    tree.locator("#query").fill("vgood")
    tree.locator("#query").press("Enter")
    assert re.fullmatch(r"1 of \d+", tree.locator("#hits").inner_text())
    assert tree.locator(".card.match").count() > 0


def test_the_tree_cannot_reach_the_page(show, cars):
    page = show(cars)
    inside = page.frames[1]
    inside.wait_for_url("about:srcdoc")  # a frame is there before its document is
    reached = inside.evaluate(
        "() => { try { return String(parent.document.title) } catch { return '' } }"
    )
    assert reached == ""


def test_details_open_on_paper_and_close_again(show, cars):
    page = show(cars)
    closed = "() => document.querySelectorAll('details:not([open])').length"
    before = page.evaluate(closed)
    assert before > 5
    assert (
        not page.locator("text=The whole computation >> xpath=..")
        .get_by_text("Entropy of all cases", exact=False)
        .is_visible()
    )
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    # All but the worked computation, and what is folded within it.
    worked = page.locator("details.worked, details.worked details")
    assert page.evaluate(closed) == worked.count()
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(closed) == before


def test_on_paper(show, cars):
    page = show(cars, color_scheme="dark")
    page.emulate_media(media="print")
    assert colour(page, "body") == [27, 31, 36]  # dark ink, whatever the screen has
    assert not page.locator("iframe.viewer").is_visible()
    assert not page.locator("nav").is_visible()
    picture = page.locator(".on-paper img")
    assert picture.is_visible()
    assert picture.evaluate("i => i.complete && i.naturalWidth") > 300
    figures = page.locator("#data details tbody td").first
    assert figures.bounding_box()["height"] > 0  # folded, and there all the same
    content = page.pdf(prefer_css_page_size=True)
    assert content.startswith(b"%PDF")
    boxes = re.findall(rb"/MediaBox ?\[([^\]]+)\]", content)
    assert len(set(boxes)) == 2  # the tree has a page across
    # The worked computation is on paper only if it was opened.
    assert not page.locator("details.worked").is_visible()
    page.locator("details.worked").evaluate("details => { details.open = true; }")
    assert colour(page, "#root .branchwise-steps thead th") == [87, 96, 106]
    inside = page.locator("#root .branchwise-steps li").first
    assert inside.bounding_box()["height"] > 0
    with_steps = re.findall(rb"/MediaBox", page.pdf(prefer_css_page_size=True))
    assert len(with_steps) > len(boxes) + 1


def test_in_the_dark(show, cars):
    light, dark = show(cars), show(cars, color_scheme="dark")
    assert sum(colour(light, "body", "backgroundColor")) > 3 * 240
    assert sum(colour(dark, "body", "backgroundColor")) < 3 * 40
    assert sum(colour(dark, "body")) > 3 * 200
    assert sum(colour(dark, "svg.chart text", "fill")) > 3 * 140
    assert sum(colour(dark, "#root .branchwise-steps")) > 3 * 200


def test_on_a_telephone(show, cars):
    page = show(cars, viewport={"width": 360, "height": 740})
    widths = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]  # tables scroll, the page does not
    for chart in page.query_selector_all("svg.chart"):
        assert chart.bounding_box()["width"] > 280
    # A leaf is a block of lines there, and no word of a table is broken.
    leaf = page.locator(".leaves tbody tr").first
    assert leaf.bounding_box()["width"] < 360
    assert leaf.evaluate("e => getComputedStyle(e).display") == "flex"
    for table in page.query_selector_all("table"):
        assert table.evaluate(BROKEN_WORDS) == []


def test_hostile_names_are_inert(show):
    table = {
        LOUD: [LOUD, "</iframe><script>alert(2)</script>"] * 30,
        "</style><script>alert(3)</script>": list(range(60)),
        "n\n\u202e\0": ["x", "y", "z"] * 20,
    }
    report = make_report(
        table,
        [LOUD, "</select>"] * 30,
        title=f"</title>{LOUD}",
        target_name=f"'\"{LOUD}",
        cv=2,
    )
    page = show(report)
    assert page.inner_text("h1") == f"</title>{LOUD}"
    assert page.locator("img").count() == 1
    assert LOUD in page.inner_text("#rules")
    page.wait_for_timeout(200)


def test_numbers(show):
    iris = datasets.load("iris")
    X = {name: iris.X[name] for name in ("sepallength", "petallength")}
    tree = CARTRegressor(max_depth=2)
    report = make_report(X, iris.X["petalwidth"], tree, hold_out=0.3)
    page = show(report)
    assert page.locator("svg.chart").count() == 7
    assert "Residuals" in page.inner_text("#evaluation")
    points = page.locator("#evaluation svg.chart circle")
    assert points.count() == report.sections["evaluation"]["residuals"]["shown"]
