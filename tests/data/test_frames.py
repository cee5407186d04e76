"""Every form that a table may have gives the same model, to the last byte."""

from __future__ import annotations

import enum
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from branchwise import DataError, fit_tree
from branchwise.data.columns import Numbers
from branchwise.data.encode import learn_columns
from branchwise.data.frames import open_table
from branchwise.data.series import series_reader
from branchwise.data.target import learn_target
from branchwise.recipe import CART

NA = None
TABLE: dict[str, list[Any]] = {
    "outlook": ["sunny", "rain", NA, "over", "rain", "sunny", "over", "rain"],
    "windy": [True, False, False, NA, True, True, False, True],
    "temperature": [30, 12, 17, NA, 12, 25, 21, 9],
    "humidity": [0.5, 0.25, 0.75, 0.5, NA, 0.125, 0.5, 1.5],
    "nothing": [NA] * 8,
}
Y = ["no", "yes", "no", "yes", "yes", "no", "yes", "no"]
WITHOUT_NAMES = {f"x{index}": cells for index, cells in enumerate(TABLE.values())}


def test_all_containers_give_the_same_model(frame):
    expected = fit_tree(TABLE, Y).to_bytes()
    assert fit_tree(frame(TABLE), Y).to_bytes() == expected


def test_all_containers_predict_the_same(frame):
    model = fit_tree(TABLE, Y)
    test = {
        "outlook": ["rain", NA, "snow", "sunny", "over"],
        "windy": [NA, True, False, False, True],
        "temperature": [100, -5, NA, 13, 12],
        "humidity": [0.3, 0.7, 0.5, NA, 99.0],
        "nothing": [NA] * 5,
    }
    expected = model.predict_proba(test)
    np.testing.assert_array_equal(model.predict_proba(frame(test)), expected)
    np.testing.assert_array_equal(model.predict(frame(test)), model.predict(test))


def test_columns_are_found_by_name_and_others_ignored(frame):
    model = fit_tree(TABLE, Y)
    shuffled = {name: TABLE[name] for name in reversed(TABLE)}
    more = {"row": list(range(8)), **shuffled, "note": ["?"] * 8}
    expected = model.predict_proba(TABLE)
    np.testing.assert_array_equal(model.predict_proba(frame(shuffled)), expected)
    np.testing.assert_array_equal(model.predict_proba(frame(more)), expected)


def test_rows_of_containers_are_counted(frame):
    table = open_table(frame(TABLE))
    assert table.names == tuple(TABLE)
    assert table.n_rows == 8
    assert table.named


ROWS = [list(row) for row in zip(*TABLE.values(), strict=True)]


@pytest.mark.parametrize(
    "X",
    [
        ROWS,
        tuple(tuple(row) for row in ROWS),
        [np.array(row, dtype=object) for row in ROWS],
        np.array(ROWS, dtype=object),
        np.asfortranarray(np.array(ROWS, dtype=object)),
    ],
    ids=["lists", "tuples", "arrays", "object array", "Fortran order"],
)
def test_tables_without_names(X):
    expected = fit_tree(WITHOUT_NAMES, Y).to_bytes()
    got = fit_tree(X, Y).to_bytes()
    assert got == expected.replace(b'"named": true', b'"named": false')


class Colour(str, enum.Enum):  # noqa: UP042  (an enumeration as people write them)
    RED = "red"
    BLUE = "blue"


class Grade(enum.IntEnum):
    LOW = 1
    HIGH = 3


Text = getattr(np.dtypes, "StringDType", None)  # since numpy 2.0
REFERENCE = {
    "text": ["red", NA, "blue", "red"],
    "text without gaps": ["red", "blue", "blue", "red"],
    "boolean": [True, NA, False, True],
    "boolean without gaps": [True, False, False, True],
    "number": [3, NA, 1, 3],
    "number without gaps": [3, 1, 1, 3],
    "float": [0.5, NA, -2.25, 0.5],
    "nothing": [NA, NA, NA, NA],
}


def _same(reference: str, **vectors: Any) -> list[Any]:
    return [
        pytest.param(REFERENCE[reference], vector, id=f"{reference}-{name}")
        for name, vector in vectors.items()
    ]


def _masked(values: list[Any], dtype: Any) -> np.ma.MaskedArray:
    return np.ma.array(values, mask=[0, 1, 0, 0], dtype=dtype)


def _series(reference: str, dtype: Any) -> pd.Series:
    return pd.Series(REFERENCE[reference], dtype=dtype)


VECTORS = [
    *_same(
        "text",
        nan=["red", float("nan"), "blue", "red"],
        numpy_nan=["red", np.nan, "blue", "red"],
        pandas_na=["red", pd.NA, "blue", "red"],
        pandas_nat=["red", pd.NaT, "blue", "red"],
        numpy_nat=["red", np.datetime64("NaT"), "blue", "red"],
        numpy_str=[np.str_("red"), None, np.str_("blue"), "red"],
        enumeration=[Colour.RED, None, Colour.BLUE, "red"],
        objects=np.array(REFERENCE["text"], dtype=object),
        masked=_masked(["red", "x", "blue", "red"], "U4"),
        pandas=_series("text", None),
        pandas_object=_series("text", object),
        pandas_string=_series("text", "string"),
        pandas_python=_series("text", "string[python]"),
        pandas_pyarrow=_series("text", "string[pyarrow]"),
        pandas_python_nan=_series("text", pd.StringDtype("python", na_value=np.nan)),
        pandas_arrow=_series("text", pd.ArrowDtype(pa.string())),
        pandas_arrow_large=_series("text", pd.ArrowDtype(pa.large_string())),
        pandas_array=pd.array(REFERENCE["text"], dtype="string"),
        pandas_index=pd.Index(REFERENCE["text"]),
        polars=pl.Series(REFERENCE["text"]),
        polars_categorical=pl.Series(REFERENCE["text"], dtype=pl.Categorical),
        polars_object=pl.Series(REFERENCE["text"], dtype=pl.Object),
        arrow=pa.array(REFERENCE["text"]),
        arrow_large=pa.array(REFERENCE["text"], pa.large_string()),
        arrow_view=pa.array(REFERENCE["text"], pa.string_view()),
        arrow_chunks=pa.chunked_array(
            [["red", None], [], ["blue", "red"]], pa.string()
        ),
        arrow_slice=pa.array(["x", *REFERENCE["text"], "y"])[1:5],
        arrow_runs=pa.RunEndEncodedArray.from_arrays(
            [1, 2, 3, 4], pa.array(REFERENCE["text"])
        ),
    ),
    *_same(
        "text without gaps",
        fixed=np.array(["red", "blue", "blue", "red"]),
        other_byte_order=np.array(["red", "blue", "blue", "red"], dtype=">U4"),
        bytes=np.array([b"red", b"blue", b"blue", b"red"]),
        masked_nothing=np.ma.array(["red", "blue", "blue", "red"]),
        strided=np.array(["red", "-", "blue", "-", "blue", "-", "red", "-"])[::2],
    ),
    *_same(
        "boolean",
        numpy_bool=[np.True_, None, False, True],
        masked=_masked([True, True, False, True], bool),
        pandas_object=_series("boolean", object),
        pandas_boolean=_series("boolean", "boolean"),
        pandas_arrow=_series("boolean", pd.ArrowDtype(pa.bool_())),
        pandas_array=pd.array(REFERENCE["boolean"], dtype="boolean"),
        polars=pl.Series(REFERENCE["boolean"]),
        arrow=pa.array(REFERENCE["boolean"]),
        arrow_chunks=pa.chunked_array([[True, None], [False, True]]),
    ),
    *_same(
        "boolean without gaps",
        numpy=np.array([True, False, False, True]),
        pandas=pd.Series([True, False, False, True]),
        pandas_sparse=pd.Series(pd.arrays.SparseArray([True, False, False, True])),
    ),
    *_same(
        "number",
        nan=[3, float("nan"), 1, 3],
        decimal=[Decimal(3), Decimal("NaN"), Decimal("1.0"), 3],
        signalling=[3, Decimal("sNaN"), 1, 3],
        fraction=[Fraction(3), None, Fraction(2, 2), 3],
        enumeration=[Grade.HIGH, None, Grade.LOW, 3],
        numpy_numbers=[np.int8(3), None, np.float32(1), np.uint64(3)],
        objects=np.array([3, None, 1, 3], dtype=object),
        float64=np.array([3, np.nan, 1, 3]),
        masked=_masked([3, 2**60, 1, 3], np.int64),
        pandas=pd.Series([3, None, 1, 3]),
        pandas_object=_series("number", object),
        pandas_int=_series("number", "Int64"),
        pandas_uint=_series("number", "UInt8"),
        pandas_float=_series("number", "Float32"),
        pandas_float_na_and_nan=pd.Series(
            pd.arrays.FloatingArray(
                np.array([3, np.nan, 1, 3]), np.zeros(4, dtype=bool)
            )
        ),
        pandas_arrow=_series("number", pd.ArrowDtype(pa.int16())),
        pandas_arrow_decimal=_series("number", pd.ArrowDtype(pa.decimal128(5, 2))),
        pandas_array=pd.array([3, None, 1, 3], dtype="Int64"),
        polars=pl.Series([3, None, 1, 3]),
        polars_nan=pl.Series([3.0, float("nan"), 1.0, 3.0]),
        polars_decimal=pl.Series([3, None, 1, 3], dtype=pl.Decimal(5, 2)),
        polars_128_bits=pl.Series([3, None, 1, 3], dtype=pl.Int128),
        arrow=pa.array([3, None, 1, 3]),
        arrow_uint=pa.array([3, None, 1, 3], pa.uint8()),
        arrow_half=pa.array(
            [np.float16(3), None, np.float16(1), np.float16(3)], pa.float16()
        ),
        arrow_chunks=pa.chunked_array([[3], [None, 1], [3]]),
    ),
    *_same(
        "number without gaps",
        int8=np.array([3, 1, 1, 3], dtype=np.int8),
        uint64=np.array([3, 1, 1, 3], dtype=np.uint64),
        other_byte_order=np.array([3, 1, 1, 3], dtype=">i4"),
        float16=np.array([3, 1, 1, 3], dtype=np.float16),
        float32=np.array([3, 1, 1, 3], dtype=np.float32),
        long_double=np.array([3, 1, 1, 3], dtype=np.longdouble),
        range_like=pd.Index([3, 1, 1, 3]),
        pandas_sparse=pd.Series(pd.arrays.SparseArray([3, 1, 1, 3])),
        polars_uint8=pl.Series([3, 1, 1, 3], dtype=pl.UInt8),
    ),
    *_same(
        "float",
        numpy=np.array([0.5, np.nan, -2.25, 0.5]),
        single=np.array([0.5, np.nan, -2.25, 0.5], dtype=np.float32),
        fraction=[Fraction(1, 2), None, Decimal("-2.25"), 0.5],
        pandas=_series("float", None),
        pandas_nullable=_series("float", "Float64"),
        pandas_arrow=_series("float", pd.ArrowDtype(pa.float32())),
        polars=pl.Series(REFERENCE["float"]),
        arrow=pa.array(REFERENCE["float"]),
    ),
    *_same(
        "nothing",
        nats=[pd.NaT, pd.NA, None, np.timedelta64("NaT")],
        objects=np.array([None] * 4, dtype=object),
        pandas=pd.Series([None] * 4, dtype=object),
        pandas_arrow=pd.Series([None] * 4, dtype=pd.ArrowDtype(pa.null())),
        polars=pl.Series([None] * 4),
        polars_text=pl.Series([None] * 4, dtype=pl.String),
        arrow=pa.nulls(4),
        arrow_text=pa.nulls(4, pa.string()),
    ),
]


if Text is not None:
    VECTORS += _same(
        "text",
        string_dtype_nan=np.array(REFERENCE["text"], dtype=Text(na_object=None)),
        string_dtype_none=np.array(
            ["red", np.nan, "blue", "red"], dtype=Text(na_object=np.nan)
        ),
    )
    VECTORS += _same(
        "text without gaps",
        string_dtype=np.array(["red", "blue", "blue", "red"], dtype=Text()),
    )


def _learn(X: Any, categorical_features: Any = "from_dtype") -> tuple[Any, list[Any]]:
    """Learn a table of one column: what it is, and its cells."""
    columns, data = learn_columns(open_table(X), categorical_features, None)
    return columns[0], [repr(cell) for cell in data.data[0].tolist()]


@pytest.mark.parametrize(("reference", "vector"), VECTORS)
@pytest.mark.parametrize("choice", ["from_dtype", "all"])
def test_columns_of_all_types(reference, vector, choice):
    expected = _learn({"c": reference}, choice)
    assert _learn({"c": vector}, choice) == expected
    if isinstance(vector, (pd.Series, pl.Series)):
        assert _learn(vector.to_frame("c"), choice) == expected
    if isinstance(vector, (pa.Array, pa.ChunkedArray)):
        assert _learn(pa.table({"c": vector}), choice) == expected


LABELS = [param for param in VECTORS if "without gaps" in param.id]


@pytest.mark.parametrize(("reference", "vector"), LABELS)
def test_labels_of_all_types(reference, vector):
    classes, codes = learn_target(vector, 4)
    expected, expected_codes = learn_target(reference, 4)
    assert repr(classes) == repr(expected)
    assert codes.tolist() == expected_codes.tolist()


def test_numbers_are_not_rounded_on_the_way():
    cells = [0.1, 1e-300, 2**53, -(2**53), 1 / 3]
    for vector in (cells, np.array(cells), pl.Series(cells), pd.Series(cells)):
        _, encoded = learn_columns(open_table({"c": vector}), "from_dtype", None)
        assert encoded.data[0].tolist() == cells


DECLARED = ["never", "low", "high"]
CELLS = ["high", None, "low", "high"]


def _dictionary(
    codes: list[int | None],
    values: list[Any],
    index: Any = None,
    ordered: bool = False,
) -> pa.DictionaryArray:
    indices = pa.array(codes, index or pa.int8())
    return pa.DictionaryArray.from_arrays(indices, pa.array(values), ordered=ordered)


def _categories(ordered: bool) -> dict[str, Any]:
    categorical = pd.Categorical(CELLS, categories=DECLARED, ordered=ordered)
    codes = [2, None, 1, 2]
    forms = {
        "pandas": pd.Series(categorical),
        "pandas categorical": categorical,
        "pandas index": pd.CategoricalIndex(categorical),
    }
    if not ordered:
        return forms
    forms["polars enum"] = pl.Series(CELLS, dtype=pl.Enum(DECLARED))
    for index in (pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64()):
        forms[f"arrow {index}"] = _dictionary(codes, DECLARED, index, ordered)
    arrow = _dictionary(codes, DECLARED, ordered=ordered)
    return forms | {
        "pandas on Arrow": pd.Series(arrow, dtype=pd.ArrowDtype(arrow.type)),
        "arrow": arrow,
        "arrow slice": _dictionary([0, *codes, 0], DECLARED, ordered=ordered)[1:5],
        "arrow chunks": pa.chunked_array([arrow[:1], arrow[1:]]),
    }


@pytest.mark.parametrize(
    ("ordered", "vector"),
    [
        pytest.param(ordered, vector, id=f"{name}{', ordered' * ordered}")
        for ordered in (False, True)
        for name, vector in _categories(ordered).items()
    ],
)
def test_declared_categories_keep_their_order(ordered, vector):
    column, codes = _learn({"c": vector})
    assert column.kind == ("ordinal" if ordered else "categorical")
    assert column.categories == tuple(DECLARED)
    assert column.has_missing
    assert codes == ["2", "3", "1", "2"]
    if isinstance(vector, (pd.Series, pl.Series)):
        assert _learn(vector.to_frame("c")) == (column, codes)
    if isinstance(vector, (pa.Array, pa.ChunkedArray)):
        assert _learn(pa.table({"c": vector})) == (column, codes)


def test_declared_categories_give_the_same_model():
    y = ["u", "v", "v", "u"]
    models = {
        fit_tree({"c": vector}, y).to_bytes() for vector in _categories(False).values()
    }
    models.add(fit_tree({"c": CELLS}, y, categories={"c": DECLARED}).to_bytes())
    assert len(models) == 1
    ordered = {
        fit_tree({"c": vector}, y).to_bytes() for vector in _categories(True).values()
    }
    assert len(ordered) == 1
    assert models.isdisjoint(ordered)


@pytest.mark.parametrize("vector", _categories(False).values(), ids=_categories(False))
def test_labels_may_be_categories(vector):
    known = np.array([0, 2, 3])
    if isinstance(vector, pa.ChunkedArray):
        vector = vector.combine_chunks()
    chosen = (
        vector.take(pa.array(known)) if isinstance(vector, pa.Array) else vector[known]
    )
    classes, codes = learn_target(chosen, 3)
    assert classes == ("high", "low")  # sorted, and only those that occur
    assert codes.tolist() == [0, 1, 0]


def test_chunks_may_have_different_dictionaries():
    chunks = pa.chunked_array(
        [
            _dictionary([0, 1], ["b", "a"]),
            _dictionary([0, None, 1], ["c", "b"]),
            _dictionary([1, 0], ["b", "a"]),
        ]
    )
    column, codes = _learn(pa.table({"c": chunks}))
    assert column.categories == ("a", "b", "c")
    assert codes == ["1", "0", "2", "3", "1", "0", "1"]


def test_dictionaries_without_an_order_are_only_stored_so():
    plain = _learn({"c": ["high", None, "low", "high"]})
    for codes, values in (
        ([2, None, 1, 2], ["never", "low", "high"]),
        ([0, None, 1, 0], ["high", "low"]),
    ):
        arrow = _dictionary(codes, values)
        for vector in (arrow, pd.Series(arrow, dtype=pd.ArrowDtype(arrow.type))):
            assert _learn({"c": vector}) == plain
        assert _learn(pa.table({"c": arrow})) == plain


def test_chunks_with_an_order_must_agree_on_it():
    one = _dictionary([0, 1], ["low", "high"], ordered=True)
    longer = _dictionary([2, 0], ["low", "high", "top"], ordered=True)
    for chunks in ([one, longer], [longer, one]):
        column, _ = _learn(pa.table({"c": pa.chunked_array(chunks)}))
        assert column.categories == ("low", "high", "top")
    other = _dictionary([0, 1], ["high", "low"], ordered=True)
    with pytest.raises(DataError, match="'c' has its values in one order in some"):
        _learn(pa.table({"c": pa.chunked_array([one, other])}))


def test_chunks_may_have_more_values_than_an_index_can_count():
    parts = [[f"{part}{i}" for i in range(100)] for part in "ab"]
    chunks = pa.chunked_array([_dictionary(list(range(100)), part) for part in parts])
    column, codes = _learn(pa.table({"c": chunks}))
    assert column.categories == tuple(sorted((*parts[0], *parts[1])))
    assert len(set(codes)) == 200


def test_dictionaries_may_have_a_missing_or_repeated_value():
    column, codes = _learn({"c": _dictionary([0, 1, 2, 3], ["x", None, "x", "z"])})
    assert column.categories == ("x", "z")
    assert codes == ["0", "2", "0", "1"]
    chunks = pa.chunked_array(
        [_dictionary([1, 0], ["x", None]), _dictionary([0, 1], [None, "y"])]
    )
    column, codes = _learn(pa.table({"c": chunks}))
    assert column.categories == ("x", "y")
    assert codes == ["2", "0", "2", "1"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5, 3, 4], (5, 3, 4)),
        ([1.5, 0.5, 2.5], (1.5, 0.5, 2.5)),
        ([True, False], (True, False)),
    ],
    ids=["integers", "floats", "booleans"],
)
def test_categories_need_not_be_text(values, expected):
    codes = list(range(len(values)))
    pandas = pd.Categorical.from_codes(codes, categories=values)
    arrow = _dictionary(codes, values, ordered=True)
    for vector in (pandas, pd.Series(pandas), arrow):
        column, got = _learn({"c": vector})
        assert repr(column.categories) == repr(expected)
        assert got == [str(code) for code in codes]


def test_intervals_of_pandas_cut_are_categories():
    bins = pd.cut(pd.Series([1.0, 5.0, None, 9.0]), [0, 3, 6, 8, 10])
    for vector in (bins, bins.array):
        column, codes = _learn({"age": vector})
        assert column.kind == "ordinal"
        assert column.categories == ("(0, 3]", "(3, 6]", "(6, 8]", "(8, 10]")
        assert codes == ["0", "1", "4", "3"]
    model = fit_tree({"age": bins}, ["a", "b", "b", "a"])
    test = {"age": ["(8, 10]", "(3, 6]"]}
    assert model.predict(test).tolist() == ["a", "b"]


def test_dates_as_categories_are_text():
    days = pd.Categorical(pd.to_datetime(["2024-02-01", "2024-01-01"]))
    column, codes = _learn({"day": days})
    assert column.categories == ("2024-01-01 00:00:00", "2024-02-01 00:00:00")
    assert codes == ["1", "0"]


class _Counted(str):
    """A string that counts how often it is hashed or compared."""

    __slots__ = ()
    touched = 0

    def __hash__(self) -> int:
        _Counted.touched += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        _Counted.touched += 1
        return super().__eq__(other)


def test_codes_pass_without_touching_strings():
    n = 20_000
    names = pd.Index([_Counted("a"), _Counted("b"), _Counted("c")], dtype=object)
    codes = np.arange(n, dtype=np.int8) % 3
    frame = pd.DataFrame({"c": pd.Categorical.from_codes(codes, names)})
    _Counted.touched = 0
    column = open_table(frame).column(0)
    assert _Counted.touched < 100
    assert np.shares_memory(column.codes, frame["c"].array.codes)


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.int32()])
def test_codes_of_arrow_are_not_copied(index):
    array = _dictionary([0, 1, 1, 2], ["a", "b", "c"], index)
    column = open_table(pa.table({"c": array})).column(0)
    stored = np.frombuffer(array.indices.buffers()[1], dtype=str(index))
    assert np.shares_memory(column.codes, stored)


def test_codes_of_polars_are_not_copied():
    series = pl.Series(["b", "a", "b"], dtype=pl.Enum(["a", "b"]))
    column = open_table(series.to_frame("c")).column(0)
    assert np.shares_memory(column.codes, series.to_physical().to_numpy())


def test_polars_categories_do_not_depend_on_the_order_of_rows():
    cells = ["b", "c", "a", "b"]
    forward = pl.Series(cells, dtype=pl.Categorical)
    backward = pl.Series(cells[::-1], dtype=pl.Categorical)
    assert _learn({"c": forward})[0] == _learn({"c": backward})[0]
    assert _learn({"c": forward}) == _learn({"c": cells})


@pytest.mark.parametrize(
    "columns",
    [[3, 1], [("a", 1), ("b", 2)], [None, "b"], [1.5, "b"]],
    ids=["integers", "tuples", "None", "float"],
)
def test_column_names_need_not_be_text(columns):
    index = pd.Index(columns, tupleize_cols=True)
    X = pd.DataFrame([["u", 1], ["v", 2]], columns=index)
    expected = [str(name) for name in X.columns]
    model = fit_tree(X, ["a", "b"])
    assert model.schema.names == expected
    assert model.predict(X).tolist() == ["a", "b"]
    by_name = {expected[1]: [2, 1], expected[0]: ["v", "u"]}
    assert model.predict(by_name).tolist() == ["b", "a"]


def test_absent_keys_are_missing_values():
    rows = [{"a": "x", "b": 1}, {"a": "y"}, {"b": 2}]
    expected = fit_tree({"a": ["x", "y", None], "b": [1, None, 2]}, ["u", "v", "u"])
    assert fit_tree(rows, ["u", "v", "u"]).to_bytes() == expected.to_bytes()


def test_a_mixture_after_many_rows_is_seen():
    # narwhals judges a column of objects by its first hundred.
    cells = pd.Series(["a"] * 150 + [7], dtype=object)
    with pytest.raises(ValueError, match=r"mixes text \('a' in row 0\) and numbers"):
        fit_tree({"c": cells}, ["u"] * 151)


class _ArrayLike:
    """An array that only numpy's protocol can open."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values


def test_anything_that_becomes_an_array_is_taken():
    X = [[1, 2], [3, 4]]
    expected = fit_tree(np.array(X), [0, 1]).to_bytes()
    assert fit_tree(_ArrayLike(X), _ArrayLike([0, 1])).to_bytes() == expected
    vectors = {"x0": _ArrayLike([1, 3]), "x1": np.array([2, 4])}
    named = fit_tree(vectors, [0, 1]).to_bytes()
    assert named.replace(b'"named": true', b'"named": false') == expected


class _ArrowStream:
    """A table that only Arrow's protocol can open."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def test_anything_that_streams_arrow_is_taken():
    table = pa.table({"a": ["x", "y"], "b": [1, 2]})
    expected = fit_tree(table, [0, 1]).to_bytes()
    assert fit_tree(_ArrowStream(table), [0, 1]).to_bytes() == expected


def test_a_matrix_is_a_table():
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1, 2], [3, 4]])
    expected = fit_tree(np.array([[1, 2], [3, 4]]), [0, 1]).to_bytes()
    assert fit_tree(matrix, [0, 1]).to_bytes() == expected


def test_no_rows_to_predict(frame):
    model = fit_tree({"a": ["x", "y"], "b": [1, 2]}, ["u", "v"])
    nothing = frame({"a": [], "b": []})
    if isinstance(nothing, list):  # a list without dicts has no column names either
        with pytest.raises(ValueError, match="X has 0 features"):
            model.predict(nothing)
        return
    assert model.predict(nothing).tolist() == []
    assert model.predict_proba(nothing).shape == (0, 2)


def _modules_after(code: str) -> set[str]:
    watched = (
        "pandas polars pyarrow dask pyspark matplotlib typer sklearn scipy joblib rich"
    )
    report = (
        f"\nimport sys\nprint(*[m for m in '{watched}'.split() if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code + report],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


def test_importing_branchwise_loads_no_other_library():
    assert _modules_after("import branchwise") == set()


def test_plain_tables_load_no_other_library():
    code = """
import numpy as np
from branchwise import fit_tree
model = fit_tree({"a": ["x", None, "y"], "b": np.array([1, 2, 3])}, ["u", "v", "u"])
model.predict([{"a": "x", "b": 1}])
model.predict_proba([{"a": "x", "b": 1}])
str(model), model.rules(), model.to_bytes(), model.feature_importances
"""
    assert _modules_after(code) == set()


def test_polars_does_not_load_pandas():
    code = """
import polars as pl
from branchwise import fit_tree
X = pl.DataFrame(
    {
        "text": ["x", "y", None],
        "number": [1, None, 3],
        "float": [0.5, None, float("nan")],
        "truth": [True, None, False],
        "nothing": [None, None, None],
        "category": pl.Series(["x", None, "y"], dtype=pl.Categorical),
        "enum": pl.Series(["x", None, "y"], dtype=pl.Enum(["x", "y"])),
    }
)
model = fit_tree(X, pl.Series("play", ["u", "v", "u"]))
assert model.schema.target == "play"
model.predict(X)
"""
    assert _modules_after(code) <= {"polars", "pyarrow"}


def test_pandas_does_not_load_polars_or_scikit_learn():
    code = """
import pandas as pd
from branchwise import fit_tree
X = pd.DataFrame({"a": pd.Categorical(["x", None, "y"]), "b": [1, 2, 3]})
fit_tree(X, pd.Series(["u", "v", "u"])).predict(X)
"""
    assert _modules_after(code) <= {"pandas", "pyarrow"}


def test_decimals_are_read_to_the_nearest_number():
    texts = [f"{n / 1000:.3f}" for n in range(-500, 3000, 7)] + ["12345678901234567.89"]
    cells = [*(Decimal(text) for text in texts), None]
    column = pa.array(cells, pa.decimal128(30, 3))
    wanted = [*map(float, texts), np.nan]
    for table in (
        pa.table({"x": column}),
        pl.DataFrame({"x": pl.Series(cells, dtype=pl.Decimal(30, 3))}),
        pa.table({"x": column}).to_pandas(types_mapper=pd.ArrowDtype),
    ):
        read = open_table(table).column(0)
        np.testing.assert_array_equal(read.values, wanted)


PANDAS_COLUMNS = {
    "int64": [3, 1, 2],
    "int8": np.array([3, -1, 2], dtype=np.int8),
    "uint64": np.array([3, 1, 2], dtype=np.uint64),
    "inexact": np.array([3, 1, 2**60]),
    "float64": [0.5, np.nan, 2.0],
    "float32": np.array([0.1, np.nan, 2], dtype=np.float32),
    "float16": np.array([0.5, np.nan, 2], dtype=np.float16),
    "bool": [True, False, True],
    "text": ["b", "a", "b"],
    "text with missing": ["b", None, "b"],
    "text as objects": pd.Series(["b", None, "b"], dtype=object),
    "missing objects": pd.Series([np.nan, np.nan, np.nan], dtype=object),
    "mixed objects": pd.Series(["a", 1, True], dtype=object),
    "nullable int": pd.array([1, None, 2], dtype="Int64"),
    "nullable bool": pd.array([True, None, False], dtype="boolean"),
    "category": pd.Categorical(["b", "a", None], ["b", "a", "c"]),
    "ordered": pd.Categorical(["b", "a", None], ["b", "a", "c"], ordered=True),
    "string": pd.array(["b", None, "a"], dtype="string"),
    "python string": pd.array(["b", None, "a"], dtype="string[python]"),
    "dates": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]),
    "bytes": pd.Series([b"a", b"b", b"c"], dtype=object),
}


@pytest.mark.parametrize("name", PANDAS_COLUMNS)
def test_a_pandas_column_is_read_from_its_array_as_from_its_series(name):
    table = pd.DataFrame({name: PANDAS_COLUMNS[name]})

    def outcome(read):
        try:
            raw = read()
        except DataError as error:
            return str(error), error.row
        if isinstance(raw, Numbers):
            return raw.values.dtype, raw.values.tobytes()
        types = [type(value) for value in raw.values]
        return raw.codes.tolist(), raw.values, types, raw.declared, raw.ordered

    series = nw.from_native(table[name], series_only=True)
    expected = outcome(series_reader(f"Column {name!r}", series))
    assert outcome(lambda: open_table(table).column(0)) == expected


@pytest.mark.parametrize("kind", ["bsr", "coo", "csc", "csr", "dok", "lil"])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.bool_])
def test_sparse_matrices_are_read_like_dense_ones(kind, dtype):
    rng = np.random.default_rng(1)
    dense = (rng.integers(0, 4, (40, 3)) * (rng.random((40, 3)) < 0.3)).astype(dtype)
    labels = ["u" if row else "v" for row in dense[:, 1]]
    for form in (f"{kind}_matrix", f"{kind}_array"):
        table = getattr(sparse, form)(dense)
        model = fit_tree(table, labels, CART)
        assert model.to_bytes() == fit_tree(dense, labels, CART).to_bytes()
        assert model.predict(table).tolist() == model.predict(dense).tolist()


def test_sparse_matrices_may_store_a_cell_twice():
    rows, columns, numbers = [0, 0, 1], [1, 1, 0], [1.0, 2.0, np.nan]
    table = sparse.coo_array((numbers, (rows, columns)), shape=(3, 2))
    frame = open_table(table.tocsc(copy=True))
    assert frame.column(1).values.tolist() == [3, 0, 0]
    assert np.isnan(frame.column(0).values).tolist() == [False, True, False]
    twice = sparse.csc_array(
        (np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(3, 1)
    )
    assert open_table(twice).column(0).values.tolist() == [3, 0, 0]
    assert twice.nnz == 2  # the user's matrix stays as it is


def test_sparse_matrices_that_are_too_large_or_no_tables():
    with pytest.raises(DataError, match=r"1,000,000 columns, whose columns would take"):
        open_table(sparse.csr_array((10**6, 10**6)))
    with pytest.raises(DataError, match="Expected 2D array, got 1D array"):
        open_table(sparse.coo_array([1.0, 0.0]))


def test_sparse_matrices_are_refused_even_those_that_are_mappings():
    class KeyedMatrix(dict):  # as scipy's dok_matrix was before 1.13
        def toarray(self):
            raise NotImplementedError

    with pytest.raises(DataError, match=r"made dense first: X.toarray\(\)"):
        open_table(KeyedMatrix({(0, 1): 1.0}))
