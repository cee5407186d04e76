"""The page of a forest: what is on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from branchwise import (
    RandomForestClassifier,
    RandomForestRegressor,
    datasets,
)
from forest_tables import mixed

LOUD = "<img src=https://example.invalid/x onerror=alert(1)>"


@pytest.fixture(scope="module")
def forest() -> Any:
    X, y = mixed(200)
    y = y.replace("yes", LOUD)
    return RandomForestClassifier(n_estimators=8).fit(
        X.rename(columns={"age": LOUD}), y
    )


@pytest.fixture(scope="module")
def page(forest: Any) -> str:
    found = forest.to_html()
    assert isinstance(found, str)
    return found


def test_all_of_it_is_there(forest: Any, page: str) -> None:
    for name in ("error", "importances", "rules", "tree", "confusion", "prototypes"):
        assert f'<section id="{name}"' in page
    # No line ends before the sign of per cent.
    assert forest.best_tree().summary in page.replace("&nbsp;%", " %")
    assert page.count('<svg class="chart"') == 4
    assert "Otherwise, " in page
    assert "<img src=https" not in page


def test_numbers_have_what_there_is() -> None:
    X, _ = mixed(150)
    found = RandomForestRegressor(n_estimators=4).fit(X, X["income"]).to_html()
    assert isinstance(found, str)
    assert "R squared, out of bag" in found
    assert '<section id="tree"' in found
    assert '<section id="rules"' in found
    for name in ("confusion", "prototypes"):
        assert f'id="{name}"' not in found


def test_a_file_and_a_title(forest: Any, tmp_path: Path) -> None:
    path = tmp_path / "forest.html"
    assert forest.to_html(path, title="Sales & more") is None
    written = path.read_text(encoding="utf-8")
    assert "<h1>Sales &amp; more</h1>" in written
    assert written == forest.to_html(title="Sales & more")


def test_without_rows_out_of_bag_it_has_what_there_is() -> None:
    X, y = mixed(80)
    every = RandomForestClassifier(n_estimators=2, bootstrap=False).fit(X, y)
    page = every.to_html()
    assert "Which columns matter" in page
    assert "out of bag" not in page


def test_a_large_tree_is_abridged() -> None:
    car = datasets.load("car")
    large = RandomForestClassifier(n_estimators=3, base="id3").fit(car.X, car.y)
    page = large.to_html()
    assert isinstance(page, str)
    assert len(page) < 2_000_000
