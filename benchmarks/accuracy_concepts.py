"""Generated concepts of the accuracy benchmark, each with a seed of its own.

A concept is a table of columns and the class of each row. Columns of texts are
categories. What a tree can know is stated in the name: how many rows, how much of the
labels is random, which columns tell nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[Any]
Rows = tuple[pd.DataFrame, Array]
Draw = np.random.Generator


def generated(name: str) -> Rows:
    """Return the rows of a concept, the same in every run."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    return CONCEPTS[name](np.random.default_rng(seed))


# ------------------------------------------------------------------------- columns


def _categories(codes: Array, prefix: str = "c") -> pd.DataFrame:
    """Name the values of columns of codes: v0, v1 and so on."""
    return pd.DataFrame({
        f"{prefix}{i}": pd.Categorical([f"v{code}" for code in column])
        for i, column in enumerate(codes.T)
    })  # fmt: skip


def _numbers(values: Array, digits: int = 3) -> pd.DataFrame:
    return pd.DataFrame({
        f"x{i}": np.round(column, digits) for i, column in enumerate(values.T)
    })  # fmt: skip


def _labels(classes: Array) -> Array:
    return np.array([f"class {code}" for code in classes])


def _flipped(draw: Draw, classes: Array, noise: float) -> Array:
    """Draw the class of a share of the rows anew."""
    n_classes = int(classes.max()) + 1
    random = draw.random(len(classes)) < noise
    return np.where(random, draw.integers(0, n_classes, len(classes)), classes)


def _with_missing(draw: Draw, X: pd.DataFrame, share: float) -> pd.DataFrame:
    return X.mask(draw.random(X.shape) < share)


# ------------------------------------------------------------------------ concepts


def _m_of_n(rows: int, m: int, n: int, values: int, noise: float = 0.0) -> Any:
    """At least m of n columns have their first value; three more tell nothing."""

    def rows_of(draw: Draw) -> Rows:
        codes = draw.integers(0, values, (rows, n + 3))
        true = (codes[:, :n] == 0).sum(axis=1) >= m
        return _categories(codes), _labels(_flipped(draw, true.astype(int), noise))

    return rows_of


def _exactly(rows: int, m: int, n: int, values: int) -> Any:
    """Exactly m of n columns have their first value (as in monks-2)."""

    def rows_of(draw: Draw) -> Rows:
        codes = draw.integers(0, values, (rows, n))
        return _categories(codes), _labels(((codes == 0).sum(axis=1) == m).astype(int))

    return rows_of


def _parity(rows: int, n: int, others: int, values: int, noise: float = 0.0) -> Any:
    """Take the parity of n columns, each of whose values are even or odd."""

    def rows_of(draw: Draw) -> Rows:
        codes = draw.integers(0, values, (rows, n + others))
        odd = (codes[:, :n] % 2).sum(axis=1) % 2
        return _categories(codes), _labels(_flipped(draw, odd, noise))

    return rows_of


def _dnf(rows: int, terms: int, width: int, values: int, noise: float) -> Any:
    """One of a few terms holds; each asks of some columns that a value is in a set."""

    def rows_of(draw: Draw) -> Rows:
        codes = draw.integers(0, values, (rows, 12))
        true = np.zeros(rows, dtype=bool)
        for _ in range(terms):
            holds = np.ones(rows, dtype=bool)
            for column in draw.choice(12, width, replace=False):
                size = max(1, values // 2)
                holds &= np.isin(
                    codes[:, column], draw.choice(values, size, replace=False)
                )
            true |= holds
        return _categories(codes), _labels(_flipped(draw, true.astype(int), noise))

    return rows_of


def _ordinal(rows: int, levels: int, classes: int, columns: int, noise: float) -> Any:
    """Bands of the sum of ordered columns, given as categories without their order."""

    def rows_of(draw: Draw) -> Rows:
        codes = draw.integers(0, levels, (rows, columns + 2))
        total = codes[:, :columns].sum(axis=1)
        edges = np.quantile(total, np.linspace(0, 1, classes + 1)[1:-1])
        bands = np.searchsorted(edges, total)
        return _categories(codes), _labels(_flipped(draw, bands, noise))

    return rows_of


def _interaction(rows: int, levels: int, classes: int, noise: float) -> Any:
    """Which of ordered columns decides depends on another one, three levels deep."""

    def rows_of(draw: Draw) -> Rows:
        codes = draw.integers(0, levels, (rows, 7))
        half = levels // 2
        chosen = np.where(
            codes[:, 0] < half,
            np.where(codes[:, 1] < half, codes[:, 2], codes[:, 3]),
            np.where(codes[:, 4] < half, codes[:, 3], codes[:, 5]),
        )
        bands = chosen * classes // levels
        return _categories(codes), _labels(_flipped(draw, bands, noise))

    return rows_of


def _planted(
    rows: int,
    classes: int,
    values: int,
    noise: float,
    missing: float = 0.0,
    noise_column: int = 0,
    depth: int = 3,
) -> Any:
    """Plant a tree over categories, each split of which has two groups of values."""

    def rows_of(draw: Draw) -> Rows:
        codes = draw.integers(0, values, (rows, 8))
        leaf = np.zeros(rows, dtype=int)
        for _ in range(depth):
            for node in range(int(leaf.max()) + 1):
                column = draw.integers(0, 8)
                group = draw.permutation(values) < (values + 1) // 2
                here = leaf == node
                leaf[here] = 2 * leaf[here] + group[codes[here, column]]
        found = draw.permutation(np.arange(2**depth) % classes)[leaf]
        X = _categories(codes)
        if noise_column:
            many = draw.integers(0, noise_column, (rows, 1))
            X = pd.concat([X, _categories(many, "many")], axis=1)
        if missing:
            X = _with_missing(draw, X, missing)
        return X, _labels(_flipped(draw, found, noise))

    return rows_of


def _telling_values(rows: int, values: int) -> Any:
    """Give many values rates of their own; three more columns tell a little."""

    def rows_of(draw: Draw) -> Rows:
        many = draw.integers(0, values, rows)
        few = draw.integers(0, 4, (rows, 3))
        rate = draw.beta(1, 1, values)[many] * 0.7 + 0.3 * (few[:, 0] < 2)
        X = pd.concat([_categories(few), _categories(many[:, None], "many")], axis=1)
        return X, _labels((draw.random(rows) < rate).astype(int))

    return rows_of


def _digits_of_leds(rows: int, others: int, noise: float) -> Any:
    """Seven segments of a digit, each wrong with some probability (Breiman et al.)."""
    segments = np.array([
        [int(bit) for bit in f"{code:07b}"]
        for code in (0x77, 0x24, 0x5D, 0x6D, 0x2E, 0x6B, 0x7B, 0x25, 0x7F, 0x6F)
    ])  # fmt: skip

    def rows_of(draw: Draw) -> Rows:
        digit = draw.integers(0, 10, rows)
        codes = segments[digit] ^ (draw.random((rows, 7)) < noise)
        codes = np.column_stack([codes, draw.integers(0, 2, (rows, others))])
        return _categories(codes), _labels(digit)

    return rows_of


def _waveform(rows: int) -> Any:
    """Mixtures of two of three waves, 21 numbers (Breiman et al., section 2.6.2)."""

    def rows_of(draw: Draw) -> Rows:
        at = np.arange(21)
        waves = np.array([np.maximum(6 - np.abs(at - peak), 0) for peak in (6, 14, 10)])
        found = draw.integers(0, 3, rows)
        first, second = waves[found], waves[(found + 1) % 3]
        share = draw.random((rows, 1))
        values = share * first + (1 - share) * second + draw.normal(size=(rows, 21))
        return _numbers(values, 2), _labels(found)

    return rows_of


def _of_numbers(rows: int, columns: int, noise: float, rule: Any) -> Any:
    """Classes by a rule of uniform numbers."""

    def rows_of(draw: Draw) -> Rows:
        x = draw.random((rows, columns))
        return _numbers(x), _labels(_flipped(draw, rule(x).astype(int), noise))

    return rows_of


def _normal_classes(rows: int, columns: int, classes: int, apart: float) -> Any:
    """Draw normal distributions around random centres, of equal variances."""

    def rows_of(draw: Draw) -> Rows:
        found = draw.integers(0, classes, rows)
        centre = draw.normal(size=(classes, columns)) * apart
        values = centre[found] + draw.normal(size=(rows, columns))
        return _numbers(values, 2), _labels(found)

    return rows_of


def _mixed(rows: int, missing: float, noise: float, rare: float = 0.5) -> Any:
    """Numbers and categories interact; cells are missing at random."""

    def rows_of(draw: Draw) -> Rows:
        x, codes = draw.random((rows, 3)), draw.integers(0, 6, (rows, 4))
        score = np.where(codes[:, 0] < 3, x[:, 0] + 0.3 * (codes[:, 1] == 2), x[:, 1])
        true = score > np.quantile(score, 1 - rare)
        X = pd.concat([_numbers(x), _categories(codes)], axis=1)
        found = _flipped(draw, true.astype(int), noise)
        return _with_missing(draw, X, missing), _labels(found)

    return rows_of


def _nothing(rows: int, share: float) -> Any:
    """Columns that tell nothing of the class: the best tree is one leaf."""

    def rows_of(draw: Draw) -> Rows:
        codes, x = draw.integers(0, 5, (rows, 6)), draw.random((rows, 2))
        X = pd.concat([_categories(codes), _numbers(x)], axis=1)
        return X, _labels((draw.random(rows) < share).astype(int))

    return rows_of


def _boxes(x: Array) -> Array:
    return ((x[:, 0] > 0.4) & (x[:, 1] < 0.6)) | ((x[:, 2] > 0.7) & (x[:, 3] > 0.3))


def _checkers(x: Array) -> Array:
    return (np.floor(3 * x[:, 0]) + np.floor(3 * x[:, 1])) % 2


def _rings(x: Array) -> Array:
    radius = np.hypot(x[:, 0] - 0.5, x[:, 1] - 0.5)
    return np.searchsorted([0.2, 0.35, 0.45], radius)


CONCEPTS: dict[str, Callable[[Draw], Rows]] = {
    "3 of 5, 300 rows": _m_of_n(300, 3, 5, 2),
    "4 of 7, 1,000 rows": _m_of_n(1000, 4, 7, 2),
    "2 of 6 of three values, 600 rows": _m_of_n(600, 2, 6, 3),
    "3 of 7, 10 % noise, 1,500 rows": _m_of_n(1500, 3, 7, 2, 0.1),
    "5 of 9, 4,000 rows": _m_of_n(4000, 5, 9, 2),
    "exactly 2 of 6, 432 rows": _exactly(432, 2, 6, 3),
    "exactly 3 of 6, 2,000 rows": _exactly(2000, 3, 6, 3),
    "parity of 2 of four values, 400 rows": _parity(400, 2, 4, 4),
    "parity of 3, 1,000 rows": _parity(1000, 3, 5, 2),
    "parity of 2 of six values, 10 % noise, 2,000 rows": _parity(2000, 2, 4, 6, 0.1),
    "DNF of 3 x 3, 400 rows": _dnf(400, 3, 3, 2, 0.0),
    "DNF of 3 x 3 of four values, 1,000 rows": _dnf(1000, 3, 3, 4, 0.0),
    "DNF of 5 x 4 of three values, 5 % noise, 3,000 rows": _dnf(3000, 5, 4, 3, 0.05),
    "DNF of 2 x 3 of six values, 20 % noise, 800 rows": _dnf(800, 2, 3, 6, 0.2),
    "bands of 2 ordered, 4 classes, 500 rows": _ordinal(500, 6, 4, 2, 0.0),
    "bands of 3 ordered, 5 classes, 2,000 rows": _ordinal(2000, 5, 5, 3, 0.0),
    "bands of 2 ordered, 3 classes, 15 % noise, 1,000 rows": _ordinal(
        1000, 8, 3, 2, 0.15
    ),
    "interaction of ordered, 4 classes, 1,000 rows": _interaction(1000, 8, 4, 0.0),
    "interaction of ordered, 8 classes, 4,000 rows": _interaction(4000, 8, 8, 0.05),
    "interaction of ordered, 3 classes, 20 % noise, 1,500 rows": _interaction(
        1500, 6, 3, 0.2
    ),
    "16 classes, 2,000 rows": _planted(2000, 16, 5, 0.05, depth=4),
    "16 classes, 20 % missing, 2,000 rows": _planted(2000, 16, 5, 0.05, 0.2, depth=4),
    "12 classes, 30 % missing, 600 rows": _planted(600, 12, 6, 0.05, 0.3, depth=4),
    "groups of ten values, 300 rows": _planted(300, 2, 10, 0.0),
    "groups of ten values, 5 % noise, 1,000 rows": _planted(1000, 3, 10, 0.05),
    "groups of ten values, 20 % noise, 1,000 rows": _planted(1000, 3, 10, 0.2),
    "groups of ten values, 40 % noise, 3,000 rows": _planted(3000, 2, 10, 0.4),
    "groups of 20 values, 10 % noise, 6,000 rows": _planted(6000, 4, 20, 0.1, depth=5),
    "groups of five values, 120 rows": _planted(120, 2, 5, 0.1),
    "noise column of 50 values, 1,000 rows": _planted(1000, 2, 4, 0.1, noise_column=50),
    "noise column of 200 values, 2,000 rows": _planted(
        2000, 3, 4, 0.2, noise_column=200
    ),
    "noise column of 30 values, 200 rows": _planted(200, 2, 3, 0.1, noise_column=30),
    "40 telling values, 1,500 rows": _telling_values(1500, 40),
    "LED, 10 % noise, 500 rows": _digits_of_leds(500, 0, 0.1),
    "LED, 10 % noise, 17 others, 1,500 rows": _digits_of_leds(1500, 17, 0.1),
    "waveform, 900 rows": _waveform(900),
    "boxes of numbers, 500 rows": _of_numbers(500, 6, 0.0, _boxes),
    "boxes of numbers, 20 % noise, 2,000 rows": _of_numbers(2000, 6, 0.2, _boxes),
    "checkers of numbers, 1,500 rows": _of_numbers(1500, 4, 0.05, _checkers),
    "rings of numbers, 1,000 rows": _of_numbers(1000, 4, 0.0, _rings),
    "slope of numbers, 800 rows": _of_numbers(
        800, 5, 0.05, lambda x: x[:, 0] + x[:, 1] > 1
    ),
    "6 normal classes, 900 rows": _normal_classes(900, 5, 6, 1.0),
    "2 normal classes, 200 rows": _normal_classes(200, 8, 2, 0.4),
    "mixed, 15 % missing, 1,000 rows": _mixed(1000, 0.15, 0.1),
    "mixed, 5 % of a class, 3,000 rows": _mixed(3000, 0.05, 0.02, rare=0.05),
    "nothing to learn, 30 % of a class, 600 rows": _nothing(600, 0.3),
    "nothing to learn, even classes, 250 rows": _nothing(250, 0.5),
}
