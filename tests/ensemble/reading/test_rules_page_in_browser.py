"""The page of rules that vote in a real browser: what holds for a case, every width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from branchwise import RuleClassifier
from programs import IN_BROWSER, opened_browser  # noqa: F401  (a fixture)

pytestmark = IN_BROWSER
LOUD = "<img src=https://example.invalid/x onerror=alert(1)>"
#: Types in a case, and returns what the page says of the case.
TOLD = """cells => {
  const form = document.getElementById("case-form");
  cells.forEach((cell, at) => { form.elements[`column-${at}`].value = cell; });
  form.dispatchEvent(new Event("input"));
  const held = [...document.querySelectorAll("#rules ol > li")].map(
    item => item.classList.contains("holds"));
  return [document.querySelector("#case-result b").textContent, held];
}"""


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    draw = np.random.default_rng(2)
    days = np.datetime64("2024-01-01") + draw.integers(0, 90, 300)
    X = pd.DataFrame(
        {
            LOUD: draw.choice(["a", LOUD, "c"], 300),
            "size": draw.normal(size=300).round(2),
            "opened": days.astype("datetime64[s]"),
        }
    )
    X["size"] = X["size"].where(draw.random(300) > 0.1)
    return X


@pytest.fixture(scope="module")
def rules(table: pd.DataFrame) -> Any:
    late = (table["opened"] > "2024-02-10").to_numpy().astype(int)
    loud = ((table[LOUD] == LOUD) | (table["size"] > 0.4)).to_numpy().astype(int)
    y = np.array(["no", LOUD, "maybe"])[late + loud]
    return RuleClassifier(n_estimators=3, rule_cost=0.2).fit(table, y)


def _cells(row: pd.Series) -> list[str]:
    """Return the cells of a row as they are typed in."""
    values = ["", "", ""]
    values[0] = str(sorted(["a", LOUD, "c"]).index(row[LOUD]))
    values[1] = "" if np.isnan(row["size"]) else str(row["size"])
    values[2] = str(row["opened"].date())
    return values


def test_it_tells_which_rules_hold(
    browser: Any, tmp_path: Path, rules: Any, table: pd.DataFrame
) -> None:
    path, wrong = tmp_path / "rules.html", []
    rules.to_html(path)
    used = {c.column for rule in rules.rules() for c in rule.conditions}
    assert used == set(table.columns)
    page = browser.new_context().new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append("?"), dialog.dismiss()))
    page.goto(path.as_uri())
    rows = table.head(40)
    held, predicted = rules.rules().holds(rows), rules.predict(rows)
    for at, row in rows.iterrows():
        told, marked = page.evaluate(TOLD, _cells(row))
        assert marked == held[at].tolist()
        assert told == predicted[at]
    page.click("#case-form button")
    page.wait_for_function("!document.querySelector('li.holds')")
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_it_fits_every_screen(
    browser: Any, tmp_path: Path, rules: Any, width: int, scheme: str
) -> None:
    path, wrong = tmp_path / "rules.html", []
    rules.to_html(path)
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme
    )
    page = context.new_page()
    page.on("console", lambda message: wrong.append(message.text))
    page.on("request", lambda request: wrong.append(request.url))
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#case-form").is_visible()
    context.close()
    assert [text for text in wrong if not text.startswith(path.as_uri())] == []
