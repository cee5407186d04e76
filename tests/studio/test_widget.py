"""The studio in a notebook: messages of the widget, and its page in a real browser."""

from __future__ import annotations

import re
import sys
import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("anywidget")

import branchwise
from branchwise.errors import ParameterError
from branchwise.studio.page import style_and_script
from branchwise.studio.widget import StudioWidget, front_end
from notebooks import HOST, use_channels
from programs import IN_BROWSER, opened_browser  # noqa: F401  (a fixture)

TENNIS = branchwise.datasets.load("tennis")
OUTLOOK = {"do": "split", "node": "/", "column": "outlook"}


def in_browser(test):
    for mark in IN_BROWSER:
        test = mark(test)
    return test


@pytest.fixture(name="session")
def tennis_session():
    return branchwise.grow_by_hand(TENNIS.X, TENNIS.y, target_name="play")


@pytest.fixture(name="widget")
def shown_widget(session, monkeypatch):
    use_channels(monkeypatch)
    widget = StudioWidget(session)
    yield widget
    widget.close()


def asked(widget, method, **args):
    """Send a message as the page does; return the response."""
    widget.comm.from_page({"id": "a-1", "method": method, "args": args})
    response = widget.comm.next()
    assert response.pop("id") == "a-1"
    return response


def test_what_the_page_does_is_done_in_the_session(widget, session):
    assert widget.session is session
    state = asked(widget, "state")["result"]
    assert (state["stage"], len(state["tree"])) == ("session", 1)
    changed = asked(widget, "apply", action=OUTLOOK)["result"]
    assert [node["path"] for node in changed["nodes"]] == ["/", "/0", "/1", "/2"]
    assert [entry.words for entry in session.history][1:] == ["split / on outlook"]
    assert "session.split('/', 'outlook')" in session.script()
    assert len(session.model.tree) == 4
    # The page that asked knows of it already; others learn it now.
    assert widget.comm.waiting() == [{"changed": 1}]


def test_the_page_follows_what_is_done_in_python(widget, session):
    session.split("/", "humidity")
    session.undo()
    session.redo()
    session.goto(0)
    assert widget.comm.waiting() == [{"changed": n} for n in (1, 0, 1, 0)]
    widget.close()
    session.redo()
    assert session.history.listeners == []


def test_errors_are_sentences(widget, session):
    refused = asked(widget, "apply", action={**OUTLOOK, "column": "moon"})["error"]
    assert refused["message"].startswith("column")
    refused = asked(widget, "split")["error"]
    assert refused["parameter"] == "method"
    for method in ("load", "reread", "start", "open", "diff"):
        refused = asked(widget, method)["error"]
        assert refused["message"].startswith("In a notebook this is done in Python: ")
    for strange in ("text", 3, None, [], {"id": "a-1", "method": ["split"]}):
        widget.comm.from_page(strange)
        assert "error" in widget.comm.next()
    assert len(session.history) == 1
    assert widget.comm.waiting() == []


def test_scores_do_not_stop_other_messages(widget, session, monkeypatch):
    begun, done = threading.Event(), threading.Event()
    slow = {"method": "hold-out", "waited": True}
    score = SimpleNamespace(to_dict=lambda: slow if done.wait(20) else {})

    def compute():
        begun.set()
        return score

    monkeypatch.setattr(session, "scoring", lambda pause: compute)
    widget.comm.from_page({"id": "a-0", "method": "score", "args": {}})
    assert begun.wait(60)
    assert asked(widget, "apply", action=OUTLOOK)["result"]["number"] == 1
    assert widget.comm.waiting() == [{"changed": 1}]
    done.set()
    assert widget.comm.next() == {"id": "a-0", "result": {**slow, "number": 0}}


def test_only_sessions_are_shown():
    with pytest.raises(ParameterError, match=r"session must be a session.*Got Dataset"):
        StudioWidget(TENNIS)


def test_without_anywidget_the_command_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "branchwise.studio.widget")
    with pytest.raises(
        ImportError, match=r"anywidget.*pip install 'branchwise\[studio"
    ):
        import branchwise.studio.widget  # noqa: F401


def test_the_module_is_the_page_in_a_frame():
    text = front_end()
    style, script = style_and_script()
    page = re.search(r'const PAGE = (".*");\n', text).group(1)
    assert script.splitlines()[-2] in page
    assert "{{" not in text.replace(page, "")
    assert "Content-Security-Policy" in page
    assert "'unsafe" not in page
    # Nothing of the style sheet reaches the notebook.
    assert style.splitlines()[0] not in text.replace(page, "")
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


@pytest.fixture(name="cell")
def cell_in_browser(widget, browser):
    """A page of a notebook that shows the widget; problems fail the test."""
    context = browser.new_context(viewport={"width": 1300, "height": 800})
    page = context.new_page()
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.expose_function("toPython", widget.comm.from_page)
    page.expose_function("fromPython", widget.comm.waiting)
    page.set_content(HOST)
    page.evaluate(
        "([text, values]) => window.show(text, values)",
        [widget._esm, {"height": widget.height}],
    )
    yield page
    context.close()
    assert problems == []


@in_browser
def test_a_split_by_a_click(cell, widget, session):
    style = "e => JSON.stringify(getComputedStyle(e))"
    before = cell.eval_on_selector("p", style)
    page = cell.frame_locator("iframe")
    page.get_by_role("button", name="Split on outlook").click()
    page.locator("#node-3").wait_for()
    assert "session.split('/', 'outlook')" in session.script()
    session.prune("/")
    page.locator("#node-3").wait_for(state="detached")
    assert "changed in Python" in page.locator("#said").text_content()
    assert cell.eval_on_selector("p", style) == before
    assert cell.locator("iframe").bounding_box()["height"] == widget.height
    assert cell.evaluate("window.listening()") == 2
    cell.evaluate("window.remove()")
    assert cell.evaluate("window.listening()") == 0
