"""The studio's page in a real browser: a session from a table to verified SQL."""

from __future__ import annotations

import csv
import random

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from programs import IN_BROWSER, opened_browser  # noqa: F401  (a fixture)
from studio_pages import (
    DROP,
    PHONE,
    WIDE,
    n_nodes,
    problems,
    running_studio,  # noqa: F401  (a fixture)
    wait_for_edit,
)

pytestmark = IN_BROWSER
TABS = ("node", "score", "nodes", "case", "export", "script", "session")


@pytest.fixture(scope="module", name="loans")
def loans_table(tmp_path_factory):
    """A table of 300 loans: numbers, categories, missing values."""
    draw = random.Random(7)
    path = tmp_path_factory.mktemp("tables") / "loans.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["age", "income", "housing", "purpose", "repaid"])
        for _ in range(300):
            age, income = draw.randint(19, 70), draw.randint(12, 90)
            housing = draw.choice(["rent", "own", "free"])
            purpose = draw.choice(["car", "home", "school", "travel"])
            good = age > 30 or (income > 50 and housing == "own")
            good = good if draw.random() < 0.9 else not good
            shown = "" if draw.random() < 0.05 else purpose
            rows.writerow([age, income, housing, shown, "yes" if good else "no"])
    return path


def choose_table(page, loans, drop):
    """Load the table, choose the target and start."""
    if drop:
        dropped = page.evaluate_handle(DROP, [loans.name, loans.read_text()])
        page.dispatch_event(".drop", "drop", {"dataTransfer": dropped})
    page.wait_for_selector("#target")


def candidate(page, column):
    page.wait_for_selector(f"li[data-column={column}]")
    return page.locator(f"li[data-column={column}]")


def said(page):
    return page.text_content("#said")


def test_a_session_with_the_mouse(studio, loans):
    page = studio.open()
    choose_table(page, loans, drop=True)
    assert "300 rows, 5 columns" in page.text_content("#setup")
    assert problems(page) == []
    page.select_option("#target", "repaid")
    page.select_option("#positive", "yes")
    page.click("#start")

    # Split by a suggestion.
    split = candidate(page, "age").get_by_role("button", name="Split on age")
    wait_for_edit(page, split.click)
    assert n_nodes(page) == 3
    assert said(page).startswith("Split on age.")

    # Drag the threshold of a number.
    page.click("#node-1")
    candidate(page, "income").locator(".column").click()
    handle = page.locator(".handle")
    handle.wait_for()
    before = float(handle.get_attribute("aria-valuenow"))
    grip, chart = handle.bounding_box(), page.locator(".distribution").bounding_box()
    middle = grip["y"] + grip["height"] / 2
    page.mouse.move(grip["x"] + grip["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(chart["x"] + 0.3 * chart["width"], middle, steps=4)
    page.mouse.up()
    chosen = float(handle.get_attribute("aria-valuenow"))
    assert chosen != before
    page.locator(".preview table").wait_for()
    page.wait_for_selector(f".preview:has-text('income <= {chosen:g}')")
    wait_for_edit(page, lambda: page.click("text=Split here"))
    assert n_nodes(page) == 5
    assert page.evaluate("window.branchwise.tree.records[3].condition").endswith(
        f"{chosen:g}"
    )

    # Merge two values, one dragged into the branch of the other.
    page.click("#node-2")
    candidate(page, "purpose").locator(".column").click()
    page.locator(".chip").first.wait_for()
    assert page.locator(".branch:not(.new)").count() == 4
    page.click("text=Above and below average")
    assert page.locator(".branch:not(.new)").count() == 2
    page.click("text=As suggested")
    assert page.locator(".branch:not(.new)").count() == 4
    car, home = (page.locator(f".chip[data-value={v}]") for v in ("car", "home"))
    start, end = car.bounding_box(), home.bounding_box()
    page.mouse.move(start["x"] + 8, start["y"] + 8)
    page.mouse.down()
    page.mouse.move(end["x"] + 8, end["y"] + 8, steps=4)
    page.mouse.up()
    assert page.locator(".branch:not(.new)").count() == 3
    assert problems(page) == []
    wait_for_edit(page, lambda: page.click("text=Split into 3 branches"))
    assert "car, home" in page.text_content("#cards")

    # Grow the rest: what was split by hand stays.
    page.click("#node-0")
    before = n_nodes(page)
    page.click("#grow-level")
    page.wait_for_selector("#said:has-text('new node')", state="attached")
    assert page.evaluate("window.branchwise.tree.records[3].condition").endswith(
        f"{chosen:g}"
    )
    assert n_nodes(page) > before

    # Prune, undo, redo.
    page.click("#node-2")
    grown = n_nodes(page)
    wait_for_edit(page, lambda: page.click("#prune"))
    assert n_nodes(page) < grown
    wait_for_edit(page, lambda: page.click("#undo"))
    assert n_nodes(page) == grown
    wait_for_edit(page, lambda: page.click("#redo"))
    wait_for_edit(page, lambda: page.click("#undo"))
    page.click("#node-0")
    page.click("#tab-export")
    page.click("[data-export=sql]")
    page.wait_for_selector(".verified:has-text('Verified on')")
    assert "CASE" in page.text_content("#exported pre")
    with page.expect_download() as download:
        page.click("#exported >> text=Download")
    assert "CASE" in download.value.path().read_text()


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def focused(page):
    return page.evaluate("document.activeElement.textContent")


def tab_to(page, what, most=80):
    """Press Tab until something has the focus."""
    for _ in range(most):
        if page.evaluate("w => document.activeElement.matches(w)", what):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {what}")


def test_a_session_with_the_keyboard_alone(studio, loans):
    page = studio.open()
    # From the beginning, so that the browser knows of it when the key is pressed.
    page.on("filechooser", lambda _: None)
    page.wait_for_selector("#file")
    tab_to(page, "#file")
    with page.expect_file_chooser(timeout=10_000) as chooser:
        page.keyboard.press("Space")
    chooser.value.set_files(loans)
    page.wait_for_selector("#target")
    assert page.evaluate("document.activeElement.id") == "target"
    page.keyboard.type("repaid")
    tab_to(page, "#start")
    page.keyboard.press("Enter")
    page.wait_for_selector("li[data-column=age]")

    # Split by a suggestion: c leads to the candidates.
    press(page, "c")
    tab_to(page, "[aria-label='Split on age']")
    wait_for_edit(page, lambda: press(page, "Enter"))
    assert n_nodes(page) == 3

    # Another threshold for a number; the focus is at the node, arrows lead on.
    press(page, "ArrowRight")
    page.wait_for_selector("text=Leaf 1")
    candidate(page, "income")
    press(page, "c")
    tab_to(page, "li[data-column=income] .column")
    press(page, "Enter")
    page.wait_for_selector(".handle")
    tab_to(page, ".handle")
    before = float(page.get_attribute(".handle", "aria-valuenow"))
    press(page, "ArrowRight", "ArrowRight", "PageDown")
    chosen = float(page.get_attribute(".handle", "aria-valuenow"))
    assert chosen != before
    tab_to(page, ".primary")
    wait_for_edit(page, lambda: press(page, "Enter"))
    assert n_nodes(page) == 5

    # A value is moved to another branch by its number.
    press(page, "ArrowDown")
    page.wait_for_selector("text=Leaf 2")
    candidate(page, "purpose")
    press(page, "c")
    tab_to(page, "li[data-column=purpose] .column")
    press(page, "Enter")
    page.wait_for_selector(".chip")
    tab_to(page, ".chip[data-value=school]")
    press(page, "1")
    assert page.locator(".branch:not(.new)").count() == 3
    assert "in branch 1" in said(page)
    tab_to(page, ".primary")
    wait_for_edit(page, lambda: press(page, "Enter"))

    # Grow, prune, undo.
    press(page, "ArrowUp")
    grown = n_nodes(page)
    wait_for_edit(page, lambda: press(page, "Delete"))
    assert n_nodes(page) < grown
    wait_for_edit(page, lambda: press(page, "Control+z"))
    assert n_nodes(page) == grown
    wait_for_edit(page, lambda: press(page, "Control+Shift+Z"))
    wait_for_edit(page, lambda: press(page, "G"))
    wait_for_edit(page, lambda: press(page, "l"))
    assert page.evaluate("window.branchwise.tree.records[1].locked") is True

    # Export.
    tab_to(page, "[role=tab][aria-selected=true]")
    press(page, "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight")
    tab_to(page, "[data-export=sql]")
    press(page, "Enter")
    page.wait_for_selector(".verified:has-text('Verified on')")


def started(studio, loans, window=None, **how):
    """Open the page of a session that has been started."""
    studio.start(loans, "repaid", **how)
    page = studio.open(window)
    page.wait_for_selector(".candidates li")
    return page


def in_node(page, action):
    """Send an action as the page does; the tree follows."""
    return page.evaluate("a => window.branchwise.apply(a)", {"node": "/", **action})


def test_on_a_telephone_all_is_there_and_nothing_is_too_wide(studio, loans):
    window = PHONE | {"color_scheme": "dark", "has_touch": True}
    page = started(studio, loans, window, validation_fraction=0.25)
    in_node(page, {"do": "grow"})
    candidate(page, "purpose").locator(".column").click()
    page.locator(".chip").first.wait_for()
    candidate(page, "income").locator(".column").click()
    page.locator(".handle").wait_for()
    # What opens may have folded parts of its own.
    closed = page.locator("#panel-node details:not([open]) > summary:visible")
    while closed.count():
        closed.first.click()
    page.wait_for_selector(".wide table")
    wide = "document.documentElement.scrollWidth"
    for tab in TABS:
        page.click(f"#tab-{tab}")
        if tab == "export":
            page.click("[data-export=sql]")
            page.wait_for_selector(".verified")
        if tab == "score":
            page.wait_for_selector("#panel-score .mean")
        assert page.evaluate(wide) == 390, tab
        outside = page.eval_on_selector_all(
            f"#panel-{tab} button, #panel-{tab} input, #bar button, #bar input",
            """all => all.filter(e => e.offsetParent && !e.closest('.wide')
              && (e.getBoundingClientRect().right > 391
                  || e.getBoundingClientRect().left < -1)).map(e => e.outerHTML)""",
        )
        assert outside == [], tab


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_any_tab(studio, loans, scheme):
    page = started(studio, loans, WIDE | {"color_scheme": scheme})
    in_node(page, {"do": "grow"})
    in_node(page, {"do": "note", "text": "A note."})
    in_node(page, {"do": "lock", "node": "/1"})
    for column, part in (("purpose", ".chip"), ("income", ".handle")):
        candidate(page, column).locator(".column").click()
        page.locator(part).first.wait_for()
    # What opens may have folded parts of its own.
    closed = page.locator("#panel-node details:not([open]) > summary:visible")
    while closed.count():
        closed.first.click()
    page.wait_for_selector(".wide table")
    for tab in TABS:
        page.click(f"#tab-{tab}")
        if tab == "export":
            page.click("[data-export=sql]")
            page.wait_for_selector(".verified")
        if tab == "score":
            page.wait_for_selector("#panel-score .mean")
        if tab == "case":
            page.locator("#panel-case select").first.select_option(index=1)
            page.wait_for_selector("#panel-case .prediction")
        assert problems(page) == [], tab
    page.click("#help")
    assert problems(page) == []
    page.keyboard.press("Escape")
    page.check("#panel-session input[type=checkbox]")
    page.click("#tab-node")
    page.wait_for_selector("#choose")
    assert problems(page) == []


def test_a_table_is_read_again_with_other_options(studio, tmp_path):
    path = tmp_path / "sums.csv"
    path.write_text("sum;kind\n1,500;a\n2,250;b\nnone;a\n", encoding="utf-8")
    page = studio.open()
    page.set_input_files("#file", path)
    page.click("text=How the file is read")
    assert page.get_by_label("Lines above it").input_value() == "0"
    page.get_by_label("Separator of cells").fill(";")
    page.get_by_label("Decimal mark").select_option("comma")
    page.get_by_label("Missing values").fill("none, n/a")
    assert problems(page) == []
    page.click("#reread")
    page.wait_for_selector("text=is read again")
    kind = page.get_by_label("Kind of sum")
    assert kind.input_value() == "number"
    assert "1.5 to 2.25" in page.text_content("#table")
    page.click("text=How the file is read")
    assert page.get_by_label("Missing values").input_value() == "none, n/a"
    page.get_by_label("Separator of cells").fill("too long")
    page.click("#reread")
    page.wait_for_selector("text=separator must be one character")


def test_a_file_in_another_encoding_is_read_when_it_is_named(studio, tmp_path):
    path = tmp_path / "alt.csv"
    path.write_bytes("größe,art\n1,ä\n2,b\n3,b\n".encode("cp1252"))
    page = studio.open()
    page.set_input_files("#file", path)
    page.wait_for_selector("#setup [role=alert]:not([hidden])")
    page.click("text=How the file is read")
    page.get_by_label("Encoding").fill("cp1252")
    page.click("#reread")
    page.wait_for_selector("text=3 rows, 2 columns")
    assert page.locator("#setup [role=alert]:not([hidden])").count() == 0
    assert "größe" in page.text_content("#table")


def test_errors_are_beside_their_control(studio, loans):
    page = started(studio, loans)
    candidate(page, "age").locator(".column").click()
    page.locator(".exact input").fill("200")
    alert = candidate(page, "age").locator("[role=alert]:visible")
    alert.wait_for()
    assert "threshold" in alert.text_content()
    page.locator(".exact input").fill("40")
    page.wait_for_selector(".preview:has-text('age <= 40')")
    assert candidate(page, "age").locator("[role=alert]:visible").count() == 0


def test_names_and_values_are_text(studio, tmp_path):
    bad = "<img src=x onerror=alert(1)>"
    path = tmp_path / "bad.csv"
    rows = [
        [f"{bad}{at % 3}", at % 2, f"{bad}yes" if at % 3 else "no"] for at in range(60)
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[bad, "number", "<b>target</b>"], *rows])
    studio.start(path, "<b>target</b>")
    page = studio.open()
    page.wait_for_selector(".candidates li")
    in_node(page, {"do": "split", "column": bad})
    page.locator(".candidates .column").first.click()
    page.wait_for_selector(".chip")
    for tab in TABS:
        page.click(f"#tab-{tab}")
        page.wait_for_timeout(50)
    assert page.locator("img, #title b").count() == 0


def test_history_notes_locks_and_other_edits(studio, loans):
    page = started(studio, loans)
    in_node(page, {"do": "split", "column": "age"})
    in_node(page, {"do": "grow", "node": "/0", "levels": 1})
    page.click("#node-1")
    page.click("text=Recipe, prediction, missing values, note")
    page.fill("textarea", "Ask the branch.")
    wait_for_edit(page, lambda: page.click(".asked >> text=Keep"))
    assert "Ask the branch." in page.text_content(".head")
    assert "note: Ask the branch." in page.get_attribute("#node-1", "aria-label")
    page.click("text=Recipe, prediction, missing values, note")
    page.locator(".asked", has_text="Prediction").locator("select").select_option("no")
    wait_for_edit(page, lambda: page.click(".asked >> text=Relabel"))
    page.click("#tab-session")
    steps = page.locator(".history .step")
    assert steps.count() == 5
    wait_for_edit(page, lambda: steps.nth(1).click())
    assert n_nodes(page) == 3
    assert page.get_attribute(".history .step >> nth=1", "aria-current") == "step"
    page.click("#tab-script")
    page.wait_for_selector("#panel-script pre")
    assert "session.split('/', 'age'" in page.text_content("#panel-script pre")


def test_a_session_is_saved_compared_and_opened(studio, loans, tmp_path):
    page = started(studio, loans)
    in_node(page, {"do": "split", "column": "age"})
    page.click("#tab-session")
    with page.expect_download() as download:
        page.click("text=Save the session")
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert saved.name == "loans.actions.json"
    in_node(page, {"do": "grow", "node": "/0", "levels": 1})
    page.set_input_files("#panel-session input[type=file]", saved)
    page.wait_for_selector("#panel-session pre")
    page.click("text=Another table")
    page.set_input_files("#setup .block input[type=file]", saved)
    page.wait_for_selector("#node-2")
    assert n_nodes(page) == 3


@pytest.mark.parametrize("window", [WIDE, PHONE])
def test_two_sessions_are_drawn_beside_each_other(studio, loans, tmp_path, window):
    studio.start(loans, "repaid")
    other = tmp_path / "other.actions.json"
    studio.workspace.apply({"do": "split", "node": "/", "column": "age"})
    studio.workspace.apply({"do": "split", "node": "/0", "column": "housing"})
    other.write_text(studio.workspace.save()["content"])
    studio.workspace.apply({"do": "prune", "node": "/0"})
    page = studio.open(window)
    page.click("#tab-session")
    page.set_input_files("#panel-session input[type=file]", other)
    page.click("#both-trees")
    own, others = (page.locator(".side").nth(at) for at in (0, 1))
    for side in (own, others):
        side.locator(".card.differs").wait_for()
        assert side.locator(".card.differs").count() == 1
        told = side.locator(".card.differs").get_attribute("aria-label")
        assert "; differs: split added: " in told
    boxes = [side.bounding_box() for side in (own, others)]
    beside = boxes[1]["x"] > boxes[0]["x"]
    assert beside == (window is WIDE)
    assert problems(page) == []

    # The other tree by keys alone.
    others.locator("#node-0").focus()
    page.keyboard.press("ArrowRight")
    assert others.locator("#node-1").get_attribute("aria-selected") == "true"
    assert others.locator("#differs").text_content().startswith("split added: ")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    assert others.locator("#differs").text_content().startswith("Below a node that")
    assert own.locator("#differs").text_content().startswith("This node is the same")
    page.locator(".differences button").focus()
    page.keyboard.press("Enter")
    for side in (own, others):
        assert side.locator("#node-1").get_attribute("aria-selected") == "true"
    page.keyboard.press("Escape")
    page.locator(".beside").wait_for(state="detached")
    assert page.evaluate("document.activeElement.id") == "both-trees"


def test_a_case_and_the_rows_of_a_node(studio, loans):
    page = started(studio, loans)
    in_node(page, {"do": "grow"})
    page.click("text=Rows at this node")
    page.locator(".wide >> text=Explain").first.click()
    page.wait_for_selector("#panel-case .result .prediction")
    assert page.evaluate("window.branchwise.state.way.size") > 1
    page.locator("#panel-case .field", has_text="age").locator("input").fill("x")
    alert = page.locator("#panel-case [role=alert]:visible")
    alert.wait_for()
    assert "Column 'age' takes a number" in alert.text_content()
    page.click("#tab-node")
    page.click("text=Worked computation")
    page.wait_for_selector("#panel-node pre")
    page.fill("#query", "income")
    assert "found" in page.text_content("#hits")


def test_the_positive_class_has_its_share_and_lift(studio, loans):
    page = started(studio, loans)
    in_node(page, {"do": "grow"})
    page.click("#node-1")
    assert "yes: 16.7\N{NO-BREAK SPACE}%, lift 0.23" in page.text_content(
        "#panel-node .head"
    )
    page.click("#tab-nodes")
    page.select_option("#panel-nodes select", "positive")
    shares = page.evaluate(
        "[...document.querySelectorAll('#panel-nodes tbody tr')]"
        ".map((row) => parseFloat(row.cells[4].textContent))"
    )
    assert len(shares) > 2
    assert shares == sorted(shares, reverse=True)


def test_teaching(studio, loans):
    page = started(studio, loans)
    page.click("#tab-session")
    page.check("#panel-session input[type=checkbox]")
    page.click("#tab-node")
    page.wait_for_selector("#choose")
    assert page.locator(".candidates .score").count() == 0
    assert "gain" not in page.text_content(".candidates")
    page.locator(".lesson select").select_option("housing")
    page.click("#choose")
    page.wait_for_selector("#reveal:not([disabled])")
    page.click("#reveal")
    page.wait_for_selector(".candidates .score")
    verdict = page.text_content(".lesson")
    assert "The class chose housing" in verdict
    assert "The machine chooses age" in verdict
    assert "machine 100" in verdict


def test_numbers_are_predicted(studio, loans):
    studio.start(loans, "income")
    page = studio.open()
    page.wait_for_selector(".candidates li")
    in_node(page, {"do": "split", "column": "age"})
    assert page.locator("#node-1 .scale").count() == 1
    candidate(page, "housing").locator(".column").click()
    page.wait_for_selector(".chip")
    page.wait_for_selector(".preview table")


@pytest.mark.slow
def test_clicks_in_a_tree_of_10000_nodes(studio, tmp_path):
    draw = random.Random(3)
    path = tmp_path / "long.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["a", "b", "c", "y"])
        for _ in range(16_000):
            rows.writerow([draw.random() for _ in range(3)] + [draw.choice("xyz")])
    studio.start(path, "y", recipe={"algorithm": "cart"})
    page = studio.open()
    page.wait_for_selector(".candidates li")
    in_node(page, {"do": "grow"})
    assert n_nodes(page) >= 10_000
    page.keyboard.press("*")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked():
        found = session.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in found if m["name"] == "TaskDuration")

    for card in page.locator(".card:not(.more)").all():
        before = worked()
        card.click()
        page.wait_for_timeout(300)  # its candidates are there, too
        assert worked() - before < 0.1
