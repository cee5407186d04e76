"""A small part of the campaign of ``fuzz/fits.py``, and whether it finds anything."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

import fit_engines
import fit_laws
import fit_tables
import fit_views
import fits
from branchwise import Model
from fit_cases import Case, make_case

SEED = 13
#: Cases of that seed, all estimators among them; fewer where files are written.
CASES = (0, 1, 3, 4, 6, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 20, 21, 22, 24)
CASES_OF_TABLES = (8, 12, 16, 21, 24)
OF_TABLES = (*fit_tables.TABLES, *fit_engines.ENGINES)


def problems(indices: Iterable[int], checks: Sequence[str]) -> list[str]:
    return [
        f"case {index}, {record['check']}: {record['found']}"
        for index in indices
        for record in fits.run_case(SEED, index, checks)
        if record["event"] == "problem"
    ]


def test_random_cases_break_no_law() -> None:
    found = problems(CASES, [name for name in fits.QUICK if name not in OF_TABLES])
    assert not found, "\n".join(found)


def test_random_tables_mean_the_same_wherever_they_are() -> None:
    found = problems(CASES_OF_TABLES, OF_TABLES)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_many_random_cases(first: int) -> None:
    found = problems(range(first, first + 50), fits.QUICK)
    assert not found, "\n".join(found)


def test_cases_are_worth_trying() -> None:
    """Every estimator and parameter occurs, and so does what is extreme."""
    tally: Counter[str] = Counter()
    for index in range(400):
        case = make_case(SEED, index)
        assert case == make_case(SEED, index)
        tally.update([case.estimator, *case.parameters])
        tally["weights"] += case.weights is not None
        tally["gaps"] += case.differences
        tally["one row"] += case.n_rows == 1
        tally["one class"] += len(set(map(repr, case.y))) == 1
    scarce = {what: times for what, times in tally.items() if times < 5}
    assert not scarce, tally
    assert len(tally) > 30


CASE = Case(
    "ID3Classifier",
    {"max_depth": 3, "min_gain": 1e-12},
    {
        "a": list("ppqqrrpq"),
        "b": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        "c": list("xxxxyyyy"),
    },
    list("nnyyyynn"),
    others={"a": ["p"], "b": [2.5], "c": ["x"]},
)


def test_a_broken_law_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    applies, found = fits.tried("rules", CASE)
    assert (applies, found) == (True, None)
    answer = Model.predict

    def wrong(self: Model, X: object, n_jobs: int | None = None) -> np.ndarray:
        return answer(self, X, n_jobs)[::-1]

    monkeypatch.setattr(Model, "predict", wrong)
    _, found = fits.tried("rules", CASE)
    assert found is not None
    assert "its rule says" in found
    small, again = fits.smallest("rules", CASE, found)
    assert fits.kind_of(again) == fits.kind_of(found)
    assert small.n_rows == 2
    assert len(small.columns) == 1
    assert not small.parameters


def test_other_errors_than_ours_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Model, "rules", lambda *_, **__: 1 / 0)
    applies, found = fits.tried("rules", CASE)
    assert applies
    assert found is not None
    assert found.startswith("raised: ZeroDivisionError")


def test_a_script_shows_the_case_again() -> None:
    names: dict[str, object] = {}
    exec(CASE.script("rules").replace("CHECKS[", "checked = CHECKS["), names)
    assert names["case"] == CASE
    assert names["checked"] is True


def test_the_text_is_followed_to_the_leaf() -> None:
    lines = ["a <= 2: n (2)", "a > 2:", "|   b = x: n (1)", "|   b = y: y (3)"]
    assert fit_views._printed_leaf(lines, {"a": 3.0, "b": "y"}) == "y (3)"
    assert fit_views._printed_leaf(lines, {"a": 2.0, "b": "y"}) == "n (2)"
    assert fit_views._printed_leaf(lines, {"a": 3.0, "b": "z"}) is None


def test_checks_name_what_they_do() -> None:
    assert all(check.__doc__ for check in fits.CHECKS.values())
    assert set(fit_laws.LAWS) < set(fits.CHECKS)


@pytest.mark.parametrize(
    ("body", "reason"),
    [("import os; os._exit(3)", "code 3"), ("import time; time.sleep(99)", "hangs")],
)
def test_a_crash_or_a_hang_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, body: str, reason: str
) -> None:
    started: list[list[str]] = []
    popen = subprocess.Popen

    def start(command: list[str], **options: object) -> object:
        started.append(command)
        script = body if len(started) == 1 else "pass"
        return popen([sys.executable, "-c", script], **options)

    monkeypatch.setattr(fits.subprocess, "Popen", start)
    monkeypatch.setattr(fits, "SILENCE", 1)
    arguments = fits.parsed(["--n", "2", "--seed", "1"])
    (record,) = fits.watched(arguments)
    assert reason in record["found"]
    assert record["index"] == 0
    assert "--first 1" in " ".join(started[1])
