"""The HTML page in a real browser: what it draws, says and predicts."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pytest

from branchwise import (
    C45Classifier,
    CARTClassifier,
    ID3Classifier,
    datasets,
    fit_tree,
)
from branchwise.data.table_schema import Column, Schema
from branchwise.export.base import model_predictions, sample_of_rows
from branchwise.export.plan import make_plan
from branchwise.export.verification import probe_rows
from branchwise.model import Model
from branchwise.recipe import CART, Recipe
from branchwise.render import view as html
from branchwise.tree.tree import Tree
from mixed_trees import ESTIMATORS, random_model, random_models
from programs import IN_BROWSER, opened_browser  # noqa: F401  (a fixture)
from selection import first_fast
from tree_builder import TreeBuilder
from viewer_pages import opened_tab, page_opener  # noqa: F401  (fixtures)

pytestmark = IN_BROWSER


@pytest.fixture(scope="module")
def weather():
    table = datasets.load("weather")
    return fit_tree(table.X, table.y, target_name="play")


@pytest.fixture(scope="module")
def cars():
    table = datasets.load("car")
    return C45Classifier().fit(table.X, table.y).model_


def shown(page):
    return [
        int(n)
        for n in page.eval_on_selector_all(".card", "c => c.map(e => e.dataset.item)")
    ]


def selected(page):
    return int(page.get_attribute(".card[aria-selected=true]", "data-item"))


def wait_until_drawn(page):
    frame = "requestAnimationFrame"
    page.evaluate(f"new Promise(done => {frame}(() => {frame}(done)))")


def wait_until(page, true):
    """Ask again and again from outside: the page forbids scripts of others."""
    for _ in range(200):
        if true():
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{true} did not come true")


def labelled(page, text):
    return page.locator(".field", has_text=text).locator("input, select")


def test_a_small_tree_is_drawn_whole(show, weather):
    page = show(weather)
    assert page.title() == "play: decision tree"
    assert shown(page) == [0, 1, 2, 4, 5, 3, 6, 7]  # a parent, then its branches
    assert page.locator("#links path").count() == 7
    root = page.locator("#node-0")
    assert root.get_attribute("aria-label") == (
        "split on outlook, 3 branches; prediction so far yes, 9 of 14 cases, 64.3 %"
    )
    leaf = page.locator("#node-7")
    assert leaf.get_attribute("aria-label") == (
        "humidity ≥ 81: prediction no, 3 of 3 cases, 100 %"
    )
    assert leaf.get_attribute("aria-level") == "3"
    assert leaf.get_attribute("aria-expanded") is None
    assert page.locator("#summary").text_content() == (
        "ID3 tree · 8 nodes · 5 leaves · depth 2 · 14 cases"
    )
    widths = page.eval_on_selector_all(
        "#links path", "paths => paths.map(p => Number(p.getAttribute('stroke-width')))"
    )
    assert max(widths) == pytest.approx(18 * 5 / 14, abs=0.01)


def test_a_click_tells_about_a_node(show, weather):
    page = show(weather)
    page.click("#node-3")
    about = page.locator("#about").inner_text()
    assert "Entropy 0.971 before, 0 after: gain 0.971 bits." in about
    assert "outlook = sunny" in about
    page.click("#node-7")
    about = page.locator("#about").inner_text()
    assert "humidity ≥ 81" in about
    assert page.locator("#path").inner_text().split("\n")[-1] == "no"
    page.click("#path [data-goto='3']")
    assert selected(page) == 3


def test_branches_open_and_close(show, weather):
    page = show(weather)
    page.click("#node-2 .knob")
    assert shown(page) == [0, 1, 2, 3, 6, 7]
    assert page.get_attribute("#node-2", "aria-expanded") == "false"
    assert page.locator("#node-2 .knob").text_content() == "+2"
    page.dblclick("#node-2 .title")
    assert shown(page) == [0, 1, 2, 4, 5, 3, 6, 7]
    page.select_option("#depth", "1")
    assert shown(page) == [0, 1, 2, 3]
    page.select_option("#depth", label="all")
    assert len(shown(page)) == 8


def test_keys_lead_through_the_tree(show, weather):
    page = show(weather)
    page.focus("#node-0")
    ways = [
        ("ArrowRight", 1),
        ("ArrowDown", 2),
        ("ArrowRight", 4),
        ("ArrowDown", 5),
        ("ArrowDown", 6),  # a cousin on the same level
        ("ArrowUp", 5),
        ("ArrowLeft", 2),
        ("Home", 0),
        ("ArrowLeft", 0),
    ]
    for key, node in ways:
        page.keyboard.press(key)
        assert selected(page) == node, key
        assert page.evaluate("document.activeElement.id") == f"node-{node}"
    page.keyboard.press("Enter")
    assert shown(page) == [0]
    page.keyboard.press("Space")
    assert len(shown(page)) == 8
    assert page.locator("[tabindex='0'].card").count() == 1
    page.keyboard.press("r")  # now the tree grows down, and so do the keys
    page.focus("#node-0")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert selected(page) == 2
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"


def test_search_goes_from_match_to_match(show, cars):
    page = show(cars)
    page.fill("#query", "vgood")
    wanted = {
        int(n)
        for n in np.flatnonzero(cars.tree.is_leaf & (cars.tree.label == 3)).tolist()
    }
    assert page.locator("#hits").text_content() == f"{len(wanted)} found"
    seen = []
    for _ in range(3):
        page.keyboard.press("Enter")
        seen.append(selected(page))
    page.keyboard.press("Shift+Enter")
    assert selected(page) == seen[1]
    assert set(seen) < wanted
    assert page.locator(".card.match").count() >= 1
    page.fill("#query", "#100")
    page.keyboard.press("Enter")
    assert selected(page) == 100
    assert page.locator("#node-100").is_visible()
    page.fill("#query", "lug_boot")
    asked = int((cars.tree.column == cars.schema.names.index("lug_boot")).sum())
    assert page.locator("#hits").text_content() == f"{asked} found"
    page.fill("#query", "nothing like it")
    assert page.locator("#hits").text_content() == "no match"


def test_zoom_pan_and_fit(show, cars):
    page = show(cars)
    scale = page.locator("#scale")
    first = scale.text_content()
    page.mouse.move(400, 400)
    page.mouse.wheel(0, -300)
    wait_until(page, lambda: scale.text_content() != first)
    before = page.locator("#node-0").bounding_box()
    page.mouse.move(500, 640)
    page.mouse.down()
    page.mouse.move(620, 580, steps=3)
    page.mouse.up()
    wait_until_drawn(page)
    after = page.locator("#node-0").bounding_box()
    assert after["x"] - before["x"] == pytest.approx(120, abs=1)
    assert after["y"] - before["y"] == pytest.approx(-60, abs=1)
    page.click("#fit")
    wait_until_drawn(page)
    stage = page.locator("#stage").bounding_box()
    root = page.locator("#node-0").bounding_box()
    assert root["x"] >= stage["x"]
    page.click("#scale")
    wait_until_drawn(page)
    assert scale.text_content() == "100 %"


def test_a_case_is_typed_and_watched(show, weather):
    page = show(weather)
    page.click("#tab-case")
    labelled(page, "outlook").select_option(label="sunny")
    labelled(page, "humidity").fill("80")
    assert page.locator("#result .prediction").inner_text() == "yes"
    assert page.locator(".card.arrived").get_attribute("id") == "node-6"
    assert page.locator("#links path.on-way").count() == 2
    labelled(page, "humidity").fill("80.1")
    assert page.locator("#result .prediction").inner_text() == "no"
    labelled(page, "humidity").fill("")
    assert page.locator(".card.arrived").get_attribute("id") == "node-3"
    assert "humidity is missing: stop here" in page.locator("#result").inner_text()
    labelled(page, "outlook").select_option(label="another value")
    assert page.locator(".card.arrived").get_attribute("id") == "node-0"
    page.click("#clear")
    assert page.locator(".card.arrived").count() == 0
    page.click("#node-5")
    page.click("#fill")
    assert page.locator(".card.arrived").get_attribute("id") == "node-5"


def test_what_each_column_contributed(show, weather):
    page = show(weather)
    page.keyboard.press("t")
    labelled(page, "outlook").select_option(label="sunny")
    labelled(page, "humidity").fill("70")
    row = {"outlook": "sunny", "humidity": 70.0, "temperature": None, "windy": None}
    found = weather.shap(row).of_class("yes")
    text = " ".join(page.inner_text(".contributions").split())
    base = f"{100 * float(found.base_values):.1f} %"
    assert f"probability of yes: {base} without any column, 100 % with all" in text
    for name, value in zip(found.columns, found.values[0].tolist(), strict=True):
        if abs(value) > 1e-9:
            sign = "+" if value > 0 else "\N{MINUS SIGN}"
            assert f"{name} {sign}{100 * abs(value):.3g} %" in text
    bars = page.locator(".contribution i")
    assert bars.count() == np.count_nonzero(np.abs(found.values) > 1e-9)
    assert page.locator(".contribution .less").count() == (found.values < -1e-9).sum()


def test_a_divided_case(show):
    table = datasets.load("house_votes")
    model = C45Classifier().fit(table.X, table.y).model_
    page = show(model)
    page.click("#tab-case")
    labelled(page, "physician-fee-freeze").select_option(label="y")
    result = page.locator("#result").inner_text()
    assert "The case is divided: it arrives at 5 nodes" in result
    assert "go down every branch" in result
    assert page.evaluate("branchwise.state.shares.size") == 5
    assert page.locator(".card.arrived").count() >= 2


def test_a_model_that_refuses_missing_values(show):
    table = datasets.load("tennis")
    model = ID3Classifier(missing="error", unseen="error").fit(table.X, table.y).model_
    page = show(model)
    page.click("#tab-case")
    labelled(page, "outlook").select_option(label="rainy")
    assert "takes no missing values" in page.locator(".refused").inner_text()


def test_light_dark_and_the_system(show, weather):
    page = show(weather, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(18, 21, 27)"
    page.click("#theme")
    assert page.evaluate(ground) == "rgb(244, 245, 247)"
    # A change that is taken back before the next frame is none to the page.
    page.emulate_media(color_scheme="light")
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("html[data-theme=dark]", state="attached")


def test_a_narrow_screen_has_the_panel_below(show, weather):
    page = show(weather, viewport={"width": 390, "height": 800})
    stage = page.locator("#stage").bounding_box()
    panel = page.locator("#panel").bounding_box()
    assert panel["y"] >= stage["y"] + stage["height"]
    assert stage["width"] == 390
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_whole_tree_goes_on_paper(show, cars):
    page = show(cars, viewport={"width": 500, "height": 400}, color_scheme="dark")
    page.evaluate("branchwise.setDepth(9)")
    assert len(shown(page)) < len(cars.tree)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(shown(page)) == len(cars.tree)
    assert page.get_attribute("html", "data-theme") == "light"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert len(shown(page)) < len(cars.tree)
    assert page.pdf()[:5] == b"%PDF-"


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--",
    "]]>{{data}}{{script}}",
    "\u05d0\u05d1\u05d2 \u202e evil",
    "line\nbreak\u2028end",
    "a,b'\"",
    "x" * 400,
    "&lt;b&gt;",
]


def test_hostile_names_do_nothing(show):
    rng = np.random.default_rng(3)
    X = {name: rng.choice(HOSTILE, 300).tolist() for name in HOSTILE[:4]}
    y = rng.choice(HOSTILE, 300).tolist()
    model = ID3Classifier(max_depth=2).fit(X, y).model_
    page = show(model, title=HOSTILE[0])
    assert page.title() == HOSTILE[0]
    page.click("#node-0")
    page.fill("#query", "<img")
    page.keyboard.press("Enter")
    page.click("#tab-case")
    page.select_option("#case select >> nth=0", label=HOSTILE[1])
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.locator("#heading h1 bdi").inner_text() == HOSTILE[0]
    names = page.eval_on_selector_all(".card bdi", "e => e.map(b => b.textContent)")
    assert any("<img" in name for name in names)


def predicts_as_the_model(page, model, n_rows):
    """Compare the predictions for rows made to break them, bit for bit."""
    plan = make_plan(model.schema, model.tree, model.recipe)
    rows = probe_rows(plan, n_rows)
    sample = sample_of_rows(rows, model.schema, plan)
    coded = [None] * len(model.schema.columns)
    for at in model.tree.used_columns:
        column, cells = model.schema.columns[at], sample.data.data[at].tolist()
        if column.is_numeric:
            coded[at] = [None if cell != cell else cell for cell in cells]
        else:
            special = {column.missing_code: None, column.unseen_code: -1}
            coded[at] = [special.get(cell, cell) for cell in cells]
    by_row = [
        [cells and cells[i] for cells in coded] if any(coded) else [None] * len(coded)
        for i in range(len(rows))
    ]
    said = page.evaluate(
        "rows => rows.map(row => [branchwise.refusal(row), branchwise.decide(row)])",
        by_row,
    )
    wanted = model_predictions(model.schema, model.tree, model.recipe, sample)
    for (refused, got), expected in zip(said, wanted, strict=True):
        assert (refused is not None) == (expected is None)
        if expected is None:
            continue
        label, probabilities = expected
        if model.tree.is_regression:
            assert got["number"] == label
        else:
            assert model.schema.classes[got["label"]] == label
            assert got["probabilities"] == list(probabilities)


def speaks_as_the_model(page, model):
    """Compare what the page works out with what the view and the rules say."""
    nodes = model.view()["nodes"]
    every = list(range(1, len(model.tree)))
    for name, function in (("branch", "branchOf"), ("edge", "edgeOf")):
        call = f"nodes => nodes.map(n => branchwise.{function}(n))"
        assert page.evaluate(call, every) == nodes[name][1:]
    rules = {rule.node: str(rule) for rule in model.rules()}
    call = "nodes => nodes.map(n => branchwise.ruleOf(n))"
    assert page.evaluate(call, list(rules)) == list(rules.values())
    tree = page.evaluate(
        "({parent: [...branchwise.tree.parent], depth: [...branchwise.tree.depth]})"
    )
    assert tree == {"parent": nodes["parent"], "depth": nodes["depth"]}
    impurities = page.evaluate(
        "[...branchwise.tree.parent].map((_, n) => branchwise.impurityOf(n))"
    )
    assert impurities == pytest.approx(nodes["impurity"], rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("kind", first_fast(range(len(ESTIMATORS)), 4))
def test_the_page_predicts_and_speaks_as_the_model_does(show, kind):
    model = random_model(kind, seed=100 + kind)
    page = show(model)
    predicts_as_the_model(page, model, 400)
    speaks_as_the_model(page, model)


@pytest.mark.slow
def test_many_pages_predict_as_their_models_do(show):
    for model in random_models(200, seed=1000):
        page = show(model)
        predicts_as_the_model(page, model, 500)


def test_an_example_leads_to_its_node(show, cars):
    page = show(cars)
    leaves = np.flatnonzero(cars.tree.is_leaf).tolist()
    call = "n => branchwise.arrivalsOf(branchwise.exampleOf(n))[0].node"
    ends = page.evaluate(f"leaves => leaves.map({call})", leaves)
    assert ends == leaves


def chain(depth):
    """A tree of one number after the other, each cut off: very deep."""
    schema = Schema((Column("x", "numeric"),), ("no", "yes"))
    n = 2 * depth + 1
    inner = np.zeros(n, dtype=bool)
    inner[0] = True
    inner[2::2] = True
    inner[n - 1] = False
    cut = np.full(n, np.nan)
    cut[inner] = np.arange(depth)
    left = np.arange(n) % 2 == 1
    weights = np.empty((n, 2))
    rest = np.concatenate([[depth + 1], np.repeat(np.arange(depth, 0, -1), 2)])
    weights[:, 0] = np.where(left, 1.0, rest)
    weights[:, 1] = np.where(left, 0.0, 1.0)
    tree = Tree(
        np.where(inner, 0, -1),
        cut,
        np.where(inner, 2, 0),
        np.full(n, -1),
        np.full(n, -1),
        np.concatenate([[0], np.ones(n - 1, dtype=int)]),
        np.tile([0, 1], depth),
        weights,
        weights.sum(axis=1),
    )
    return Model(schema, tree, Recipe())


@pytest.mark.parametrize(
    "depth", [10_000, pytest.param(100_000, marks=pytest.mark.slow)]
)
def test_a_very_deep_tree(show, depth):
    model = chain(depth)
    page = show(model)
    assert len(shown(page)) < 20
    said = page.evaluate("x => branchwise.decide([x])", depth - 1.5)
    assert said["arrivals"][0]["node"] == model.apply([{"x": depth - 1.5}])[0]
    page.click("#tab-case")
    labelled(page, "x").fill(str(depth - 1.5))
    end = said["arrivals"][0]["node"]
    page.wait_for_selector(f"#node-{end}.arrived")
    assert page.locator(f"#node-{end}").is_visible()
    assert len(shown(page)) < 60
    page.focus(f"#node-{end}")
    page.keyboard.press("ArrowLeft")
    assert selected(page) == model.tree.parent[end]
    page.keyboard.press("Home")
    assert page.locator("#node-0").is_visible()


def test_a_large_tree_draws_only_what_is_seen(show):
    rng = np.random.default_rng(0)
    n = 20_000
    X = {"a": rng.normal(size=n), "b": rng.normal(size=n)}
    model = CARTClassifier().fit(X, rng.choice(["yes", "no"], n)).model_
    assert len(model.tree) > 10_000
    page = show(model)
    assert 5 < len(shown(page)) < 100
    page.click("#tab-case")
    page.select_option("#depth", label="all")
    assert 4 <= len(shown(page)) < 500
    last = len(model.tree) - 1
    page.fill("#query", f"#{last}")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#node-{last}")
    assert page.locator(f"#node-{last}").is_visible()


def test_wide_nodes_are_shown_in_pages(show):
    schema = Schema(
        (Column("city", "categorical", tuple(f"c{i:04}" for i in range(5000))),),
        ("no", "yes"),
    )
    builder = TreeBuilder(schema, weights=[5000, 2500])
    for i in range(5000):
        builder.child(0, "city", values=[f"c{i:04}"], weights=[1, i % 2])
    page = show(Model(schema, builder.build(), Recipe()))
    assert page.evaluate("branchwise.state.items.ids.length") == 12
    page.evaluate("branchwise.select(-1)")
    assert "4,990 more" in page.locator(".more").inner_text()
    page.click(".more")
    assert page.evaluate("branchwise.state.items.ids.length") == 112
    assert selected(page) == 11
    page.fill("#query", "c4321")
    page.keyboard.press("Enter")
    assert page.locator("#node-4322").is_visible()


def test_many_classes_share_a_colour(show):
    rng = np.random.default_rng(0)
    y = rng.choice([f"class {i}" for i in range(40)], 600)
    model = (
        ID3Classifier(max_depth=1).fit({"k": rng.choice(list("abc"), 600)}, y).model_
    )
    page = show(model)
    assert page.locator("#legend .key").count() == 10
    assert "31 others" in page.locator("#legend").inner_text()
    assert page.locator("#about tbody tr").count() >= 12


@pytest.mark.parametrize("n_classes", [2, 10, 13])
def test_classes_have_the_colours_of_the_pictures(show, n_classes):
    rng = np.random.default_rng(0)
    y = rng.choice([f"class {i:02}" for i in range(n_classes)], 400)
    model = ID3Classifier(max_depth=1).fit({"k": list("ab") * 200}, y).model_
    page = show(model)
    keys = page.eval_on_selector_all(
        "#legend .key",
        "all => all.map(e => [getComputedStyle(e.querySelector('.swatch'))"
        ".backgroundColor, e.textContent])",
    )
    picture = model.to_svg()
    entries = re.findall(
        r'<rect class="c(\d)"[^>]*/><text class="s m"[^>]*>([^<]+)', picture
    )
    fills = dict(re.findall(r"\.c(\d)\{fill:(#\w+)\}", picture.partition("@media")[0]))
    pictured = [(rgb(fills[code]), name) for code, name in entries]
    assert [tuple(key) for key in keys] == pictured
    assert len({colour for colour, _ in pictured}) == min(n_classes, 10)


def rgb(colour):
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"


def test_the_first_view_fits_a_window_that_gets_its_size_late(show, weather):
    page = show(weather, viewport={"width": 1100, "height": 60})
    page.set_viewport_size({"width": 1100, "height": 700})
    page.wait_for_selector("#node-7")

    def box(of):
        return page.locator(of).bounding_box()

    def root_is_in_the_middle():
        stage, root = box("#stage"), box("#node-0")
        middle = (root["y"] + root["height"] / 2 - stage["y"]) / stage["height"]
        return stage["height"] > 300 and abs(middle - 0.5) < 0.15

    wait_until(page, root_is_in_the_middle)
    # Who has moved stays where they are.
    at_first, tall = box("#node-0"), box("#stage")["height"]
    page.mouse.move(300, 300)
    page.mouse.wheel(0, -240)
    wait_until(page, lambda: box("#node-0")["width"] > at_first["width"])
    wait_until_drawn(page)
    before = box("#node-0")
    page.set_viewport_size({"width": 1100, "height": 500})
    wait_until(page, lambda: box("#stage")["height"] < tall)
    wait_until_drawn(page)
    assert box("#node-0") == before


def test_candidates_are_ranked_where_a_view_has_them(show, weather):
    view = weather.view()
    view["candidates"] = {
        "0": [
            {"column": "windy", "score": 0.048, "chosen": False, "note": None},
            {"column": "outlook", "score": 0.247, "chosen": True, "note": "best"},
        ]
    }
    page = show(html.page(view, str(weather)))
    table = page.locator("section.block", has_text="Candidates").locator("tbody")
    assert table.inner_text().split() == [
        "outlook",
        "✓",
        "best",
        "0.247",
        "windy",
        "0.048",
    ]


def test_a_notebook_shows_it_in_a_frame(show, weather):
    page = show(f"<!doctype html><body>{weather._repr_html_()}</body>")
    frame = page.frame_locator("iframe")
    frame.locator("#node-7").click()
    assert "humidity ≥ 81" in frame.locator("#about").inner_text()


def test_a_notebook_says_that_a_large_tree_goes_on(show):
    rng = np.random.default_rng(0)
    X = {"a": rng.normal(size=6000), "b": rng.normal(size=6000)}
    model = fit_tree(X, rng.choice(["yes", "no"], 6000))
    frame = show(model._repr_html_()).frame_locator("iframe")
    banner = frame.locator("#banner").inner_text()
    assert f"first levels of a tree of {len(model.tree):,} nodes" in banner
    assert frame.locator("#tab-case").is_hidden()  # cases would stop too early


def test_a_tree_of_one_leaf(show):
    page = show(fit_tree({"a": ["x", "y"]}, ["yes", "yes"]))
    assert shown(page) == [0]
    page.click("#tab-case")
    assert "has no split" in page.locator("#case").inner_text()


def test_without_scripts_there_is_text(show, weather):
    page = show(weather, java_script_enabled=False)
    assert "humidity >= 81: no (3)" in page.locator("noscript").inner_text()


def test_dates_are_typed_and_shown(show):
    days = [dt.date(2024, 1, 1) + dt.timedelta(5 * at) for at in range(40)]
    start = dt.datetime(2024, 1, 1, 7)
    times = [start + dt.timedelta(minutes=30 * at) for at in range(40)]
    y = [*["early"] * 14, *["middle"] * 13, *["late"] * 13]
    zoned = [time.replace(tzinfo=dt.UTC) for time in times]
    for table in ({"t": times}, {"t": zoned}, {"d": days}):
        model = fit_tree(table, y, CART)
        page = show(model)
        page.click("#tab-case")
        name = next(iter(table))
        (field,) = page.locator(".field input").all()
        for at in range(0, 40, 3):
            field.fill(str(table[name][at]))
            assert page.text_content("#result .prediction") == y[at]
        for node, condition in enumerate(model.view()["nodes"]["branch"][1:], 1):
            assert condition in page.get_attribute(f"#node-{node}", "aria-label")
        page.click("#node-1")
        page.click("#tab-case")
        page.click("#fill")
        assert field.input_value().startswith("2024-")
        assert page.text_content("#result .prediction") == "early"
        field.fill("2024-02-30")
        assert page.text_content("#result") == "That is no number, or no date."
