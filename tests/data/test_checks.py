"""What may be wrong with a table, against plain Python on random tables."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import branchwise
from branchwise import inspect_table
from branchwise.data import checks as findings_module
from branchwise.data.checks import grave_findings
from branchwise.data.dependence import (
    codes_of,
    errors_without_own,
    in_order,
    same_order,
    same_partition,
)
from branchwise.data.frames import read_vector
from branchwise.native import extension


def kinds(X, y=None):
    return [(finding.kind, *finding.columns) for finding in inspect_table(X, y)]


def coding(cells):
    return codes_of(read_vector(cells, "a"))


# Each kind, with what is just not one


def test_identifiers():
    n = 20
    table = {
        "text": [f"k{row}" for row in range(n)],
        "nearly": [f"k{row if row else 1}" for row in range(n)],
        "less": [f"k{max(row, 2)}" for row in range(n)],
        "numbers": [row * 1 + 1000 for row in range(n)],
        "gaps": [row * 3 for row in range(n)],
        "fractions": [row / 7 for row in range(n)],
        "some missing": [None] * 8 + [f"m{row}" for row in range(12)],
    }
    random.Random(0).shuffle(table["numbers"])
    found = [name for kind, name, *_ in kinds(table) if kind == "identifier"]
    assert found == ["text", "nearly", "numbers", "some missing"]
    assert not kinds({"text": [f"k{row}" for row in range(9)]})
    assert not kinds({"numbers": list(range(19))})


def test_constant_empty_and_mostly_missing():
    table = {
        "same": ["x"] * 10,
        "same number": [3.5] * 10,
        "void": [None] * 10,
        "void number": [math.nan] * 10,
        "half": [None] * 5 + ["a", "b"] * 2 + ["a"],
        "more": [None] * 6 + ["a", "b"] * 2,
        "gaps": [math.nan] * 6 + [1.5, 2.5] * 2,
        "same or missing": [None] + ["x"] * 9,
    }
    assert [entry for entry in kinds(table) if entry[0] != "duplicate"] == [
        ("empty", "void"),
        ("empty", "void number"),
        ("constant", "same"),
        ("constant", "same number"),
        ("mostly_missing", "more"),
        ("mostly_missing", "gaps"),
    ]
    assert kinds({"a": []}) == []
    assert kinds({"a": ["x"]}) == []


def test_whole_numbers_that_look_like_codes():
    rows = 60
    table = {
        "two": [row % 2 for row in range(rows)],
        "three": [row % 3 for row in range(rows)],
        "ten": [row * 7 % 10 for row in range(rows)],
        "eleven": [row * 5 % 11 for row in range(rows)],
        "halves": [row * 11 % 5 / 2 for row in range(rows)],
        "far apart": [1000 * (row * row % 7) for row in range(rows)],
    }
    found = [name for kind, name, *_ in kinds(table) if kind == "codes"]
    assert found == ["three", "ten", "far apart"]
    assert kinds({"rare": [0, 1, 2] * 4}) == []


def test_classes_with_one_row():
    y = ["a"] * 5 + ["b"] + ["c"] * 3 + ["d"]
    (found,) = inspect_table({"x": list("pqpqpqpqpq")}, y, "play")
    assert str(found) == (
        "The classes 'b', 'd' of 'play' have only one row. It cannot be both in "
        "training and in test rows: merge classes, or add rows."
    )
    (found,) = inspect_table({"x": [1.5, 2.5] * 4}, [7, 7, 7, 7, 9, 8, 8, 8])
    assert found.message == "The class 9 of 'target' has only one row."
    assert kinds({"x": [1.5, 2.5] * 4}, [0.5, 1.5] * 4) == []


def test_leaks():
    chance = np.random.default_rng(0)
    y = np.array(["no", "yes"])[chance.integers(0, 2, 200)]
    table = {
        "copy": np.where(y == "yes", "Y", "N"),
        "finer": [f"{label}{row % 5}" for row, label in enumerate(y)],
        "score": np.where(y == "yes", 60.0, 0.0) + 40 * chance.random(200),
        "gone": [None if label == "no" else 1.5 for label in y],
        "noise": chance.random(200),
        "names": [f"k{row}" for row in range(200)],
        "nearly": np.where((y == "yes") ^ (np.arange(200) < 5), "Y", "N"),
    }
    found = [name for kind, name, *_ in kinds(table, y) if kind == "leak"]
    assert found == ["copy", "finer", "score", "gone"]
    assert [(f.kind, *f.columns) for f in grave_findings(table, y)] == [
        ("leak", "copy"),
        ("leak", "finer"),
        ("leak", "score"),
        ("leak", "gone"),
        ("identifier", "names"),
    ]
    assert [f.columns for f in grave_findings(table)] == [("names",)]
    # Without the majority's errors there is nothing to decide.
    rare = ["no"] * 195 + ["yes"] * 5
    assert not [k for k in kinds({"x": rare}, rare) if k[0] == "leak"]
    assert not [k for k in kinds({"x": ["a"] * 20}, ["b"] * 20) if k[0] == "leak"]


def test_duplicates():
    chance = np.random.default_rng(1)
    celsius = chance.normal(size=500)
    words = np.array(["a", "b", "c"])[chance.integers(0, 3, 500)]
    renamed = np.array(["z", "x", "y"])[np.searchsorted(["a", "b", "c"], words)]
    nearly, less = renamed.copy(), renamed.copy()
    nearly[:2], less[:30] = "z", "z"
    rare = np.where(np.arange(500) == 7, "yes", "no")
    other = np.where(np.arange(500) == 9, "yes", "no")
    table = {
        "celsius": celsius,
        "words": words,
        "fahrenheit": 32 + 1.8 * celsius,
        "upside down": -(celsius**3),
        "renamed": renamed,
        "nearly": nearly,
        "less": less,
        "rare": rare,
        "other": other,
        "noise": chance.normal(size=500),
    }
    assert [entry for entry in kinds(table) if entry[0] == "duplicate"] == [
        ("duplicate", "words", "renamed"),
        ("duplicate", "celsius", "fahrenheit"),
        ("duplicate", "celsius", "upside down"),
        ("duplicate", "words", "nearly"),
    ]


def test_wide_tables_are_compared_exactly_only(monkeypatch):
    words = ["a", "b"] * 200
    near = [*words[:-1], "a"]
    table = {"one": words, "two": [w.upper() for w in words], "near": near}
    assert len(kinds(table)) == 2
    monkeypatch.setattr(findings_module, "_MOST_COMPARED", 1)
    assert kinds(table) == [("duplicate", "one", "two")]


def test_columns_that_cannot_be_read_are_left_to_fit():
    table = pa.table({"a": [[1], [2]], "b": ["x", "x"]})
    assert kinds(table) == [("constant", "b")]


def test_infinite_numbers():
    cells = [math.inf, -math.inf, 1.0, 2.0] * 10
    assert kinds({"a": cells}) == []
    assert same_order(np.array(cells), -np.array(cells))
    assert kinds({"a": [math.inf] * 5}) == [("constant", "a")]


def test_tables_of_all_kinds(frame):
    table = {"id": [f"k{n}" for n in range(12)], "n": [1.5, 2.5, 3.5] * 4}
    assert kinds(frame(table)) == [("identifier", "id")]


def test_a_finding_in_words():
    (found,) = inspect_table(pd.DataFrame({"one": ["x"] * 12}))
    assert isinstance(found, branchwise.Finding)
    assert str(found) == (
        "Column 'one' has the same value in every row. No tree can split on it: "
        "leave it out."
    )


# Against plain Python


def random_cells(chance, n):
    kind = chance.randrange(5)
    if kind == 0:
        return [chance.choice("abc") for _ in range(n)]
    if kind == 1:
        return [chance.choice([None, "a", "b"]) for _ in range(n)]
    if kind == 2:
        return [float(chance.randrange(8)) for _ in range(n)]
    if kind == 3:
        return [chance.choice([math.nan, 0.5, 1.5, -0.0, 0.0]) for _ in range(n)]
    return [chance.choice("ab") if row else None for row in range(n)]


def plain(cells):
    return [None if c is None or c != c else c for c in cells]


def naive_errors(cells, labels):
    """Count rows that the strict majority of the others of their value gets wrong."""
    groups = defaultdict(list)
    for cell, label in zip(plain(cells), labels, strict=True):
        groups[cell].append(label)
    errors = 0
    for group in groups.values():
        for label in group:
            others = Counter(group)
            others[label] -= 1
            best = max(others.values())
            winners = [name for name, times in others.items() if times == best]
            # A tie, or nobody else: the value does not decide.
            errors += winners != [label] or best == 0
    return errors


def naive_alike(one, other):
    n = len(one)
    one, other = plain(one), plain(other)
    rest = n - max([*Counter(one).values(), *Counter(other).values()])
    for a, b in ((one, other), (other, one)):
        by_value = defaultdict(Counter)
        for x, y in zip(a, b, strict=True):
            by_value[x][y] += 1
        wrong = n - sum(max(counts.values()) for counts in by_value.values())
        if wrong > 0.01 * rest:
            return False
    return True


@pytest.mark.parametrize("native", [True, False])
def test_counts_are_those_of_plain_python(native, monkeypatch):
    if native:
        extension()
    else:
        monkeypatch.setenv("BRANCHWISE_KERNEL", "reference")
    for seed in range(150):
        chance = random.Random(seed)
        n = chance.randrange(1, 40)
        one, other = random_cells(chance, n), random_cells(chance, n)
        if chance.random() < 0.4:
            other = [None if c is None else str(c) for c in plain(one)]
        labels = [chance.choice("xyz"[: chance.randrange(1, 4)]) for _ in range(n)]
        a, b, classes = coding(one), coding(other), coding(labels)
        known = [cell for cell in plain(one) if cell is not None]
        if a is not None:
            assert a.n_values == len(set(known))
            assert a.counts.sum() == len(known)
            assert errors_without_own(a, classes) == naive_errors(one, labels)
        if a is not None and b is not None:
            assert same_partition(a, b) == naive_alike(one, other)
            alike = (
                len({*zip(plain(one), plain(other), strict=True)})
                == len(set(plain(one)))
                == len(set(plain(other)))
            )
            gaps = [c is None for c in plain(one)] == [c is None for c in plain(other)]
            assert (a.signature == b.signature) == (alike and gaps)


def naive_in_order(values, labels):
    known = sorted((v, c) for v, c in zip(values, labels, strict=True) if v == v)
    without = {c for v, c in zip(values, labels, strict=True) if v != v}
    if not known or len(without) > 1 or without & {c for _, c in known}:
        return False
    for (v, c), (w, d) in pairwise(known):
        if v == w and c != d:
            return False
    runs = 1 + sum(c != d for (_, c), (_, d) in pairwise(known))
    return runs == len({c for _, c in known})


def test_ranges_are_those_of_plain_python():
    true = 0
    for seed in range(400):
        chance = random.Random(seed)
        n = chance.randrange(1, 12)
        values = [chance.choice([math.nan, 1.0, 2.0, 3.5, 4.0]) for _ in range(n)]
        labels = [chance.randrange(2 if v == v and v < 3 else 3) for v in values]
        if chance.random() < 0.5:
            labels = [2 if v != v else int(v > 3) for v in values]
        expected = naive_in_order(values, labels)
        true += expected
        assert in_order(np.array(values), np.array(labels)) == expected
    assert 50 < true < 350


def test_the_same_order():
    chance = np.random.default_rng(3)
    x = chance.normal(size=5000)
    assert same_order(x, np.exp(x))
    assert same_order(x, -x)
    assert not same_order(x, x + 0.2 * chance.normal(size=5000))
    gaps = np.where(np.arange(5000) % 7 == 0, np.nan, x)
    assert same_order(gaps, gaps * 2)
    assert not same_order(gaps, x)
    assert not same_order(np.ones(10), np.ones(10))
    # Only further rows tell the difference.
    y = x.copy()
    y[1::5] = chance.normal(size=1000)
    assert not same_order(x, y)


def test_large_tables_need_only_a_look():
    n = 30_000
    chance = np.random.default_rng(5)
    y = chance.integers(0, 3, n)
    table = {
        "leak": y * 10.0 + chance.random(n),
        "leak in words": np.array(["a", "b", "c"])[y],
        "noise": chance.random(n),
        "late": np.where(np.arange(n) % 15 == 1, chance.integers(0, 3, n), y) * 1.5,
        "codes": chance.integers(0, 5, n),
    }
    found = kinds(table, y)
    assert [entry[:2] for entry in found if entry[0] == "leak"] == [
        ("leak", "leak"),
        ("leak", "leak in words"),
    ]
    assert ("codes", "codes") in found


def test_many_values():
    rng = np.random.default_rng(4)
    table = {
        "shop": [f"s{i}" for i in rng.integers(0, 60, 600)],
        "town": [f"t{i}" for i in rng.integers(0, 25, 600)],
        "number": rng.integers(0, 60, 600) * 3.7,
        "name": [f"n{i}" for i in range(600)],
    }
    (found,) = [f for f in inspect_table(table) if f.kind == "many_values"]
    assert str(found) == (
        "Column 'shop' has 60 values in 600 rows, about 10 rows for each. So few rows "
        "tell little of a value: merge values that belong together, or leave it out."
    )
    few = {name: cells[:100] for name, cells in table.items() if name != "name"}
    assert [f.columns for f in inspect_table(few) if f.kind == "many_values"] == [
        ("shop",),
        ("town",),
    ]


@pytest.mark.parametrize("kind", ["number", "text", "few", "date", "date as text"])
def test_known_or_missing_determines_the_class(kind):
    rng = np.random.default_rng(5)
    labels = np.where(rng.random(300) < 0.2, "bad", "good")
    cells = {
        "number": rng.normal(size=300).tolist(),
        "text": [f"note {i}" for i in range(300)],
        "few": [f"k{i}" for i in rng.integers(0, 3, 300)],
        "date": [date(2023, 1, 1) + timedelta(int(i)) for i in range(300)],
        "date as text": [f"{i % 28 + 1:02}.03.2023" for i in range(300)],
    }[kind]
    known = labels == "bad"
    column = [cell if here else None for cell, here in zip(cells, known, strict=True)]
    table = {"defaulted": column, "x": rng.normal(size=300)}
    (found,) = [f for f in inspect_table(table, labels) if f.kind == "leak"]
    assert found.columns == ("defaulted",)
    assert found.message.endswith("determines the class by whether it is missing.")
    # In other rows, too, a value may be known.
    known = known ^ (rng.random(300) < 0.1)
    column = [cell if here else None for cell, here in zip(cells, known, strict=True)]
    assert not [f for f in inspect_table({"d": column}, labels) if f.kind == "leak"]
