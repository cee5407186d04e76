"""Pages of trees, opened in a browser; whatever goes wrong in one fails its test."""

from __future__ import annotations

import pytest

#: Words below an element that are broken, so that they take two lines.
BROKEN_WORDS = """
  root => {
    const broken = [];
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const text = walk.currentNode;
      for (const word of text.data.matchAll(/[\\p{L}\\p{N}<=>]+/gu)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        const tops = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
        if (tops.size > 1) broken.push(word[0]);
      }
    }
    return broken;
  }
"""
USUAL = {"viewport": {"width": 1200, "height": 760}, "reduced_motion": "reduce"}


class Tab:
    """A page, and all that happens in it that should not."""

    def __init__(self, context):
        context.set_default_timeout(60_000)
        self.wrong = []
        self.page = page = context.new_page()
        page.on("console", lambda message: self.wrong.append(message.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: (self.wrong.append("?"), dialog.dismiss()))
        page.on("request", self._requested)

    def _requested(self, request):
        if request.url not in (self.url, "data:,", "about:srcdoc"):
            self.wrong.append(request.url)

    def open(self, path):
        self.url = path.as_uri()
        self.page.goto(self.url)


@pytest.fixture(scope="module", name="usual")
def opened_tab(browser):
    """The tab that most tests share."""
    return Tab(browser.new_context(**USUAL))


@pytest.fixture(name="show")
def page_opener(browser, usual, tmp_path):
    """Open models; whatever goes wrong in a page fails the test."""
    tabs = []

    def show(model, title=None, **options):
        tab = Tab(browser.new_context(**USUAL | options)) if options else usual
        tabs.append(tab)
        path = tmp_path / "tree.html"
        if isinstance(model, str):
            path.write_text(model, encoding="utf-8")
        else:
            model.to_html(path, title)
        tab.open(path)
        return tab.page

    yield show
    for tab in tabs:
        assert tab.wrong == []
        if tab is not usual:
            tab.page.context.close()
