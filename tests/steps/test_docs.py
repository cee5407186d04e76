"""The page on the worked solution shows what happens."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "steps.md"
#: Code, and what it prints.
BLOCKS = re.compile(r"(```python\n(.*?)```\n\n```text\n)(.*?)(?=```)", re.DOTALL)


def test_the_page_is_what_its_code_prints():
    """With BRANCHWISE_WRITE_DOCS=1 the outputs are written anew."""
    page = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {}

    def run(found: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(found[2], names)
        return found[1] + printed.getvalue().rstrip("\n") + "\n"

    fresh = BLOCKS.sub(run, page)
    if os.environ.get("BRANCHWISE_WRITE_DOCS"):
        PAGE.write_text(fresh, encoding="utf-8")
    assert len(BLOCKS.findall(page)) == 7
    assert fresh == page
