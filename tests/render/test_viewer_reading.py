"""What readers meet first in a page: sizes, words, keys, colours, saved pictures."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from branchwise import CARTClassifier, CARTRegressor, ID3Classifier, fit_tree
from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.table_schema import Column, Schema
from branchwise.model import Model
from branchwise.recipe import Recipe
from programs import IN_BROWSER, opened_browser  # noqa: F401  (a fixture)
from viewer_pages import (
    BROKEN_WORDS,
    opened_tab,  # noqa: F401  (a fixture)
    page_opener,  # noqa: F401  (a fixture)
)

pytestmark = IN_BROWSER
SIZES = ((1440, 900), (1024, 768), (390, 844))
#: Texts of cards that are cut off.
CUT = """
  () => [...document.querySelectorAll(".card .title, .card .line")]
    .filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)
"""


@pytest.fixture(scope="module")
def loans():
    """A tree of long names: four values at the root, lists of values below."""
    rng = np.random.default_rng(1)
    n = 32_561
    marital = ["Married-civ-spouse", "Never-married", "Divorced", "Widowed"]
    school = ["Bachelors", "Doctorate", "Masters", "Prof-school", "HS-grad", "11th"]
    X = {
        "marital-status": rng.choice(marital, n, p=[0.5, 0.3, 0.15, 0.05]),
        "education": rng.choice(school, n),
        "hours-per-week": rng.integers(10, 80, n),
    }
    rich = (X["marital-status"] == "Married-civ-spouse") & np.isin(
        X["education"], school[:4]
    )
    rich &= X["hours-per-week"] > 20
    noise = rng.random(n) < 0.1
    y = np.where(rich ^ noise, ">50K", "mixed_unk_fixation")
    return CARTClassifier(max_depth=4, ccp_alpha=0.0005).fit(X, y).model_


def box(page, selector):
    return page.locator(selector).bounding_box()


def inside(page, selector, outer):
    """Whether all such elements are within another, with a pixel to spare."""
    return page.evaluate(
        """([selector, outer]) => {
          const whole = document.querySelector(outer).getBoundingClientRect();
          return [...document.querySelectorAll(selector)].every(e => {
            const part = e.getBoundingClientRect();
            return part.left >= whole.left - 1 && part.right <= whole.right + 1
              && part.top >= whole.top - 1 && part.bottom <= whole.bottom + 1;
          });
        }""",
        [selector, outer],
    )


def test_it_opens_fitted_and_in_letters_that_can_be_read(show, loans):
    page = show(loans, viewport={"width": 390, "height": 844})
    # An outline: a row for each card, in one column.
    tops = page.eval_on_selector_all(
        ".card", "all => all.map(e => e.getBoundingClientRect().top)"
    )
    assert len(tops) >= 5
    assert tops == sorted(tops)
    assert min(np.diff(tops)) > 60
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.reload()
        assert page.locator(".card").count() >= 3
        assert inside(page, ".card", "#stage")
        assert inside(page, ".edge", "#stage")
        assert inside(page, "#tools *:not(.menu, .menu *)", "#bar")
        assert float(page.inner_text("#scale").split()[0]) >= 86
        assert page.evaluate("document.documentElement.scrollWidth") == width
        # Cards are as wide as their words, and the legend is below the drawing.
        assert page.evaluate(CUT) == []
        stage, legend = box(page, "#stage"), box(page, "#legend")
        assert legend["y"] >= stage["y"] + stage["height"] - 1
        assert page.eval_on_selector("#about", BROKEN_WORDS) == []


def test_words_of_cards_and_of_the_panel(show, loans):
    page = show(loans)
    root = page.locator("#node-0 .line").inner_text()
    share = round(100 * loans.tree.weights[0].max() / loans.tree.weights[0].sum())
    # No line ends before the sign.
    assert root == f"{share}\N{NO-BREAK SPACE}% mixed_unk_fixation · 32,561"
    # Keys lead through the tree without a click or a Tab before.
    page.keyboard.press("ArrowRight")
    assert page.locator("#node-1").get_attribute("aria-selected") == "true"
    page.keyboard.press("ArrowLeft")
    for _ in range(2):  # below are lists of values
        page.keyboard.press("ArrowRight")
        assert page.eval_on_selector("#about", BROKEN_WORDS) == []
    # Leaves have a tint of their class, splits have none.
    ground = "e => getComputedStyle(e).backgroundColor"
    page.evaluate("branchwise.setDepth(9)")
    leaves = page.eval_on_selector_all(".card.leaf", f"all => all.map({ground})")
    splits = page.eval_on_selector_all(".card.split", f"all => all.map({ground})")
    assert len(set(leaves)) == 2
    assert set(splits) == {"rgb(255, 255, 255)"}
    # The share of one class on all cards, and back.
    page.click("#legend >> text=>50K")
    assert ">50K · 32,561" in page.locator("#node-0 .line").inner_text()
    page.click("#legend >> text=>50K")
    assert page.locator("#node-0 .line").inner_text() == root


def test_steps_say_what_the_case_has(show, loans):
    page = show(loans)
    page.keyboard.press("t")
    case = {"marital-status": "Married-civ-spouse", "education": "Doctorate"}
    for name, value in case.items():
        field = page.locator(".field", has_text=name).locator("select")
        field.select_option(label=value)
    page.locator(".field", has_text="hours-per-week").locator("input").fill("25")
    steps = page.locator(".steps li").all_inner_texts()
    assert steps[0] == "marital-status = Married-civ-spouse"
    assert steps[1] == "education = Doctorate: not in {11th, HS-grad}"
    # The number of a step stands at its first line; a button's baseline is the last.
    aligned = "all => all.map(e => getComputedStyle(e).verticalAlign)"
    assert set(page.eval_on_selector_all(".steps .link", aligned)) == {"top"}
    assert inside(page, ".card.on-way", "#stage")
    page.click("#node-0")
    # The panel can be hidden.
    wide = box(page, "#stage")["width"]
    page.keyboard.press("p")
    assert box(page, "#stage")["width"] > wide + 300
    assert page.locator("#panel").is_hidden()
    page.click("#side")
    assert page.locator("#panel").is_visible()


HOSTILE = "<img src=x onerror=alert(1)> & \"'"


def saved(page, form):
    page.keyboard.press("s")
    with page.expect_download() as download:
        page.click(f"#save-{form}")
    return download.value


def test_the_picture_is_saved_as_it_is(show, tmp_path):
    X = {HOSTILE: ["a", "b", "c", "a"], "n": [1, 2, 3, 4]}
    model = ID3Classifier().fit(X, [HOSTILE, "no", "yes", "no"]).model_
    page = show(model, title="Which <b>?")
    download = saved(page, "svg")
    assert download.suggested_filename == "Which-b.svg"
    download.save_as(tmp_path / "tree.svg")
    picture = ET.parse(tmp_path / "tree.svg").getroot()
    tags = {element.tag.partition("}")[2] for element in picture.iter()}
    assert tags == {"svg", "rect", "path", "text"}
    texts = [element.text for element in picture.iter() if element.text]
    assert f"{HOSTILE}?" in texts
    assert "50 % no · 4" in texts
    assert "Which <b>?" in texts
    for line in page.locator(".card .line").all_inner_texts():
        assert line.replace("\N{NO-BREAK SPACE}", " ") in texts
    download = saved(page, "png")
    download.save_as(tmp_path / "tree.png")
    start = (tmp_path / "tree.png").read_bytes()[:24]
    assert start[:8] == b"\x89PNG\r\n\x1a\n"
    width = int.from_bytes(start[16:20], "big")
    assert width == 2 * float(picture.get("width"))
    # Where nothing may be saved there is no menu: in frames.
    page = show(f"<!doctype html><body>{model._repr_html_()}</body>")
    assert page.frame_locator("iframe").locator("#save").is_hidden()


def test_leaves_of_numbers_are_tinted_by_their_mean(show):
    x = np.arange(40.0)
    model = CARTRegressor(max_depth=2).fit({"x": x}, 1000 * x**2).model_
    page = show(model)
    tints = page.eval_on_selector_all(
        ".card.leaf",
        "all => all.map(e => parseInt(e.style.getPropertyValue('--tint')))",
    )
    assert tints == sorted(tints)
    assert tints[-1] > tints[0] + 10
    assert "·" in page.locator("#node-0 .line").inner_text()
    about = page.inner_text("#about")
    assert ".000" not in about  # no decimals of large variances


def test_units_of_columns_and_of_the_target(show):
    rate = Column("rate", "numeric", number_format=NumberFormat(percent=True))
    amount = Column("amount", "numeric", number_format=NumberFormat(currency="€"))
    table = {"rate": [0.01, 0.02, 0.0439, 0.07], "amount": [5.0, 9.0, 5.0, 9.0]}
    recipe = Recipe("CART", "variance", branching="two-way")
    tree = fit_tree(table, [0.1, 0.2, 0.3, 0.4], recipe).tree
    columns, how = (rate, amount), NumberFormat(percent=True)
    model = Model(Schema(columns, (), "gain", target_format=how), tree, recipe)
    page = show(model)
    edge = page.locator(".edge").first.inner_text()
    assert edge.replace("\N{NO-BREAK SPACE}", " ") == "≤ 3.195 %"
    legend = page.inner_text("#legend").replace("\N{NO-BREAK SPACE}", " ")
    assert legend.strip() == "mean ± deviation, from 10 % to 40 %"
    assert "standard deviation 11.2 %" in page.locator("#node-0").get_attribute(
        "aria-label"
    )
    page.click("#tab-case")
    assert page.locator(".field", has_text="rate (%)").count() == 1
    page.locator(".field input").first.fill("4.39")
    said = page.inner_text("#result").replace("\N{NO-BREAK SPACE}", " ")
    assert "rate = 4.39 %" in said
    assert "30 %" in said
    page.click("#clear")
    page.click("#fill")
    assert page.locator(".field input").first.input_value() == "5.695"
