"""docs/views.md shows what happens, and its pictures are those that are drawn."""

from __future__ import annotations

import doctest
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
PICTURES = runpy.run_path(str(IMAGES / "draw.py"))["pictures"]()


def test_the_page():
    tried = doctest.testfile(str(ROOT / "docs" / "views.md"), module_relative=False)
    assert tried.failed == 0
    assert tried.attempted >= 10


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_up_to_date(name):
    """If not on purpose, look at them: ``python docs/images/draw.py``."""
    assert (IMAGES / name).read_text(encoding="utf-8") == PICTURES[name]


def test_every_picture_is_drawn_and_shown():
    assert {path.name for path in IMAGES.glob("*.svg")} == set(PICTURES)
    page = (ROOT / "docs" / "views.md").read_text(encoding="utf-8")
    assert set(re.findall(r"images/([\w.]+)", page)) == set(PICTURES)
