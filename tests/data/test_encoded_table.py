"""Tables that are read once: the same trees, and never those of another table."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    DataError,
    EncodedTable,
    ID3Classifier,
    ParameterError,
    datasets,
    fit_tree,
)
from branchwise.data import series
from branchwise.data.cache import Fingerprints
from branchwise.data.encoded_table import CacheStore, EncodedLabels, LRUCache, digest
from branchwise.data.target import learn_target
from branchwise.estimators import base
from branchwise.recipe import C45, CART, ID3


def mixed(n_rows=300, seed=0):
    """Return text with rare values, numbers and gaps, whole numbers, booleans."""
    random = np.random.default_rng(seed)
    text = random.choice([*"abcdefg", None], n_rows, p=[0.4, 0.3, 0.1, *[0.04] * 5])
    number = np.where(random.random(n_rows) < 0.1, np.nan, random.normal(size=n_rows))
    whole = random.integers(0, 9, n_rows)
    frame = pd.DataFrame(
        {
            "text": text,
            "number": number,
            "whole": whole,
            "flag": random.random(n_rows) < 0.3,
            "kind": pd.Categorical(
                random.choice(list("xyz"), n_rows), categories=list("wxyz")
            ),
        }
    )
    score = (
        (text == "a") + (whole > 4) + np.nan_to_num(number) + random.normal(size=n_rows)
    )
    return frame, np.where(score > 0.8, "yes", "no"), score


ESTIMATORS = [
    ID3Classifier(),
    ID3Classifier(categorical_features=["whole"], missing="split"),
    ID3Classifier(criterion="gain_ratio", max_bins=4, max_p_value=0.2),
    C45Classifier(),
    C45Classifier(group_values=True, class_weight="balanced"),
    CARTClassifier(),
    CARTClassifier(missing="surrogate"),
    CARTClassifier(missing="learned", ccp_alpha=0.01, unseen="split"),
    CARTRegressor(min_samples_leaf=5),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_rows_of_an_encoded_table_give_the_trees_of_the_rows(estimator):
    X, y, numbers = mixed()
    wanted = numbers if isinstance(estimator, CARTRegressor) else y
    table = EncodedTable(X)
    random = np.random.default_rng(1)
    for _ in range(3):
        rows = np.sort(random.permutation(len(X))[:200])
        other = np.setdiff1d(np.arange(len(X)), rows)
        apart = fit_as(estimator, X.iloc[rows], wanted[rows])
        together = fit_as(estimator, table[rows], wanted[rows])
        assert apart.schema == together.schema
        assert apart == together
        here, there = table[other], X.iloc[other]
        assert np.array_equal(apart.predict(there), together.predict(here))


def fit_as(estimator, X, y):
    return type(estimator)(**estimator.get_params()).fit(X, y).model_


LIMITS = [
    {},
    {"max_depth": 0},
    {"max_depth": 1},
    {"max_depth": 3, "min_samples_split": 30},
    {"min_samples_split": 0.2},
    {"max_depth": 5, "min_samples_split": 7},
    {"max_leaf_nodes": 5},
]


@pytest.mark.parametrize(
    "recipe",
    [
        {"recipe": ID3},
        {"recipe": ID3, "missing": "split"},
        {"recipe": ID3, "pruning": "error-based"},
        {"recipe": ID3, "max_bins": 3},
        {"recipe": C45},
        {"recipe": C45, "branching": "groups"},
        {"recipe": CART},
        {"recipe": CART, "missing": "surrogate"},
        {"recipe": CART, "missing": "branch"},
        {"recipe": CART, "costs": ((0, 3), (1, 0))},
        {"recipe": CART, "criterion": "variance"},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_trees_that_are_cut_are_those_that_are_grown(recipe, weighted):
    """In every order: the widest limits first, last, and in between."""
    from dataclasses import replace

    X, y, numbers = mixed(250)
    given = dict(recipe)
    start = replace(given.pop("recipe"), **given)
    wanted = numbers if start.is_regression else y
    weights = np.random.default_rng(0).choice([0, 0.5, 1, 2.25], len(y))
    weights = weights if weighted else None
    alone = [
        fit_tree(X, wanted, replace(start, **limit), sample_weight=weights)
        for limit in LIMITS
    ]
    for order in ([0, 1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1, 0], [2, 4, 3, 1, 0, 6, 5]):
        table = EncodedTable(X)
        for at in order:
            own = replace(start, **LIMITS[at])
            assert fit_tree(table, wanted, own, sample_weight=weights) == alone[at]


def test_other_targets_and_weights_of_the_same_rows_are_told_apart():
    X, y, numbers = mixed()
    table = EncodedTable(X)
    flipped = np.where(y == "yes", "no", "yes")
    weights = np.linspace(0.1, 2, len(y))
    for labels in (y, flipped, y):
        for own in (None, weights, weights[::-1]):
            together = fit_tree(table, labels, sample_weight=own)
            assert together == fit_tree(X, labels, sample_weight=own)
    assert fit_tree(table, numbers, CARTRegressor().recipe) == fit_tree(
        X, numbers, CARTRegressor().recipe
    )


def test_choices_of_columns_are_told_apart():
    X, y, _ = mixed()
    table = EncodedTable(X)
    for options in (
        {},
        {"categorical_features": ["whole"]},
        {"categorical_features": "all"},
        {"categories": {"whole": list(range(9))}},
        {"categories": {"whole": list(range(12))}},
        {"categories": {"flag": [True, False]}},
    ):
        assert fit_tree(table, y, **options) == fit_tree(X, y, **options)


def test_a_function_as_criterion_is_asked_each_time():
    X, y, _ = mixed()
    table = EncodedTable(X)
    sign = [1.0]

    def moody(parent, branches):
        right = branches.max(axis=2).sum(axis=1)
        return sign[0] * right / parent.sum(axis=1)

    first = ID3Classifier(criterion=moody).fit(table, y).model_
    sign[0] = -1.0
    assert ID3Classifier(criterion=moody).fit(table, y).model_ != first


def test_rows_are_taken_in_many_ways():
    X, _, _ = mixed(20)
    table = EncodedTable(X)
    assert (len(table), table.shape) == (20, (20, 5))
    assert repr(table[[1]]) == "<encoded table: 1 row, 5 columns>"
    by_list, mask = table[[1, 3, -1]], np.zeros(20, dtype=bool)
    mask[[1, 3, 19]] = True
    assert by_list is table.take(mask)  # the same rows are kept
    assert len(table[5:8]) == 3
    assert len(table[np.array([], dtype=float)]) == 0
    assert by_list[[2]].column(1).values[0] == X["number"].iloc[19]
    with pytest.raises(DataError, match=r"Row 20 is not in an EncodedTable of 20 rows"):
        table[[0, 20]]
    with pytest.raises(DataError, match=r"a list of positions, a mask of length 20 or"):
        table[3]
    with pytest.raises(DataError, match=r"Got list of shape \(2, 1\)"):
        table[[[1], [2]]]


def test_an_encoded_table_does_not_follow_the_table():
    cells = np.array([[0.0], [1.0], [2.0], [3.0]])
    table = EncodedTable(cells)
    cells[:] = 7.0
    assert table.column(0).values.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        table.column(0).values[0] = 1


def test_an_encoded_table_is_pickled_without_what_it_remembers():
    X, y, _ = mixed()
    table = EncodedTable(X)
    small = len(pickle.dumps(table))
    model = fit_tree(table, y)
    table[np.arange(200)]
    assert len(pickle.dumps(table)) == small
    assert fit_tree(pickle.loads(pickle.dumps(table)), y) == model


def test_what_is_kept_is_bounded_and_the_last_used_stays():
    store = CacheStore(100)
    cache = LRUCache(store, "rows")
    for name in "abc":
        cache.put(name, name.upper(), 40)
    assert [cache.get(name) for name in "abc"] == [None, "B", "C"]
    assert cache.recall("b", lambda: "new", len) == "B"
    cache.put("d", "D", 40)
    assert [cache.get(name) for name in "bcd"] == ["B", None, "D"]
    cache.put("e", "too large", 101)
    assert cache.get("e") is None
    assert digest(np.arange(3)) != digest(np.arange(3.0)) != digest(None)


def test_little_room_changes_nothing():
    X, y, _ = mixed()
    table = EncodedTable(X, cache_size=0)
    for depth in (1, 3, None, 2):
        own = ID3Classifier(max_depth=depth)
        assert own.fit(table, y).model_ == own.fit(X, y).model_


# Tables that come back


@pytest.fixture
def recognition(monkeypatch):
    fresh = Fingerprints()
    monkeypatch.setattr(base, "FINGERPRINTS", fresh)
    return fresh


def forms(X):
    words = X[["text", "kind"]].astype(object).to_numpy()
    return {
        "frame": X,
        "objects": X.astype(object),
        "words": words,
        "numbers": X[["whole", "flag"]].to_numpy(dtype=float),
    }


@pytest.mark.parametrize("kernel", ["native", "reference"])
@pytest.mark.parametrize("form", ["frame", "objects", "words", "numbers"])
def test_a_table_that_comes_back_is_known(form, kernel, recognition, monkeypatch):
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    X, y, _ = mixed()
    table = forms(X)[form]
    rows = np.arange(0, len(X), 2)

    def part():
        return table.iloc[rows] if isinstance(table, pd.DataFrame) else table[rows]

    alone = ID3Classifier().fit(EncodedTable(part()), y[rows]).model_
    first = recognition.known_table(part())
    assert not isinstance(first, EncodedTable)  # once is no habit
    kept = recognition.known_table(part())
    assert isinstance(kept, EncodedTable)
    assert recognition.known_table(part()) is kept
    assert ID3Classifier().fit(part(), y[rows]).model_ == alone


@pytest.mark.parametrize("kernel", ["native", "reference"])
def test_names_are_part_of_a_table(kernel, recognition, monkeypatch):
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    X, _, _ = mixed()
    for _ in range(3):
        recognition.known_table(X)
    other = X.rename(columns={"text": "words"})
    assert recognition.known_table(other) is other
    for _ in range(3):
        found = recognition.known_table(other)
    assert found.names == tuple(other.columns)
    assert recognition.known_table(X).names == tuple(X.columns)
    numbered = X.rename(columns={"text": 3})
    assert recognition.known_table(numbered) is numbered


def test_every_model_of_a_fold_predicts_as_alone(recognition):
    """Models that share their columns use other ones of them."""
    X, y, _ = mixed()
    rows, rest = np.arange(0, len(X), 2), np.arange(1, len(X), 2)
    for settings in (
        {"max_depth": 1},
        {"max_depth": 0},
        {},
        {"max_depth": 2, "threshold": "midpoint"},
        {"unseen": "error"},
    ):
        for kind in (ID3Classifier, CARTClassifier):
            trained = [kind(**settings) for _ in range(4)]
            alone = fit_tree(X.iloc[rows], y[rows], trained[0].recipe)
            for tree in trained:
                tree.fit(X.iloc[rows], y[rows])
                assert tree.model_ == alone
                given = X.iloc[rows if "unseen" in settings else rest]
                assert list(tree.predict(given)) == list(alone.predict(given))
    with pytest.raises(DataError, match="text"):
        trained[0].predict(X.iloc[rest, 1:])


def changed(table, row, column, value):
    """Change one cell where it lies."""
    if isinstance(table, pd.DataFrame):
        table.iloc[row, column] = value
    else:
        table[row, column] = value


@pytest.mark.parametrize("form", ["frame", "objects", "words", "numbers"])
@pytest.mark.parametrize("row", [0, 149, 299])
def test_a_table_that_changes_is_read_again(form, row, recognition):
    """The user's own table, changed in place between fits."""
    X, y, _ = mixed()
    table = forms(X)[form].copy()
    value = 11 if form == "numbers" else "g"
    for _ in range(3):
        ID3Classifier().fit(table, y)
    old = table.iloc[row, 0] if isinstance(table, pd.DataFrame) else table[row, 0]
    changed(table, row, 0, value if old != value else "b")
    for _ in range(3):
        now = ID3Classifier().fit(table, y)
        assert now.model_ == fit_tree(EncodedTable(table), y)
        assert now.score(table, y) == accuracy_score(y, now.predict(table))
    changed(table, row, 0, old)
    assert ID3Classifier().fit(table, y).model_ == fit_tree(EncodedTable(table), y)


def test_tables_with_the_same_look_are_compared_byte_by_byte(recognition, monkeypatch):
    """Even if the sampled bytes were all the same."""
    from branchwise.data import cache as recognise

    monkeypatch.setattr(recognise, "crc32", lambda _: 0)
    X, y, _ = mixed()
    for _ in range(4):
        for start in (0, 50, 100):
            part, labels = X.iloc[start : start + 200], y[start : start + 200]
            own = ID3Classifier().fit(part, labels).model_
            assert own == fit_tree(EncodedTable(part), labels)


def test_names_and_types_of_columns_count(recognition):
    X, y, _ = mixed()
    numbers = X[["whole"]]
    for table in (numbers, numbers.rename(columns={"whole": "other"})):
        for _ in range(3):
            own = ID3Classifier().fit(table, y)
            assert own.feature_names_in_.tolist() == list(table.columns)
    for dtype in (np.int64, np.float64, np.int8):
        for _ in range(3):
            own = ID3Classifier().fit(numbers.astype(dtype), y)
            assert own.model_ == fit_tree(EncodedTable(numbers), y)


def test_dictionaries_and_masks_count(recognition):
    """The same codes with other names, the same numbers with other gaps."""
    codes = np.tile([0, 1, 2], 40)
    y = np.tile(["no", "yes"], 60)
    for names in (["a", "b", "c"], ["c", "b", "a"], ["x", "b", "a"]):
        words = pa.DictionaryArray.from_arrays(codes, pa.array(names))
        kinds = pd.Categorical.from_codes(codes, names)
        gaps = pd.array(codes, dtype="Int64")
        gaps[names.index("b") :: 7] = pd.NA
        for cells in (
            pd.arrays.ArrowExtensionArray(pa.chunked_array([words])),
            kinds,
            kinds.as_ordered(),
            gaps,
            pd.array(np.array(names)[codes], dtype=pd.ArrowDtype(pa.string())),
        ):
            table = pd.DataFrame({"c": cells})
            for _ in range(4):
                found = ID3Classifier().fit(table, y).model_
                assert found == fit_tree(EncodedTable(table), y)


def test_the_order_of_columns_and_weights_count(recognition):
    X, y, _ = mixed()
    turned = X[X.columns[::-1]]
    weights = np.linspace(0.1, 2, len(y))
    for _ in range(3):
        for table in (X, turned):
            for own in (None, weights, weights[::-1]):
                for estimator in (C45Classifier(), CARTClassifier()):
                    tree = estimator.fit(table, y, own)
                    recipe = estimator.recipe
                    assert tree.model_ == fit_tree(
                        EncodedTable(table), y, recipe, sample_weight=own
                    )
                    # Columns are asked by name, in whatever order they come.
                    for rows in (X, turned):
                        wanted = tree.model_.predict(EncodedTable(rows))
                        assert np.array_equal(tree.predict(rows), wanted)
                        assert tree.score(rows, y, own) == accuracy_score(
                            y, wanted, sample_weight=own
                        )


def words_with_gaps(n_rows, first_gap):
    """Return Arrow texts that differ in which cells are there, not in their bytes."""
    whole = pa.array(["a", "b", "c", "d"] * (n_rows // 4), pa.large_string())
    known = np.ones(n_rows, dtype=bool)
    known[first_gap::9] = False
    bits = pa.py_buffer(np.packbits(known, bitorder="little").tobytes())
    _, offsets, texts = whole.buffers()
    gapped = pa.Array.from_buffers(whole.type, n_rows, [bits, offsets, texts])
    return pd.DataFrame({"word": pd.Series(gapped, dtype="str")})


def test_gaps_count_where_all_bytes_are_the_same(recognition):
    n_rows = 120
    y = np.tile(["no", "yes", "no"], n_rows // 3)
    tables = [words_with_gaps(n_rows, first) for first in (0, 1, n_rows)]
    for _ in range(4):
        for table in tables:
            own = ID3Classifier().fit(table, y).model_
            assert own == fit_tree(EncodedTable(table), y)
            assert own.schema.columns[0].has_missing == (table is not tables[-1])


def test_a_pandas_without_a_quick_way_is_asked_in_public(recognition, monkeypatch):
    X, _, _ = mixed()
    with monkeypatch.context() as other:
        # What a pandas without blocks, and without arrays of columns, leaves.
        other.setattr(series, "_blocks", lambda _: None)
        for quick in (pd.DataFrame._iter_column_arrays, None):
            other.setattr(pd.DataFrame, "_iter_column_arrays", quick)
            kept = [recognition.known_table(X) for _ in range(3)][-1]
            assert isinstance(kept, EncodedTable)
    assert kept.names == tuple(X.columns)


# Labels that come back

LABELS = {
    "texts": lambda y: pd.Series(y, dtype="str", name="play"),
    "objects": lambda y: pd.Series(y, dtype=object),
    "kinds": lambda y: pd.Series(pd.Categorical(y), name=3),
    "array": lambda y: np.asarray(y, dtype=str),
    "object array": lambda y: np.asarray(y, dtype=object),
    "flags": lambda y: pd.Series(y == "yes"),
    "numbers": lambda y: np.where(y == "yes", 7, 3),
}


@pytest.mark.parametrize("form", LABELS)
def test_labels_that_come_back_are_known(form, recognition):
    X, y, _ = mixed()
    labels = LABELS[form](y)
    alone = fit_tree(X, labels)
    assert not isinstance(recognition.known_labels(labels), EncodedLabels)
    kept = recognition.known_labels(labels.copy())
    assert isinstance(kept, EncodedLabels)
    assert recognition.known_labels(labels.copy()) is kept
    own = ID3Classifier().fit(X, labels)
    assert own.model_ == alone
    assert own.model_.schema == alone.schema
    assert own.score(X, labels) == accuracy_score(labels, own.predict(X))
    assert own.classes_.dtype == alone.schema.class_array.dtype
    with pytest.raises(ValueError, match="read-only"):
        kept.codes[0] = 1


@pytest.mark.parametrize("form", LABELS)
@pytest.mark.parametrize("row", [0, 149, 299])
def test_labels_that_change_are_read_again(form, row, recognition):
    X, y, _ = mixed()
    labels = LABELS[form](y).copy()
    for _ in range(3):
        ID3Classifier().fit(X, labels)
    other = labels[np.argmax(y != y[row])]
    labels[row] = other
    for _ in range(3):
        now = ID3Classifier().fit(X, labels)
        assert now.model_ == fit_tree(X, labels)
        assert now.score(X, labels) == accuracy_score(labels, now.predict(X))


def test_the_name_of_labels_counts(recognition):
    X, y, _ = mixed()
    for _ in range(3):
        for name in ("play", "other", None, 1, "1"):
            own = ID3Classifier().fit(X, pd.Series(y, name=name))
            wanted = name if isinstance(name, str) else None
            assert own.model_.schema.target == wanted


def test_wrong_labels_are_refused_each_time(recognition):
    X, y, _ = mixed()
    gaps = np.where(np.arange(len(y)) == 70, None, y)
    for _ in range(3):
        with pytest.raises(DataError, match="y is missing in 1 row, the first of them"):
            ID3Classifier().fit(X, gaps)
        ID3Classifier().fit(X, y)
        with pytest.raises(DataError, match="Got 300 labels for 299 rows"):
            ID3Classifier().fit(X[1:], y)


def test_labels_that_were_read_are_put_in_the_order_of_declared_classes():
    X, y, _ = mixed()
    read = EncodedLabels(*learn_target(y))
    order = ["yes", "never", "no"]
    assert fit_tree(X, read, classes=order) == fit_tree(X, y, classes=order)
    with pytest.raises(DataError, match="classes must name every class of y once"):
        fit_tree(X, read, classes=["yes"])


def test_recipes_that_are_known_are_checked_as_they_are():
    """True is equal to 1, and 2.0 to 2, but they are not allowed where those are."""
    assert ID3Classifier(max_depth=1).recipe is ID3Classifier(max_depth=1).recipe
    with pytest.raises(ParameterError, match="max_depth must be"):
        ID3Classifier(max_depth=True).recipe  # noqa: B018
    assert ID3Classifier(min_samples_leaf=2).recipe.min_samples_leaf == 2
    with pytest.raises(ParameterError, match="min_samples_leaf must be"):
        ID3Classifier(min_samples_leaf=2.0).recipe  # noqa: B018
    costs = [[0, 1], [2, 0]]
    estimator = ID3Classifier(costs=costs)
    assert estimator.recipe.costs == ((0, 1), (2, 0))
    costs[0][1] = 5
    assert estimator.recipe.costs == ((0, 5), (2, 0))


def test_cells_that_may_change_inside_are_not_kept(recognition):
    cell = np.array(1.0)
    table = np.array([[cell], [2.0], [3.0], [4.0]], dtype=object)
    table[0, 0] = cell
    for _ in range(4):
        assert recognition.known_table(table) is table


def test_the_trees_of_others_cannot_be_changed():
    X, y, _ = mixed()
    table = EncodedTable(X)
    first, second = fit_tree(table, y), fit_tree(table, y)
    with pytest.raises(ValueError, match="read-only"):
        first.tree.weights[0] = 7.0
    assert second == fit_tree(X, y)


def test_small_tables_and_no_room(recognition):
    X, _, _ = mixed()
    for _ in range(3):
        assert recognition.known_table(few := X.iloc[:63]) is few
        assert Fingerprints(cache_size=0).known_table(X) is X


def test_others_and_large_tables_are_left_alone(recognition, monkeypatch):
    from branchwise.data import cache as recognise

    X, _, _ = mixed()
    monkeypatch.setattr(recognise, "_LARGE", 100)
    for table in (X, X[["number"]].to_numpy(), X.to_dict("list"), 3, X["number"]):
        for _ in range(3):
            assert recognition.known_table(table) is table


def test_searches_find_the_same_whatever_the_form(recognition):
    car = datasets.load("car")
    X, y = pd.DataFrame(car.X), np.array(car.y)
    grid = {"max_depth": [2, 4, None], "min_samples_leaf": [1, 5]}
    found = {}
    for name, table in {"frame": X, "encoded": EncodedTable(X)}.items():
        search = GridSearchCV(ID3Classifier(), grid, cv=3, return_train_score=True).fit(
            table, y
        )
        found[name] = search.cv_results_
        assert search.best_estimator_.score(X, y) == search.best_estimator_.score(
            table, y
        )
    for part in ("mean_test_score", "std_test_score", "mean_train_score"):
        assert np.array_equal(found["frame"][part], found["encoded"][part])
    assert cross_val_score(ID3Classifier(), EncodedTable(X), y, cv=2).shape == (2,)


def test_the_score_is_scikit_learns():
    X, y, _ = mixed()
    tree = ID3Classifier(max_depth=2).fit(X, y)
    weights = np.linspace(0, 1, len(y))
    predicted = tree.predict(X)
    assert tree.score(X, y) == accuracy_score(y, predicted)
    assert tree.score(X, list(y)) == accuracy_score(y, predicted)
    assert tree.score(X, pd.Series(y)) == accuracy_score(y, predicted)
    assert tree.score(X, y, weights) == accuracy_score(
        y, predicted, sample_weight=weights
    )
    only = y == "yes"  # rows without one of the classes
    assert tree.score(X[only], y[only]) == accuracy_score(y[only], predicted[only])
    with pytest.raises(ValueError, match="Found empty input array"):
        tree.score(X[:0], y[:0])
    strange = np.where(y == "yes", "other", y)
    assert tree.score(X, strange) == accuracy_score(strange, predicted)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        tree.score(X, y[:-1])


def test_the_cache_can_be_switched_off(monkeypatch):
    X = pd.DataFrame({"x": [str(i % 9) for i in range(200)]})
    cache = Fingerprints()
    for _ in range(2):
        cache.known_table(X)
    assert cache.known_table(X) is not X
    monkeypatch.setenv("BRANCHWISE_CACHE", "off")
    assert cache.known_table(X) is X
    monkeypatch.setenv("BRANCHWISE_CACHE", "0")
    with pytest.raises(ParameterError, match="BRANCHWISE_CACHE must be 'on' or 'off'"):
        cache.known_table(X)
