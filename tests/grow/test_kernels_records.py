"""Records, the second representation: the tree of the reference where their ways turn.

Columns of few values are counted together, a few at a time, in blocks of records; small
nodes are looked through sixteen columns and eight values at a time; where scores need
logarithms, only columns whose rough score may be the best are scored exactly; and of
sorted numbers, only thresholds in blocks whose corners are good enough.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from branchwise import Recipe
from branchwise.data.table_schema import Column, Columns
from branchwise.data.target import Classes
from branchwise.data.weights import weigh
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.grow import native_kernel as native
from branchwise.grow.grow import grow
from branchwise.recipe import C45, CART
from branchwise.recipe.parameters import BUILT_IN
from branchwise.tree.tree import ARRAYS, Tree
from selection import examples, first_fast

pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)

#: Numbers of values around those from which a column is looked at another way.
SIZES = [1, 2, 3, 6, 7, 8, 9, 15, 16, 17, 62, 63, 64, 65, 254, 255, 256, 300]


def reference_and_twin(columns, cells, labels, weights, recipe, n_threads=1):
    """Grow a tree twice."""
    n = len(labels)
    n_classes = int(labels.max()) + 1
    data = Columns(n, tuple(cells))
    fractions = recipe.missing == "split" and any(c.has_missing for c in columns)
    grid = weigh(weights, n, fractions)
    engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
    reference = grow(engine, columns, recipe)
    twin = native.grow_native(columns, data, labels, n_classes, grid, recipe, n_threads)
    return reference, twin


def assert_same_tree(one: Tree, other: Tree, context: object) -> None:
    for spec in ARRAYS:
        np.testing.assert_array_equal(
            getattr(one, spec.name),
            getattr(other, spec.name),
            f"{spec.name}: {context}",
        )


def categories(rng: np.random.Generator, n: int, sizes, gaps: float):
    """Columns of codes, some values being rare, some missing."""
    columns, cells = [], []
    for j, size in enumerate(sizes):
        codes = (size * rng.random(n) ** 2).astype(np.int64)
        codes[rng.random(n) < gaps] = size
        missing = bool((codes == size).any())
        columns.append(Column(f"x{j}", "categorical", tuple(range(size)), missing))
        cells.append(codes.astype(columns[-1].code_dtype))
    return columns, cells


def uneven_weights(rng: np.random.Generator, n: int, kind: int):
    """None, whole, fractional, or of very different sizes."""
    if kind == 0:
        return None
    if kind == 1:
        return rng.integers(1, 4, n).astype(float)
    return rng.random(n) if kind == 2 else 10.0 ** rng.integers(-12, 3, n)


@pytest.mark.parametrize("part", first_fast(range(48)))
def test_same_tree_of_records(part, monkeypatch):
    for seed in range(part, 1200, 48):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([3, 12, 47, 48, 49, 90, 127, 128, 129, 300, 700]))
        sizes = rng.choice(SIZES, size=int(rng.integers(1, 24)))
        columns, cells = categories(rng, n, sizes, float(rng.choice([0.0, 0.1])))
        n_classes = int(rng.choice([2, 3, 30]))
        labels = (cells[0] + n_classes * rng.random(n) ** 2).astype(np.intp) % n_classes
        recipe = Recipe(
            criterion=BUILT_IN[int(rng.integers(0, 3))],
            min_samples_leaf=int(rng.choice([1, 1, 2])),
            missing=str(rng.choice(["branch", "split", "split", "largest", "node"])),
        )
        weights = uneven_weights(rng, n, int(rng.integers(0, 4)))
        threads = int(rng.integers(1, 4))
        monkeypatch.setattr(native, "WORTH_SHARING", int(rng.choice([1, 2000])))
        one, two = reference_and_twin(columns, cells, labels, weights, recipe, threads)
        assert_same_tree(one, two, (seed, recipe))


@pytest.mark.parametrize("part", first_fast(range(16)))
def test_same_tree_of_small_subtrees_of_fractional_cases(part):
    """Those of at most 64 records, 63 values and 256 columns are grown as a whole."""
    for seed in range(part, 640, 16):
        rng = np.random.default_rng([seed, 64])
        n = int(rng.choice([3, 16, 17, 40, 63, 64, 65, 66, 130, 200]))
        # All columns must suit, or none of the subtrees is grown so.
        few = rng.random() < 0.8
        sizes = rng.choice(
            [2, 3, 6, 15, 16, 17, 40, 62, 63] if few else SIZES,
            size=257 if 16 <= seed < 32 else int(rng.integers(1, 24)),
        )
        columns, cells = categories(rng, n, sizes, float(rng.choice([0.03, 0.1, 0.4])))
        if rng.random() < 0.3:  # columns that tie
            twice = rng.permutation(np.repeat(np.arange(len(cells)), 2))
            cells = [cells[j] for j in twice]
            columns = [replace(columns[j], name=f"{k}") for k, j in enumerate(twice)]
        n_classes = int(rng.choice([2, 2, 3, 30, 100]))
        labels = (cells[0] + n_classes * rng.random(n) ** 2).astype(np.intp) % n_classes
        recipe = replace(
            C45 if rng.random() < 0.3 else Recipe(),
            criterion=str(rng.choice(["gain", "gain_ratio"])),
            min_samples_leaf=int(rng.choice([1, 1, 2, 3])),
            min_samples_split=int(rng.choice([2, 2, 5])),
            max_depth=None if rng.random() < 0.8 else 3,
            missing="split",
            unseen=str(rng.choice(["node", "largest"])),
        )
        one, two = reference_and_twin(columns, cells, labels, None, recipe)
        assert_same_tree(one, two, (seed, recipe))


def numbers(rng: np.random.Generator, n: int, labels, gaps: float):
    """Columns of numbers: some tell the class, some repeat, some are very close."""
    columns, cells = [], []
    for j in range(int(rng.integers(2, 6))):
        x = rng.normal(size=n) + float(rng.choice([0.0, 0.5])) * labels
        x = x.round(int(rng.choice([2, 3, 12]))) * float(rng.choice([1.0, 1e-4]))
        x[rng.random(n) < gaps] = np.nan
        columns.append(Column(f"x{j}", "numeric", (), bool(np.isnan(x).any())))
        cells.append(x)
    return columns, cells


@pytest.mark.parametrize("part", first_fast(range(40)))
def test_same_tree_of_small_subtrees_with_numbers(part):
    """Lists, ranks in the records, ties, numbers too close for a threshold."""
    for seed in range(part, 1280, 40):
        rng = np.random.default_rng([seed, 65])
        n = int(rng.choice([3, 16, 33, 63, 64, 65, 66, 97, 130, 200]))
        n_classes = int(rng.choice([2, 2, 2, 3, 5, 30]))
        labels = rng.integers(0, n_classes, n).astype(np.intp)
        gaps = float(rng.choice([0.03, 0.1, 0.4]))
        columns, cells = numbers(rng, n, labels, gaps)
        for x in cells[:1]:  # few distinct ones, missing or the same in many rows
            x[:] = np.where(np.isnan(x), x, (3 * x).round())
        more, codes = categories(rng, n, [2, 6, 17][: int(rng.integers(0, 4))], gaps)
        columns, cells = [*columns, *more], [*cells, *codes]
        if rng.random() < 0.3:  # columns that tie
            columns += [replace(column, name=f"{column.name}'") for column in columns]
            cells += cells
        base = C45 if rng.random() < 0.6 else Recipe()
        recipe = replace(
            base,
            criterion=str(rng.choice(["gain", "gain_ratio", "gain_ratio"])),
            min_samples_leaf=base.min_samples_leaf + int(rng.choice([0, 0, 1, 2])),
            min_samples_split=int(rng.choice([2, 2, 5])),
            max_depth=None if rng.random() < 0.8 else 3,
            missing="split",
            unseen=str(rng.choice(["node", "largest", "split"])),
        )
        one, two = reference_and_twin(columns, cells, labels, None, recipe)
        assert_same_tree(one, two, (seed, recipe))


@pytest.mark.parametrize("part", first_fast(range(20)))
def test_same_tree_of_long_lists(part, monkeypatch):
    """So long that thresholds are passed over in blocks."""
    for seed in range(part, 320, 20):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([98, 130, 400, 1500, 9000]))
        n_classes = int(rng.choice([2, 2, 3, 4, 6, 12, 40]))
        labels = rng.integers(0, n_classes, n).astype(np.intp)
        columns, cells = numbers(rng, n, labels, float(rng.choice([0.0, 0.05])))
        more, codes = categories(rng, n, [3, 5], float(rng.choice([0.0, 0.1])))
        recipe = [C45, CART, Recipe(criterion="gain"), Recipe(criterion="gini")][
            int(rng.integers(0, 4))
        ]
        recipe = replace(
            recipe,
            missing=str(rng.choice(["branch", "split", "split", "largest", "node"])),
            min_samples_leaf=int(rng.choice([1, 1, 7])),
            min_weight_fraction_leaf=float(rng.choice([0.0, 0.0, 0.02])),
            max_depth=6,
        )
        weights = uneven_weights(rng, n, int(rng.choice([0, 0, 1, 2, 3])))
        threads = int(rng.integers(1, 4))
        monkeypatch.setattr(native, "WORTH_SHARING", int(rng.choice([1, 2000])))
        one, two = reference_and_twin(
            [*columns, *more], [*cells, *codes], labels, weights, recipe, threads
        )
        assert_same_tree(one, two, (seed, recipe))


@pytest.mark.parametrize("criterion", ["gain", "gain_ratio"])
def test_same_tree_where_rough_scores_cannot_tell(criterion):
    """Columns that are the same but for rows of little weight, or for their names."""
    chosen = set()
    for seed in range(examples(60)):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([40, 200]))
        weights = rng.random(n)
        weights[:8] = 10.0 ** -rng.integers(1, 12, 8)
        first = rng.integers(0, 4, n)
        cells = [first]
        for row in rng.integers(0, 12, 5):
            other = first.copy()
            other[row] = (other[row] + 1) % 4
            cells.append((other + row) % 4)
        labels = ((first > 1) ^ (rng.random(n) < 0.2)).astype(np.intp)
        columns = [Column(f"x{j}", "categorical", tuple(range(4))) for j in range(6)]
        codes = [cell.astype(np.uint8) for cell in cells]
        recipe = Recipe(criterion=criterion, min_gain=float(rng.choice([0.0, 0.05])))
        one, two = reference_and_twin(columns, codes, labels, weights, recipe)
        assert_same_tree(one, two, seed)
        chosen.add(int(one.column[0]))
    assert len(chosen) > 3


@pytest.mark.parametrize("n_threads", [1, 3])
def test_same_tree_where_parts_of_cases_outgrow_their_buffers(n_threads, monkeypatch):
    """Half of the cells are missing, so that a level has several times the records."""
    monkeypatch.setattr(native, "WORTH_SHARING", 200)
    for seed in range(examples(21)):
        rng = np.random.default_rng(seed)
        n = 400
        columns, cells = categories(rng, n, [3, 4, 5, 6], 0.5)
        labels = (cells[2] + rng.integers(0, 2, n)).astype(np.intp) % 2
        weights = uneven_weights(rng, n, int(rng.integers(0, 4)))
        recipe = Recipe(missing="split", max_depth=5)
        one, two = reference_and_twin(
            columns, cells, labels, weights, recipe, n_threads
        )
        assert_same_tree(one, two, seed)
        # Three parts of half the rows, and the other half: more than 1.5 n records.
        assert one.n_children[0] >= 3
        assert np.count_nonzero(one.n_children) > 3


def two_columns(first, second):
    columns = [Column(f"x{j}", "categorical", (0, 1, 2)) for j in range(2)]
    return columns, [np.array(c, dtype=np.uint8) for c in (first, second)]


@pytest.mark.parametrize("criterion", ["gain", "gini"])
@pytest.mark.parametrize(("speck", "chosen"), [(1e-12, 0), (1e-3, 1)])
def test_a_speck_of_impurity_does_not_lose_a_tie(criterion, speck, chosen):
    """The second column is pure, the first but for a row of next to no weight."""
    labels = np.array([0, 0, 1, 1, 1], dtype=np.intp)
    columns, cells = two_columns([0, 0, 1, 1, 0], [0, 0, 1, 1, 1])
    weights = np.array([1.0, 1.0, 1.0, 1.0, speck])
    recipe = Recipe(criterion=criterion, max_depth=1)
    one, two = reference_and_twin(columns, cells, labels, weights, recipe)
    assert one.column[0] == chosen
    assert_same_tree(one, two, speck)


@pytest.mark.parametrize(("parts", "chosen"), [(5, 0), (3, 1)])
def test_parts_of_cases_make_a_leaf_if_they_add_up(parts, chosen):
    """Below the root, a value has nothing but quarters of cases: enough for a leaf?

    The root asks the column "top", and a quarter of each row without it goes to the
    first branch; no other row has the last value of the column that is pure there.
    """
    pure = [0] * 4 + [1] * 4 + [0, 1] * 12 + [2] * parts
    mixed = [0] * 3 + [1] * 5 + [0, 1] * 12 + [1] * parts
    top = [0] * 8 + [1] * 24 + [2] * parts  # 2: missing
    labels = [0] * 4 + [1] * 4 + [2] * 24 + [0] * parts
    columns = [
        Column("pure", "categorical", (0, 1, 2)),
        Column("mixed", "categorical", (0, 1)),
        Column("top", "categorical", (0, 1), has_missing=True),
    ]
    cells = [np.array(c, dtype=np.uint8) for c in (pure, mixed, top)]
    recipe = Recipe(criterion="gain", missing="split", max_depth=2)
    one, two = reference_and_twin(
        columns, cells, np.array(labels, dtype=np.intp), None, recipe
    )
    assert one.column[0] == 2
    assert one.column[1] == chosen
    assert_same_tree(one, two, parts)


def test_steps_of_cases_are_those_of_rows_that_count():
    """The steps are as many as rows that weigh something allow, however many do not."""
    columns = [Column("a", "categorical", (0, 1), has_missing=True)]
    cells = [np.array([0, 1, 2, *[0] * 97], dtype=np.uint8)]
    weights = np.array([1.0] * 3 + [0.0] * 97)
    labels = np.arange(100) % 2
    recipe = Recipe(criterion="gain", missing="split")
    one, two = reference_and_twin(columns, cells, labels, weights, recipe)
    assert len(one) == 3
    assert_same_tree(one, two, "rows of weight 0")


def test_labels_that_have_no_space_beside_positions():
    """19 bits of positions and 14 of labels: entries of lists look labels up."""
    rng = np.random.default_rng(3)
    n, n_classes = 300_000, 2**13 + 1
    labels = rng.permutation(np.arange(n) % n_classes)
    numbers = (labels % 40 + rng.integers(0, 2, n)).astype(float)
    assert len(np.unique(numbers)) * n_classes > n  # a list
    columns = [Column("x", "numeric", (), False)]
    recipe = Recipe(criterion="gini", max_depth=2)
    one, other = reference_and_twin(columns, [numbers], labels, None, recipe)
    assert len(one) == 7
    assert_same_tree(one, other, "labels in records")
