"""Candidates from segments of numbers are those from every number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from branchwise import Recipe, grow_by_hand
from branchwise.native import extension
from branchwise.recipe import C45, CART, ID3
from branchwise.studio.nodes import threshold_segments
from selection import first_fast

pytestmark = pytest.mark.skipif(extension() is None, reason="needs the extension")

RECIPES: dict[str, Recipe] = {
    "id3": ID3,
    "id3 ratio": replace(ID3, criterion="gain_ratio"),
    "id3 ratio, least gain": replace(ID3, criterion="gain_ratio", min_gain=0.02),
    "id3 least gain": replace(ID3, min_gain=0.05),
    "id3 missing branch": replace(ID3, missing="branch", min_samples_leaf=4),
    "c4.5": C45,
    "c4.5 largest": replace(C45, missing="largest"),
    "c4.5 gain": replace(C45, criterion="gain"),
    "cart": CART,
    "cart learned": replace(CART, missing="learned", min_samples_leaf=3),
    "cart entropy learned": replace(CART, criterion="gain", missing="learned"),
    "cart weight": replace(CART, min_weight_fraction_leaf=0.1),
    "cart surrogates": replace(CART, missing="surrogate"),
    "cart p-value": replace(CART, max_p_value=0.05),
}


def random_table(seed: int) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return numbers with ties and missing ones, classes and perhaps weights."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.choice([1, 2, 5, 30, 90, 200, 400]))
    digits = int(rng.integers(0, 4))
    frame = pd.DataFrame(
        rng.normal(size=(n_rows, 4)).round(digits), columns=list("abcd")
    )
    frame["d"] = rng.permutation(n_rows) * 0.5
    frame["e"] = 0.1 + np.arange(n_rows) % 7 * 4e-6
    if rng.random() < 0.6:
        frame = frame.mask(rng.random(frame.shape) < rng.choice([0.02, 0.3]))
    n_classes = int(rng.choice([1, 2, 2, 3, 5, 30]))
    signal = frame["a"].fillna(0) + rng.normal(size=n_rows) * rng.choice([0, 0.3, 3])
    rank = signal.rank(method="first").to_numpy() - 1
    frame["g"] = rng.choice(list("pq"), n_rows)
    frame["y"] = (rank * n_classes // n_rows).astype(int).astype(str)
    if rng.random() < 0.5:
        return frame, {}
    kinds = [rng.integers(1, 5, n_rows), rng.random(n_rows), rng.random(n_rows) * 1e-30]
    frame["w"] = kinds[int(rng.integers(3))].astype(float)
    return frame, {"sample_weight": "w"}


def candidates(rows, given, recipe, least, monkeypatch):
    monkeypatch.setattr(threshold_segments, "MANY_NUMBERS", least)
    session = grow_by_hand(rows, "y", recipe, **given)
    found = [list(session.candidates("/"))]
    splits = [each for each in found[0] if each.splits]
    if splits:
        session.split("/", splits[0].column)
        nodes = ["/0", "/1"]
        found += [list(session.candidates(node)) for node in nodes]
        found += [
            [session.preview("/", each.column, threshold=each.shown_threshold)]
            for each in splits
            if each.threshold is not None
        ]
    return found


def check(name, seed, monkeypatch):
    rows, given = random_table(seed)
    reference = candidates(rows, given, RECIPES[name], 10**9, monkeypatch)
    assert candidates(rows, given, RECIPES[name], 0, monkeypatch) == reference


NUMBERS: dict[str, Recipe] = {
    "variance": replace(CART, criterion="variance"),
    "variance, least gain": replace(CART, criterion="variance", min_gain=0.3),
    "variance largest": replace(CART, criterion="variance", missing="largest"),
    "variance learned": replace(CART, criterion="variance", missing="learned"),
    "variance branch": replace(CART, criterion="variance", missing="branch"),
    "variance split": replace(
        CART, criterion="variance", missing="split", min_samples_branch=2
    ),
    "variance weight": replace(
        CART, criterion="variance", min_weight_fraction_leaf=0.1, max_p_value=0.05
    ),
    "variance values": replace(ID3, criterion="variance", min_samples_leaf=3),
    "poisson": replace(CART, criterion="poisson"),
    "poisson learned": replace(CART, criterion="poisson", missing="learned"),
    "poisson branch": replace(
        CART, criterion="poisson", missing="branch", min_samples_leaf=4
    ),
}


def check_numbers(name, seed, monkeypatch):
    rows, given = random_table(seed)
    rng = np.random.default_rng(seed)
    kinds = [rng.normal(size=len(rows)), rng.integers(0, 3, len(rows)), rows["d"] * 1e9]
    numbers = np.nan_to_num(np.abs(kinds[seed % 3]).astype(float), nan=1.0)
    rows["y"] = numbers + (numbers.max() == 0)
    found = []
    for least, kernel in ((10**9, "reference"), (10**9, "native"), (0, "native")):
        monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
        found.append(candidates(rows, given, NUMBERS[name], least, monkeypatch))
    assert found[0] == found[1]
    assert found[0] == found[2]


def some_seeds(names, n_seeds, n_fast):
    """Return names with seeds: the quick tests have other seeds for each name."""
    return [
        pytest.param(name, seed, marks=() if quick else pytest.mark.slow)
        for at, name in enumerate(names)
        for seed in range(n_seeds)
        for quick in [(seed - at) % n_seeds < n_fast]
    ]


@pytest.mark.parametrize(("name", "seed"), some_seeds(NUMBERS, 5, n_fast=2))
def test_candidates_of_numbers_are_equal_to_the_last_bit(name, seed, monkeypatch):
    check_numbers(name, seed, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("part", range(10))
def test_many_tables_have_equal_candidates_of_numbers(name, part, monkeypatch):
    for seed in range(40 * part + 5, 40 * part + 45):
        check_numbers(name, seed, monkeypatch)


@pytest.mark.parametrize(("name", "seed"), some_seeds(RECIPES, 3, n_fast=1))
def test_candidates_are_equal_to_the_last_bit(name, seed, monkeypatch):
    check(name, seed, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("part", range(10))
def test_many_tables_have_equal_candidates(name, part, monkeypatch):
    for seed in range(40 * part + 3, 40 * part + 43):
        check(name, seed, monkeypatch)


@pytest.mark.parametrize("n_rows", first_fast([6_000, 20_000]))
def test_large_nodes_have_equal_candidates(n_rows, monkeypatch):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=list("abc"))
    rows["b"] = rows["b"].round(2)
    for classes in ("xy", "xyz", "xyzuvw"):
        noise = rng.normal(size=len(rows)) * 0.5
        rank = (rows["a"] + rows["b"] + noise).rank().to_numpy() - 1
        rows["y"] = np.array(list(classes))[
            (rank * len(classes) // len(rows)).astype(int)
        ]
        for name in ("id3", "id3 ratio", "c4.5", "cart"):
            given = rows, {}, RECIPES[name]
            reference = candidates(*given, 10**9, monkeypatch)
            assert candidates(*given, 0, monkeypatch) == reference


GIVEN = {
    "codes": np.array([0, 1, 2, 3, 1], dtype=np.uint8),
    "n_codes": 4,
    "rows": None,
    "labels": np.array([0, 1, 0, 1, 1], dtype=np.uint32),
    "n_classes": 2,
    "weights": None,
    "cases": None,
    "rules": {
        "gini": True,
        "by_ratio": False,
        "weights_are_cases": False,
        "fewest_cases": 1.0,
        "fewest_weight": 0.0,
        "whole": 2.0,
        "total": 5.0,
        "information": 0.0,
        "unit": 2.0**-50,
        "resolution": 1e-12,
        "min_gain": 0.0,
        "joining_cases": 0.0,
        "step": 1.0,
    },
    "values": None,
    "joining": None,
    "table": None,
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("codes", np.array([0.5]), "codes must be an array of uint8, uint16"),
        ("codes", np.array([4] * 5, dtype=np.uint8), "codes must be below n_codes"),
        ("codes", np.zeros(3, np.uint8), "labels must have one entry for each"),
        ("n_codes", 0, "n_codes must be between 1 and"),
        ("rows", np.array([0, 1, 2, 3, 9]), "rows must be numbers of codes"),
        ("rows", np.array([0, 1]), "rows must have 5 entries"),
        ("labels", np.array([0, 1, 0, 2, 1], dtype=np.uint32), "labels must be below"),
        ("labels", np.zeros((2, 2), np.uint32), "labels must have 1 dimension"),
        ("n_classes", 0, "n_classes must be between 1 and"),
        ("weights", np.array([1.0, -1, 1, 1, 1]), "weights must be finite"),
        ("cases", np.ones(4), "cases must have 5 entries"),
        ("rules", {}, "rules must have an entry gini"),
        ("rules", GIVEN["rules"] | {"more": 1}, "rules must have 13 entries. Got 14"),
        ("rules", GIVEN["rules"] | {"total": 0.0}, "total must be between"),
        ("rules", GIVEN["rules"] | {"whole": float("nan")}, "whole must be between"),
        ("values", np.ones(2), "values must have 3 entries"),
        ("joining", np.ones(3), "joining must have 2 entries"),
        ("table", np.zeros(3, np.int64), "table must have an entry for every weight"),
    ],
)  # fmt: skip
def test_arguments_of_the_kernel(name, value, message):
    call = extension().threshold_segments
    n_thresholds, n_numbers, first, last, weights, cases = call(**GIVEN)
    assert (n_thresholds, n_numbers, cases.sum()) == (2, 3, 4.0)
    assert weights.sum(axis=0).tolist() == [2.0, 2.0]
    assert first[0] == 0
    assert last[-1] == 2
    with pytest.raises((TypeError, ValueError), match=message):
        call(**GIVEN | {name: value})


STEPS = {"centre": 0.5, "factor": 0.5, "step": 2.0**-49, "low_step": 2.0**-90}
NUMBERS_GIVEN = {
    "codes": np.array([0, 1, 2, 3, 1], dtype=np.uint8),
    "n_codes": 4,
    "rows": None,
    "weights": None,
    "cases": None,
    "moments": np.array([[1.0, each, each * each] for each in (0.5, 0, 1, 0, 0)]),
    "distances": np.array([0, 0, -0.25, 0, 0.25, 0, -0.25, 0, -0.25, 0]),
    "sum_exponents": [-40.0],
    "rules": {
        "weights_are_cases": False,
        "joins": False,
        "branch": False,
        "fewest_cases": 1.0,
        "fewest_weight": 0.0,
        "unit": 2.0**-60,
        "noise": 2.0**-49,
        "missing_cases": 0.0,
        **STEPS,
    },
    "missing": np.zeros(3),
    "poisson": False,
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("codes", np.array([0.5]), "codes must be an array of uint8, uint16"),
        ("codes", np.array([4] * 5, dtype=np.uint8), "codes must be below n_codes"),
        ("codes", np.zeros(3, np.uint8), "moments must have one entry for each"),
        ("n_codes", 0, "n_codes must be between 1 and"),
        ("rows", np.array([0, 1, 2, 3, 9]), "rows must be numbers of codes"),
        ("weights", np.array([1.0, -1, 1, 1, 1]), "weights must be finite"),
        ("cases", np.ones(4), "cases must have 5 entries"),
        ("moments", np.ones(5), "moments must have 2 dimension"),
        ("moments", np.ones((5, 1)), "moments must have a weight and the limbs"),
        ("distances", np.ones(4), "distances must have 10 entries"),
        ("sum_exponents", [], "sum_exponents must have between 1 and 40"),
        ("rules", {}, "rules must have an entry weights_are_cases"),
        ("rules", NUMBERS_GIVEN["rules"] | {"more": 1}, "rules must have 12 entries"),
        ("rules", NUMBERS_GIVEN["rules"] | {"step": 0.0}, "step must be between"),
        ("missing", np.zeros(2), "missing must have 3 entries"),
        ("missing", np.full(3, np.nan), "missing must be finite"),
    ],
)
def test_arguments_of_the_kernel_for_numbers(name, value, message):
    call = extension().number_segments
    n_thresholds, n_numbers, first, last, statistics, cases = call(**NUMBERS_GIVEN)
    assert (n_thresholds, n_numbers, cases.sum()) == (2, 3, 4.0)
    assert statistics.sum(axis=0).tolist() == [4.0, -0.25, 0.0]
    assert (first[0], last[-1]) == (0, 2)
    with pytest.raises((TypeError, ValueError), match=message):
        call(**NUMBERS_GIVEN | {name: value})


def test_arguments_of_distances():
    given = {"moments": NUMBERS_GIVEN["moments"], "sum_exponents": [-40.0]}
    out = np.zeros(10)
    extension().number_distances(**given, steps=STEPS, out=out)
    assert out.tolist() == NUMBERS_GIVEN["distances"].tolist()
    with pytest.raises(ValueError, match="out must have 10 entries"):
        extension().number_distances(**given, steps=STEPS, out=out[:3].copy())
    with pytest.raises(ValueError, match="steps must have an entry centre"):
        extension().number_distances(**given, steps={}, out=out)


MOMENTS = {
    "columns": [np.array([0, 1, 1], dtype=np.uint8)],
    "n_codes": [3],
    "rows": np.array([0, 2]),
    "shares": None,
    "moments": np.array([[1.0, 5.0], [1.0, 7.0]]),
    "cases": [],
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("columns", [np.array([0.5] * 3)], "columns.0. must hold codes"),
        ("columns", [np.array([0, 1, 3], dtype=np.uint8)], "must hold codes below 3"),
        ("columns", [], "must have one entry for each column"),
        ("n_codes", [0], "n_codes.0. must be between 1 and"),
        ("rows", np.array([0, 3]), "rows must be numbers of codes"),
        ("rows", None, "moments must have one row for each of the codes"),
        ("shares", np.ones(2), "cases must have one table for each column"),
        ("cases", [np.zeros(3)], "cases must have one table for each column"),
        ("moments", np.ones((3, 2)), "moments must have one row for each of rows"),
        ("moments", np.ones(2), "moments must have 2 dimension"),
        ("counts", [np.zeros(2, np.int64)], "counts.0. must have 3 entries"),
        ("sums", [np.zeros(5)], "sums.0. must have 6 entries"),
    ],
)
def test_arguments_of_counting_moments(name, value, message):
    out = {"counts": [np.zeros(3, np.int64)], "sums": [np.zeros(6)]}
    extension().tally_moments(**MOMENTS, **out)
    assert out["counts"][0].tolist() == [1, 1, 0]
    assert out["sums"][0].tolist() == [1, 5, 1, 7, 0, 0]
    with pytest.raises((TypeError, ValueError), match=message):
        extension().tally_moments(**{**MOMENTS, **out, name: value})


BELOW = {
    "columns": [np.array([0, 1, 1], dtype=np.uint16)],
    "above": [1],
    "rows": np.array([0, 2]),
    "shares": np.array([0.5, 0.25]),
    "moments": np.array([[1.0] * 20, [2.0] * 20]),
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("columns", [np.array([0.5] * 3)], "columns.0. must hold codes"),
        ("above", [], "above must have one entry for each column"),
        ("above", [-1], "above.0. must be between 0 and"),
        ("rows", np.array([0, 3]), "rows must be numbers of codes"),
        ("shares", np.ones(3), "shares must have 2 entries"),
        ("moments", np.ones((3, 2)), "moments must have one row for each of rows"),
        ("cases", np.zeros(2), "cases must have 1 entries"),
        ("sums", np.zeros(5), "sums must have 20 entries"),
    ],
)
def test_arguments_of_moments_below_a_code(name, value, message):
    out = {"cases": np.zeros(1), "sums": np.zeros(20)}
    extension().moments_below(**BELOW, **out)
    assert out["cases"].tolist() == [0.5]
    assert out["sums"].tolist() == [1.0] * 20
    with pytest.raises((TypeError, ValueError), match=message):
        extension().moments_below(**{**BELOW, **out, name: value})
