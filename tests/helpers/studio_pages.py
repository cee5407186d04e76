"""The studio in a browser: its server in a thread, and all that may go wrong."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from branchwise.studio.server import StudioApp, listening_socket, server_of
from branchwise.studio.workspace import Workspace

TOKEN = "a-token-of-this-test"
WIDE = {"viewport": {"width": 1280, "height": 860}, "reduced_motion": "reduce"}
PHONE = {"viewport": {"width": 390, "height": 844}, "reduced_motion": "reduce"}
#: What a page does when a file is dropped on it.
DROP = """
  ([name, text]) => {
    const dropped = new DataTransfer();
    dropped.items.add(new File([text], name, { type: "text/csv" }));
    return dropped;
  }
"""


class Studio:
    """A server of its own, and pages of it."""

    def __init__(self, browser):
        self.browser = browser
        self.workspace = Workspace()
        self.socket = listening_socket(0)
        port = self.socket.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}/{TOKEN}/"
        self.server = server_of(StudioApp(self.workspace, TOKEN, port))
        serving = self.server.serve(sockets=[self.socket])
        self.thread = threading.Thread(target=lambda: asyncio.run(serving))
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.wrong = []

    def open(self, window=None):
        """Open the page in a window of its own; keep what goes wrong in it."""
        context = self.browser.new_context(**window or WIDE)
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.on("console", lambda message: self.wrong.append(message.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("requestfailed", self._failed)
        page.on("request", self._requested)
        page.goto(self.address)
        return page

    def _failed(self, request):
        # A page that is left does not wait for its scores.
        if request.failure != "net::ERR_ABORTED":
            self.wrong.append(f"{request.failure}: {request.url}")

    def _requested(self, request):
        if not request.url.startswith((self.address, "data:,", "blob:")):
            self.wrong.append(request.url)

    def start(self, path: Path, target: str, **how):
        """Begin a session of a table, without the page."""
        self.workspace.open_file(str(path))
        self.workspace.start(target, **how)

    def stop(self):
        self.server.should_exit = True
        self.thread.join(10)
        self.socket.close()
        self.workspace.close()


@pytest.fixture(name="studio")
def running_studio(browser):
    """A studio; whatever goes wrong in its pages fails the test."""
    studio = Studio(browser)
    yield studio
    for context in browser.contexts:
        context.close()
    studio.stop()
    assert studio.wrong == []


def n_nodes(page) -> int:
    return page.evaluate("window.branchwise.tree.count")


def wait_for_edit(page, do):
    """Do something, and wait until the tree has followed."""
    before = page.evaluate("window.branchwise.session.number")
    do()
    for _ in range(1200):
        if page.evaluate("window.branchwise.session.number") > before:
            return
        page.wait_for_timeout(20)
    raise AssertionError("no edit was made")


def problems(page) -> list[str]:
    """Return what axe-core finds in the page as it is."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['html'][:150]}"
        for each in found
        for node in each["nodes"]
    ]
