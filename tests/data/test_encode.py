"""What columns are taken for, and how cells become the codes of a schema."""

from __future__ import annotations

import enum
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from branchwise import BranchwiseWarning, Recipe, fit_tree
from branchwise.data import columns as objects
from branchwise.data.columns import Numbers
from branchwise.data.encode import encode_columns, learn_columns
from branchwise.data.frames import open_table
from branchwise.data.table_schema import Column, Schema
from branchwise.data.target import learn_target
from branchwise.errors import DataError

X = {"pet": ["cat", "dog", "cat"], "legs": [4, 4, 3], "weight": [4.5, 20.0, 3.5]}


def learn(table, categorical_features="from_dtype", categories=None):
    return learn_columns(open_table(table), categorical_features, categories)


def encode(table, columns, named=True):
    schema = Schema(tuple(columns), ("no", "yes"), None, named)
    used = range(len(schema.columns))
    return [d.tolist() for d in encode_columns(open_table(table), schema, used).data]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("from_dtype", "categorical numeric numeric"),
        ("all", "categorical categorical categorical"),
        ([], "categorical numeric numeric"),
        (["legs"], "categorical categorical numeric"),
        (["legs", "weight"], "categorical categorical categorical"),
        (("weight",), "categorical numeric categorical"),
        ([1], "categorical categorical numeric"),
        ([-1], "categorical numeric categorical"),
        (np.array([1, 2]), "categorical categorical categorical"),
        (np.array(["legs"]), "categorical categorical numeric"),
        ([0], "categorical numeric numeric"),
        ([False, True, False], "categorical categorical numeric"),
        (np.array([True, False, True]), "categorical numeric categorical"),
        ([False, False, False], "categorical numeric numeric"),
        ({"legs"}, "categorical categorical numeric"),
        (pd.Index(["legs"]), "categorical categorical numeric"),
    ],
    ids=str,
)
def test_categorical_features(choice, expected):
    columns, _ = learn(X, choice)
    assert [column.kind for column in columns] == expected.split()


def test_numbers_that_are_names_keep_their_look():
    columns, data = learn({"legs": [4, None, 3, 4], "size": [0.5, 1, 0.5, 2]}, "all")
    assert repr(columns[0].categories) == "(3, 4)"
    assert repr(columns[1].categories) == "(0.5, 1.0, 2.0)"
    assert data.data[0].tolist() == [1, 2, 0, 1]
    assert data.data[1].tolist() == [0, 1, 0, 2]


def test_whole_floats_become_whole_numbers_only_where_exact():
    columns, _ = learn({"a": [1.0, 2.0], "b": [1.0, 1e300]}, "all")
    assert repr(columns[0].categories) == "(1, 2)"
    assert repr(columns[1].categories) == "(1.0, 1e+300)"


def test_declared_categories_may_never_occur():
    declared = {"pet": ["fish", "dog", "cat"], 1: [2, 3, 4]}
    columns, data = learn(X, categories=declared)
    assert columns[0].categories == ("fish", "dog", "cat")
    assert columns[1] == Column("legs", "categorical", (2, 3, 4), False)
    assert columns[2].kind == "numeric"
    assert [d.tolist() for d in data.data[:2]] == [[2, 1, 2], [2, 2, 1]]


@pytest.mark.parametrize(
    "declared",
    [
        ["fish", "dog", "cat"],
        ("fish", "dog", "cat"),
        np.array(["fish", "dog", "cat"]),
        pd.Index(["fish", "dog", "cat"]),
        pl.Series(["fish", "dog", "cat"]),
        dict.fromkeys(["fish", "dog", "cat"]),
    ],
    ids=lambda declared: type(declared).__name__,
)
def test_declared_categories_of_any_sequence(declared):
    columns, _ = learn(X, categories={"pet": declared})
    assert repr(columns[0].categories) == "('fish', 'dog', 'cat')"


def test_declared_categories_overrule_those_of_the_column():
    cells = pd.Categorical(["b", "a"], categories=["b", "a"], ordered=True)
    columns, data = learn({"c": cells}, categories={"c": ["a", "b", "z"]})
    assert columns[0] == Column("c", "categorical", ("a", "b", "z"), False)
    assert data.data[0].tolist() == [1, 0]


def test_missing_values_have_a_code_of_their_own():
    columns, data = learn({"a": ["x", None], "b": [None, 2.5], "c": [True, False]})
    assert [column.has_missing for column in columns] == [True, True, False]
    assert data.data[0].tolist() == [0, columns[0].missing_code]
    assert np.isnan(data.data[1][0])
    assert columns[2].categories == (False, True)


@pytest.mark.parametrize(
    ("n_values", "dtype"),
    [(1, np.uint8), (254, np.uint8), (255, np.uint16), (65_534, np.uint16)],
)
def test_codes_are_as_narrow_as_can_be(n_values, dtype):
    names = [f"{i:05}" for i in range(n_values)]
    columns, data = learn({"a": [*names, None]})
    assert data.data[0].dtype == dtype
    assert data.data[0].tolist() == list(range(n_values + 1))
    assert columns[0].unseen_code <= np.iinfo(dtype).max


def test_only_values_that_occur_are_possible_without_a_declaration():
    columns, _ = learn({"a": [True, None], "b": np.array([True, True])})
    assert columns[0].categories == (True,)
    assert columns[1].categories == (True,)


COLUMNS = (
    Column("pet", "categorical", ("cat", "dog"), True),
    Column("legs", "categorical", (3, 4)),
    Column("weight", "numeric"),
    Column("tame", "categorical", (False, True)),
)


def test_new_values_get_the_code_of_unseen_ones():
    table = {
        "pet": ["dog", None, "owl"],
        "legs": [4, 2, 3],
        "weight": [1, 2, 3],
        "tame": [True, False, None],
    }
    pet, legs, weight, tame = encode(table, COLUMNS)
    assert pet == [1, COLUMNS[0].missing_code, COLUMNS[0].unseen_code]
    assert legs == [1, COLUMNS[1].unseen_code, 0]
    assert weight == [1.0, 2.0, 3.0]
    assert tame == [1, 0, COLUMNS[3].missing_code]


def test_the_codes_of_another_table_are_translated():
    declared = pd.Categorical(["dog", "owl", None], categories=["owl", "dog", "cat"])
    numbers = pd.Categorical([4, 3, None], categories=[4, 3])
    table = {"weight": numbers, "tame": [True] * 3, "legs": numbers, "pet": declared}
    pet, legs, weight, _ = encode(table, COLUMNS)
    assert pet == [1, COLUMNS[0].unseen_code, COLUMNS[0].missing_code]
    assert legs == [1, 0, COLUMNS[1].missing_code]
    assert weight[:2] == [4.0, 3.0]
    assert np.isnan(weight[2])


@pytest.mark.parametrize(
    "nothing",
    [
        [None, None],
        np.array([np.nan, np.nan]),
        pd.array([None, None], dtype="boolean"),
        pd.Categorical([None, None], categories=["x", "y"]),
        pd.Categorical([None, None], categories=[1, 2]),
        pl.Series([None, None]),
        pl.Series([None, None], dtype=pl.String),
        pl.Series([None, None], dtype=pl.Int8),
    ],
    ids=repr,
)
def test_columns_without_a_value_have_any_type(nothing):
    pet, legs, weight, tame = encode(
        dict.fromkeys(["pet", "legs", "weight", "tame"], nothing), COLUMNS
    )
    assert pet == [COLUMNS[0].missing_code] * 2
    assert legs == [COLUMNS[1].missing_code] * 2
    assert np.isnan(weight).all()
    assert tame == [COLUMNS[3].missing_code] * 2


def test_a_column_that_had_no_value_takes_any():
    column = Column("c", "categorical", (), True)
    for cells in (["a", None], [1, None], [True, None]):
        assert encode({"c": cells}, [column]) == [[column.unseen_code, 0]]


def test_only_columns_that_are_asked_about_are_read():
    schema = Schema(COLUMNS, ("no", "yes"))
    table = {"pet": ["dog"], "legs": [[]], "weight": ["?"], "tame": [{}]}
    data = encode_columns(open_table(table), schema, [0])
    assert data.data[0].tolist() == [1]


def test_names_are_matched_and_positions_where_there_are_none():
    columns = (Column("x0", "numeric"), Column("x1", "numeric"))
    assert encode([[1, 2]], columns, named=False) == [[1.0], [2.0]]
    with pytest.warns(BranchwiseWarning, match="X has column names but the tree was "):
        assert encode({"b": [1], "a": [2]}, columns, named=False) == [[1.0], [2.0]]
    with pytest.warns(BranchwiseWarning, match="X has no column names but the tree "):
        assert encode([[1, 2]], columns) == [[1.0], [2.0]]


def test_the_warning_about_names_in_full():
    model = fit_tree({"a": ["x", "y"]}, [0, 1])
    with pytest.warns(BranchwiseWarning) as caught:
        assert model.predict(np.array([["y"]])).tolist() == [1]
    (warning,) = caught
    assert str(warning.message) == (
        "X has no column names but the tree was fitted with them; columns are matched "
        "by position. Pass the same kind of table to both."
    )


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", "b"], "('a', 'b')"),
        ([10, 2, 10], "(2, 10)"),
        ([2.0, -1.0, 2.0], "(-1, 2)"),
        ([True, False, True], "(False, True)"),
        (np.array(["b", "a", "b"]), "('a', 'b')"),
        (np.array([1, 0, 1], dtype=np.uint8), "(0, 1)"),
        (pd.Series([True, False, True]), "(False, True)"),
        (pd.Series([1, 0, 1], dtype="Int64"), "(0, 1)"),
        (pd.Categorical(["b", "a", "b"], categories=["z", "b", "a"]), "('a', 'b')"),
        (pl.Series(["b", "a", "b"], dtype=pl.Enum(["z", "b", "a"])), "('a', 'b')"),
        (pl.Series([True, False, True]), "(False, True)"),
        (pd.cut(pd.Series([5, 1, 5]), [0, 2, 6]), "('(0, 2]', '(2, 6]')"),
        (range(2, -1, -1), "(0, 1, 2)"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_labels(y, classes):
    got, codes = learn_target(y, 3)
    assert repr(got) == classes
    assert codes[0] > codes[1]
    assert codes.dtype == np.intp


@pytest.mark.parametrize(
    ("y", "dtype"),
    [(["a", "b"], "U"), ([1, 2], "i"), ([True, False], "b"), ([1.0, 2.0], "i")],
)
def test_predictions_have_the_type_of_the_labels(y, dtype):
    predicted = fit_tree({"a": ["x", "y"]}, y).predict({"a": ["x", "y"]})
    assert predicted.dtype.kind == dtype
    assert predicted.tolist() == y


def test_the_target_has_the_name_of_its_series():
    assert (
        fit_tree({"a": [1, 2]}, pd.Series([0, 1], name="play")).schema.target == "play"
    )
    assert fit_tree({"a": [1, 2]}, pl.Series("play", [0, 1])).schema.target == "play"
    assert fit_tree({"a": [1, 2]}, [0, 1]).schema.target is None


NAN_WITH_SIGN = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)[0]


@pytest.mark.parametrize("kernel", ["native", "reference"])
def test_numbers_as_names_are_sorted_and_zeros_are_one(monkeypatch, kernel):
    if kernel == "native":
        pytest.importorskip("branchwise._native")
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    cells = np.array([2.5, -0.0, np.nan, 0.0, NAN_WITH_SIGN, -7, 2.5, 1e300])
    (column,), data = learn({"a": cells}, "all")
    assert repr(column.categories) == "(-7.0, 0.0, 2.5, 1e+300)"
    assert data.data[0].tolist() == [2, 1, 4, 1, 4, 0, 2, 3]
    (column,), _ = learn({"a": np.array([3.0, np.nan, -0.0])}, "all")
    assert repr(column.categories) == "(0, 3)"
    (column,), data = learn({"a": np.array([np.nan, np.nan])}, "all")
    assert (column.categories, data.data[0].tolist()) == ((), [0, 0])


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i8", "u8", ">i4"])
def test_integers_are_the_same_labels_in_every_width(dtype):
    for cells in ([0, 1, 1], [3, 9, 3, 100], [5, 5], [0, 120, 7]):
        expected, expected_codes = learn_target([float(cell) for cell in cells])
        for y in (np.array(cells, dtype), pd.Series(cells, dtype=dtype[-2:])):
            classes, codes = learn_target(y)
            assert repr(classes) == repr(expected)
            assert codes.tolist() == expected_codes.tolist()
            assert codes.dtype == np.intp
    classes, codes = learn_target(np.array([-1, 1, -1]))
    assert (classes, codes.tolist()) == ((-1, 1), [0, 1, 0])
    assert learn_target(np.array([2000, 1, 2000]))[0] == (1, 2000)


def test_masked_labels_are_not_taken_for_labels():
    y = np.ma.MaskedArray([0, 1, 1], mask=[False, False, True])
    with pytest.raises(DataError, match="y is missing in 1 row, the first of them row"):
        learn_target(y)


def test_values_that_are_rare_are_found():
    cells = ["often"] * 10_000 + ["once"]
    (column,), data = learn({"a": pl.Series(cells, dtype=pl.Categorical)})
    assert column.categories == ("often", "once")
    assert column.categories[data.data[0][-1]] == "once"
    codes = np.array([1] * 10_000 + [0], dtype=np.int8)
    y = pd.Categorical.from_codes(codes, ["a", "b", "never"])
    classes, labels = learn_target(y)
    assert (classes, labels[-1], labels[0]) == (("a", "b"), 0, 1)


def test_the_data_of_the_user_are_read_and_not_written():
    numbers = np.linspace(0, 1, 50)
    numbers[7] = np.nan
    codes = np.arange(50, dtype=np.int8) % 3
    codes[5] = -1
    before = numbers.copy(), codes.copy()
    packed = np.frombuffer(b"." + numbers.tobytes(), np.float64, offset=1)
    assert not packed.flags.aligned
    pets = pd.Categorical.from_codes(codes, ["cat", "dog", "ox"])
    for cells in (
        numbers,
        packed,
        pd.Series(numbers),
        np.stack([numbers] * 2, 1)[:, 0],
    ):
        table = {"n": cells, "c": pets}
        y = np.arange(50) % 2
        model = fit_tree(table, y, Recipe(missing="split", max_bins=5))
        assert model.score(table, y) > 0.5
        _, data = learn(table)
        assert all(cells.flags.aligned for cells in data.data)
        np.testing.assert_array_equal(data.data[0], before[0])
    np.testing.assert_array_equal(numbers, before[0])
    np.testing.assert_array_equal(pets.codes, before[1])


class Shade(str, enum.Enum):  # noqa: UP042  (a text that is an enumeration)
    DARK = "dark"


@pytest.fixture
def _compiled(monkeypatch):
    pytest.importorskip("branchwise._native")
    monkeypatch.delenv("BRANCHWISE_KERNEL", raising=False)


MANY = [
    ["cat", "dog", None, float("nan"), pd.NA],
    [True, False, None],
    [1, 2.5, Decimal("2.5"), None],
    [Shade.DARK, "dark", "light"],
    [np.str_("x"), "x", "y"],
    [None, float("nan")],
]


@pytest.mark.usefixtures("_compiled")
@pytest.mark.parametrize("cells", MANY, ids=repr)
def test_columns_of_few_objects_are_read_as_those_of_many(cells):
    rng = np.random.default_rng(1)
    few = [cells[k] for k in rng.integers(0, len(cells), 3000)]
    array = np.fromiter(few, dtype=object, count=len(few))
    slow = objects._read_cells("Column 'a'", few)
    for column in (few, tuple(few), array, np.stack([array, array], axis=1)[:, 1]):
        quick = objects.read_repeated("Column 'a'", column)
        assert quick is not None
        assert type(quick) is type(slow)
        if isinstance(slow, Numbers):
            np.testing.assert_array_equal(quick.values, slow.values)
        else:
            assert repr(quick.values) == repr(slow.values)
            np.testing.assert_array_equal(quick.codes, slow.codes)


@pytest.mark.usefixtures("_compiled")
def test_texts_of_numpy_are_read_as_objects():
    words = np.array(["b", "a", "", "longer"])
    cells = words[np.random.default_rng(2).integers(0, 4, 3000)]
    quick = objects.read_repeated("Column 'a'", cells)
    slow = objects._read_cells("Column 'a'", cells.tolist())
    assert quick.values == slow.values
    np.testing.assert_array_equal(quick.codes, slow.codes)


def test_columns_that_do_not_repeat_are_read_cell_by_cell():
    assert objects.read_repeated("a", ["x"] * 10) is None
    assert objects.read_repeated("a", [f"{k}" for k in range(5000)]) is None
    assert objects.read_repeated("a", np.arange(5000).astype("U")) is None
    assert objects.read_repeated("a", ["x", 1] * 3000) is None  # to be refused
