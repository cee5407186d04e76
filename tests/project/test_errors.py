"""What a user is told: every message in full, so that a change of wording is seen.

A message names the parameter or the column, the row where it helps, what is
allowed, what was got, and what to do.
"""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from branchwise import (
    BranchwiseError,
    C45Classifier,
    CARTRegressor,
    DataError,
    GradientBoostingClassifier,
    ID3Classifier,
    ParameterError,
    Recipe,
    datasets,
    fit_tree,
)
from branchwise.plot import plot_pruning_path

Y = ["no", "yes"]
X = {"a": ["x", "y"]}
_CELLS = {"a": ["x", "x", "y", "y"], "b": [1, 2, 1, 2]}
_LABELS = ["no", "yes", "yes", "yes"]
#: A tree that asks about text and about a number, one that asks about numbers that
#: are names, and one that allows neither missing nor unseen values.
MODEL = fit_tree(_CELLS, _LABELS)
NAMES = fit_tree({"n": [1, 2]}, Y, categorical_features="all")
STRICT = fit_tree(_CELLS, _LABELS, Recipe(missing="error", unseen="error"))
#: What is pruned by rows that are set aside.
REDUCED = partial(ID3Classifier, pruning="reduced-error")


def case(
    name: str, call: Callable[[], Any], error: type[BranchwiseError], *message: str
) -> Any:
    return pytest.param(call, error, "".join(message), id=name)


CASES = [
    # -- X is no table
    case(
        "X is None",
        lambda: fit_tree(None, Y),
        DataError,
        "X must be a pandas, polars or pyarrow table, a numpy array, a dict of "
        "columns or a list of dicts. Got NoneType instead.",
    ),
    case(
        "X is a number",
        lambda: fit_tree(5, Y),
        DataError,
        "X must be a pandas, polars or pyarrow table, a numpy array, a dict of "
        "columns or a list of dicts. Got int instead.",
    ),
    case(
        "X is text",
        lambda: fit_tree("data.csv", Y),
        DataError,
        "X must be a pandas, polars or pyarrow table, a numpy array, a dict of "
        "columns or a list of dicts. Got str instead. To read a file, pass "
        "the name of its target column as y.",
    ),
    case(
        "X is a class",
        lambda: fit_tree(pd.DataFrame, Y),
        DataError,
        "X must be a table. Got the class DataFrame instead.",
    ),
    case(
        "X is an object",
        lambda: fit_tree(object(), Y),
        DataError,
        "X must be a pandas, polars or pyarrow table, a numpy array, a dict of "
        "columns or a list of dicts. Got object instead.",
    ),
    case(
        "X is an array of one dimension",
        lambda: fit_tree(np.array([1, 2]), Y),
        DataError,
        "X must be a table. Expected 2D array, got 1D array instead. Reshape your"
        " data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is "
        "one row.",
    ),
    case(
        "X is an array of three dimensions",
        lambda: fit_tree(np.zeros((2, 2, 2)), Y),
        DataError,
        "X must be a table. Expected 2D array, got 3D array instead. Reshape your"
        " data: X.reshape(len(X), -1) has one row for each case.",
    ),
    case(
        "X is a list of values",
        lambda: fit_tree(["a", "b"], Y),
        DataError,
        "X is a list of single values. Expected 2D array, got 1D array instead. "
        "Reshape your data: {'name': X} is a table of one column, [X] one of one "
        "row.",
    ),
    case(
        "X is a pandas series",
        lambda: fit_tree(pd.Series([1, 2]), Y),
        DataError,
        "X must be a table of one or more columns. Expected 2D array, got 1D "
        "array instead. Reshape your data: {'name': X} is a table of one column.",
    ),
    case(
        "X is a polars series",
        lambda: fit_tree(pl.Series([1, 2]), Y),
        DataError,
        "X must be a table of one or more columns. Expected 2D array, got 1D "
        "array instead. Reshape your data: {'name': X} is a table of one column.",
    ),
    case(
        "X is sparse and large",
        lambda: fit_tree(scipy.sparse.csr_matrix((2, 10**10)), Y),
        DataError,
        "X is a sparse matrix of 2 rows and 10,000,000,000 columns, whose columns "
        "would take 160 GB in memory, more than 34 GB. Choose columns, or reduce "
        "their number.",
    ),
    case(
        "X is lazy",
        lambda: fit_tree(pl.LazyFrame({"a": [1, 2]}), Y),
        DataError,
        "X is a lazy frame, and branchwise needs its values. Compute it first: "
        "X.collect() in polars, X.compute() in Dask.",
    ),
    case(
        "X is a list of unequal rows",
        lambda: fit_tree([[1, 2], [3]], Y),
        DataError,
        "X is a list whose rows have different lengths. Got 2 cells in row 0 and "
        "1 in row 1; every row must have one cell for each column.",
    ),
    case(
        "X is a list of dicts and others",
        lambda: fit_tree([{"a": 1}, [2]], Y),
        DataError,
        "X is a list of dicts, but row 1 is of type list. Give every row as the "
        "same type.",
    ),
    # -- X is empty or has a wrong shape
    case(
        "X has no rows",
        lambda: fit_tree({"a": [], "b": []}, []),
        DataError,
        "X has no rows. Found array with 0 sample(s) (shape=(0, 2)) while a "
        "minimum of 1 is required; pass at least one training case.",
    ),
    case(
        "X is an empty list",
        lambda: fit_tree([], []),
        DataError,
        "X has no rows. Found array with 0 sample(s) (shape=(0, 0)) while a "
        "minimum of 1 is required; pass at least one training case.",
    ),
    case(
        "X has no columns",
        lambda: fit_tree(pd.DataFrame(index=[0, 1]), Y),
        DataError,
        "X has no columns. Found array with 0 feature(s) (shape=(2, 0)) while a "
        "minimum of 1 is required; pass at least one attribute.",
    ),
    case(
        "X is an empty dict",
        lambda: fit_tree({}, []),
        DataError,
        "X has no rows. Found array with 0 sample(s) (shape=(0, 0)) while a "
        "minimum of 1 is required; pass at least one training case.",
    ),
    case(
        "X has columns of unequal lengths",
        lambda: fit_tree({"a": [1, 2], "b": [1, 2, 3]}, Y),
        DataError,
        "Columns must have the same length. Got 2 rows in 'a' and 3 in 'b'; give "
        "every column one value for each row.",
    ),
    case(
        "X has a column that is a number",
        lambda: fit_tree({"a": 1}, Y),
        DataError,
        "Column 'a' must be a list, an array or a series of values. Got int instead.",
    ),
    case(
        "X has a column that is text",
        lambda: fit_tree({"a": "xy"}, Y),
        DataError,
        "Column 'a' must be a list, an array or a series of values. Got str instead.",
    ),
    case(
        "X has a column that is a set",
        lambda: fit_tree({"a": {1, 2}}, Y),
        DataError,
        "Column 'a' must be a list, an array or a series of values. Got set instead.",
    ),
    case(
        "X has a column that is a generator",
        lambda: fit_tree({"a": (i for i in (1, 2))}, Y),
        DataError,
        "Column 'a' must be a list, an array or a series of values. Got generator"
        " instead.",
    ),
    case(
        "X has a column of two dimensions",
        lambda: fit_tree({"a": np.zeros((2, 3))}, Y),
        DataError,
        "Column 'a' must have one value a row. Got an array of shape (2, 3); pass"
        " a single column.",
    ),
    case(
        "X has a name twice",
        lambda: fit_tree(pd.DataFrame([[1, 2, 3]] * 2, columns=["a", "b", "a"]), Y),
        DataError,
        "X has more than one column named 'a'. Column names must differ; rename "
        "or drop the others.",
    ),
    case(
        "X has names twice in Arrow",
        lambda: fit_tree(
            pa.table([[1, 2], [1, 2], [1, 2], [1, 2]], names=list("abab")), Y
        ),
        DataError,
        "X has more than one column named 'a', 'b'. Column names must differ; "
        "rename or drop the others.",
    ),
    case(
        "X has a number and its name",
        lambda: fit_tree({1: [1, 2], "1": [1, 2]}, Y),
        DataError,
        "X has more than one column named '1'. Column names must differ; rename "
        "or drop the others.",
    ),
    # -- cells
    case(
        "a cell is a list",
        lambda: fit_tree({"a": ["x", ["y"]]}, Y),
        DataError,
        "Column 'a' has a cell of type list in row 1: ['y']. A cell must be text,"
        " a number, a boolean or missing; convert the column first.",
    ),
    case(
        "a cell is a dict",
        lambda: fit_tree({"a": [{"k": 1}, "x"]}, Y),
        DataError,
        "Column 'a' has a cell of type dict in row 0: {'k': 1}. A cell must be "
        "text, a number, a boolean or missing; convert the column first.",
    ),
    case(
        "a cell is a set",
        lambda: fit_tree([["x", {1}], ["y", {2}]], Y),
        DataError,
        "Column 'x1' has a cell of type set in row 0: {1}. A cell must be text, a"
        " number, a boolean or missing; convert the column first.",
    ),
    case(
        "a cell is long",
        lambda: fit_tree({"a": [list(range(100)), "x"]}, Y),
        DataError,
        "Column 'a' has a cell of type list in row 0: [0, 1, 2, 3, 4, 5, 6, 7, 8,"
        " 9, 10, 11.... A cell must be text, a number, a boolean or missing; "
        "convert the column first.",
    ),
    case(
        "a cell is a time of day",
        lambda: fit_tree({"a": [dt.time(7), None]}, Y),
        DataError,
        "Column 'a' has a cell of type time in row 0: datetime.time(7, 0). It is a "
        "time or a duration; branchwise takes dates, text, categories, booleans and "
        "numbers. Turn it into a number (such as hours or days) or into text, or leave "
        "the column out.",
    ),
    case(
        "some times have a time zone",
        lambda: fit_tree(
            {
                "a": [
                    dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC),
                    dt.datetime(2024, 1, 2, 3),
                ]
            },
            Y,
        ),
        DataError,
        "Column 'a' mixes times with a time zone (2024-01-02 03:00:00+00:00 in row 0) "
        "and without one (2024-01-02 03:00:00 in row 1). Give all of them a time zone, "
        "or none.",
    ),
    case(
        "a time has nanoseconds",
        lambda: fit_tree({"a": np.array([0, 1], dtype="M8[ns]")}, Y),
        DataError,
        "Column 'a' has the time 1970-01-01T00:00:00.000000001 in row 1, which is no "
        "whole number of microseconds. Round the column to microseconds first.",
    ),
    case(
        "a timestamp has nanoseconds",
        lambda: fit_tree({"a": [None, pd.Timestamp(1)]}, Y),
        DataError,
        "Column 'a' has the time 1970-01-01 00:00:00.000000001 in row 1, which is no "
        "whole number of microseconds. Round the column to microseconds first.",
    ),
    case(
        "a time is beyond exact numbers",
        lambda: fit_tree({"a": [dt.datetime(2024, 1, 2), dt.datetime.max]}, Y),
        DataError,
        "Column 'a' has the time 9999-12-31 23:59:59.999999 in row 1, beyond the years "
        "1684 to 2255, in which numbers of microseconds are exact. Make the column one "
        "of dates, or correct the row.",
    ),
    case(
        "a date is beyond the year 9999",
        lambda: fit_tree({"a": np.array([0, 10**7], dtype="M8[D]")}, Y),
        DataError,
        "Column 'a' has a date outside of the years 1 to 9999 in row 1. Correct the "
        "row, or make it missing.",
    ),
    case(
        "dates and text are mixed",
        lambda: fit_tree({"a": [dt.date(2024, 1, 2), "x"]}, Y),
        DataError,
        "Column 'a' mixes dates (datetime.date(2024, 1, 2) in row 0) and text ('x' in "
        "row 1). Convert it to one type, for example all to text.",
    ),
    case(
        "a cell is of bytes",
        lambda: fit_tree({"a": [b"x", b"y"]}, Y),
        DataError,
        "Column 'a' has a cell of type bytes in row 0: b'x'. Decode it to text first.",
    ),
    case(
        "a cell is a complex number",
        lambda: fit_tree({"a": [1j, 2]}, Y),
        DataError,
        "Column 'a' has a cell of type complex in row 0: 1j. A cell must be text,"
        " a number, a boolean or missing; convert the column first.",
    ),
    case(
        "a column is nested in polars",
        lambda: fit_tree(pl.DataFrame({"a": [[1], [2]]}), Y),
        DataError,
        "Column 'a' holds nested values (List(Int64)); a cell must be one text, "
        "number or boolean. Split it into several columns first, or leave it out.",
    ),
    case(
        "a column is nested in Arrow",
        lambda: fit_tree(pa.table({"a": [{"k": 1}, {"k": 2}]}), Y),
        DataError,
        "Column 'a' holds nested values (Struct({'k': Int64})); a cell must be "
        "one text, number or boolean. Split it into several columns first, or leave it "
        "out.",
    ),
    case(
        "a column is of bytes",
        lambda: fit_tree(pa.table({"a": [b"x", b"y"]}), Y),
        DataError,
        "Column 'a' holds bytes. Decode it to text first.",
    ),
    case(
        "a column is of bytes that are no text",
        lambda: fit_tree(np.array([[b"x"], [b"\xff"]]), Y),
        DataError,
        "Column 'x0' has bytes in row 1 that are not UTF-8 text: b'\\xff'. Decode "
        "the column first.",
    ),
    case(
        "a column is of durations in polars",
        lambda: fit_tree(pl.DataFrame({"a": [dt.timedelta(1)] * 2}), Y),
        DataError,
        "Column 'a' holds times or durations (Duration(time_unit='us')); branchwise "
        "takes dates, text, categories, booleans and numbers. Turn it into a number "
        "(such as hours or days) or into text, or leave the column out.",
    ),
    case(
        "a column is of durations in numpy",
        lambda: fit_tree({"a": np.array([1, 2], dtype="m8[D]")}, Y),
        DataError,
        "Column 'a' holds times or durations (timedelta64[D]); branchwise takes dates, "
        "text, categories, booleans and numbers. Turn it into a number (such as hours "
        "or days) or into text, or leave the column out.",
    ),
    case(
        "a column is complex",
        lambda: fit_tree(np.array([[1j], [2]]), Y),
        DataError,
        "Column 'x0' holds complex numbers. Complex data not supported; pass the "
        "real and the imaginary part as two columns.",
    ),
    case(
        "a column mixes text and numbers",
        lambda: fit_tree({"a": [None, "x", 5]}, [*Y, "no"]),
        DataError,
        "Column 'a' mixes text ('x' in row 1) and numbers (5 in row 2). Convert "
        "it to one type, for example all to text.",
    ),
    case(
        "a column mixes numbers and booleans",
        lambda: fit_tree({"a": [1, True]}, Y),
        DataError,
        "Column 'a' mixes numbers (1 in row 0) and booleans (True in row 1). "
        "Convert it to one type, for example all to text.",
    ),
    case(
        "a column mixes booleans and text",
        lambda: fit_tree({"a": [True, float("nan"), "yes"]}, [*Y, "no"]),
        DataError,
        "Column 'a' mixes booleans (True in row 0) and text ('yes' in row 2). "
        "Convert it to one type, for example all to text.",
    ),
    case(
        "a number is infinite",
        lambda: fit_tree({"a": [1.0, float("inf")]}, Y),
        DataError,
        "Column 'a' is infinite in row 1 (Input X contains infinity). Numbers "
        "must be finite; replace it by a large number or by a missing value.",
    ),
    case(
        "a number is minus infinite in an array",
        lambda: fit_tree(np.array([[0, 1], [1, -np.inf]]), Y),
        DataError,
        "Column 'x1' is infinite in row 1 (Input X contains infinity). Numbers "
        "must be finite; replace it by a large number or by a missing value.",
    ),
    case(
        "a category is infinite",
        lambda: fit_tree({"a": pd.Categorical([1.0, float("inf")])}, Y),
        DataError,
        "Column 'a' has inf as a category. Categories must be text, booleans or "
        "finite numbers; make it a missing value or drop it.",
    ),
    case(
        "a number declared as a name is infinite",
        lambda: fit_tree({"a": [1.0, float("inf")]}, Y, categorical_features="all"),
        DataError,
        "Column 'a' is infinite in row 1 (Input X contains infinity). Numbers "
        "must be finite; replace it by a large number or by a missing value.",
    ),
    case(
        "an integer is beyond 2**53",
        lambda: fit_tree({"a": [1, 2**53 + 1]}, Y),
        DataError,
        "Column 'a' has the integer 9007199254740993 in row 1, beyond 2**53, "
        "where float64 is no longer exact. If it is an identifier, leave it out "
        "or pass it as text.",
    ),
    case(
        "an integer is beyond 2**53 after a gap",
        lambda: fit_tree(pl.DataFrame({"a": [None, -(2**53) - 1]}), Y),
        DataError,
        "Column 'a' has the integer -9007199254740993 in row 1, beyond 2**53, "
        "where float64 is no longer exact. If it is an identifier, leave it out "
        "or pass it as text.",
    ),
    case(
        "an integer is beyond 2**53 in an array",
        lambda: fit_tree(np.array([[1], [2**64 - 1]], dtype=np.uint64), Y),
        DataError,
        "Column 'x0' has the integer 18446744073709551615 in row 1, beyond 2**53,"
        " where float64 is no longer exact. If it is an identifier, leave it out "
        "or pass it as text.",
    ),
    case(
        "an integer is enormous",
        lambda: fit_tree({"a": [1, 10**5000]}, Y),
        DataError,
        "Column 'a' has the integer (thousands of digits) in row 1, beyond 2**53,"
        " where float64 is no longer exact. If it is an identifier, leave it out "
        "or pass it as text.",
    ),
    case(
        "categories mix types",
        lambda: fit_tree({"a": pd.Categorical(["x", 1])}, Y),
        DataError,
        "Column 'a' mixes numbers and text as categories: 1, 'x'. Convert them to"
        " one type.",
    ),
    case(
        "categories have the same name",
        lambda: fit_tree(
            {"a": pd.Categorical([pd.Timestamp("2024-01-02"), "2024-01-02 00:00:00"])},
            Y,
        ),
        DataError,
        "Column 'a' has more than one category called '2024-01-02 00:00:00'. Give"
        " every category a name of its own.",
    ),
    case(
        "a category is a tuple",
        lambda: fit_tree({"a": pd.Categorical([(1, 2), (3, 4)])}, Y),
        DataError,
        "Column 'a' has the category (1, 2) of type tuple. Categories must be "
        "text, booleans or numbers; convert them to text.",
    ),
    case(
        "a category is beyond 64 bits",
        lambda: fit_tree({"a": pd.Categorical([2**70, 1])}, Y),
        DataError,
        "Column 'a' has the category 1180591620717411303424. Whole numbers must "
        "fit 64 bits; pass such names as text.",
    ),
    # -- y
    case(
        "y is None",
        lambda: fit_tree({"a": [1, 2]}, None),
        DataError,
        "Growing a tree requires y to be passed, but the target y is None. Pass "
        "one label for each row.",
    ),
    case(
        "y is too short",
        lambda: fit_tree({"a": [1, 2]}, ["no"]),
        DataError,
        "y must have one label for each row of X. Got 1 label for 2 rows "
        "(inconsistent numbers of samples).",
    ),
    case(
        "y has a missing label",
        lambda: fit_tree({"a": [1, 2]}, ["no", None]),
        DataError,
        "y is missing in 1 row, the first of them row 1. Input y contains NaN or "
        "None, but every row needs a label; drop the rows without.",
    ),
    case(
        "y has missing numbers",
        lambda: fit_tree({"a": [1, 2, 3]}, [0, np.nan, np.nan]),
        DataError,
        "y is missing in 2 rows, the first of them row 1. Input y contains NaN or"
        " None, but every row needs a label; drop the rows without.",
    ),
    case(
        "y has missing categories",
        lambda: fit_tree({"a": [1, 2]}, pd.Categorical([None, "no"])),
        DataError,
        "y is missing in 1 row, the first of them row 0. Input y contains NaN or "
        "None, but every row needs a label; drop the rows without.",
    ),
    case(
        "y is continuous",
        lambda: fit_tree({"a": [1, 2]}, [1, 0.5]),
        DataError,
        "y must hold classes: text, booleans, categories or whole numbers. Got "
        "0.5 in row 1 (Unknown label type: continuous). Bin the target, or turn "
        "it into text if these numbers are names.",
    ),
    case(
        "y is infinite",
        lambda: fit_tree({"a": [1, 2]}, [1, np.inf]),
        DataError,
        "y is infinite in row 1. Input y contains infinity; a class must be text,"
        " a boolean, a category or a whole number.",
    ),
    case(
        "y has two columns",
        lambda: fit_tree({"a": [1, 2]}, np.array([[0, 1], [1, 0]])),
        DataError,
        "y must have one value a row. Got an array of shape (2, 2); pass a single"
        " column.",
    ),
    case(
        "y is a list of lists",
        lambda: fit_tree({"a": [1, 2]}, [["no"], ["yes"]]),
        DataError,
        "y has a cell of type list in row 0: ['no']. A cell must be text, a "
        "number, a boolean or missing; convert the column first.",
    ),
    case(
        "y is no column",
        lambda: fit_tree({"a": [1, 2]}, "play"),
        DataError,
        "The table has no column 'play'. The columns are 'a'.",
    ),
    case(
        "y mixes types",
        lambda: fit_tree({"a": [1, 2]}, ["no", 1]),
        DataError,
        "y mixes text ('no' in row 0) and numbers (1 in row 1). Convert it to one"
        " type, for example all to text.",
    ),
    case(
        "y mixes categories",
        lambda: fit_tree({"a": [1, 2]}, pd.Categorical(["no", 1])),
        DataError,
        "y mixes numbers and text as categories: 1, 'no'. Convert them to one type.",
    ),
    case(
        "y is of dates",
        lambda: fit_tree({"a": [1, 2]}, pd.to_datetime(["2024-01-02"] * 2)),
        DataError,
        "y holds dates, which can be attributes only. Turn them into numbers (such as "
        "the year or an age in days) or into text.",
    ),
    case(
        "y has two columns in scikit-learn",
        lambda: ID3Classifier().fit({"a": [1, 2]}, np.array([[0, 1], [1, 0]])),
        DataError,
        "y must have one label for each row. y should be a 1d array, got an array"
        " of shape (2, 2) instead.",
    ),
    # -- weights
    case(
        "a weight is negative",
        lambda: fit_tree({"a": [1, 2]}, Y, sample_weight=[1, -0.5]),
        DataError,
        "sample_weight must be finite and not negative. Got -0.5 in row 1.",
    ),
    case(
        "a weight is not a number",
        lambda: fit_tree({"a": [1, 2]}, Y, sample_weight=[np.nan, 1]),
        DataError,
        "sample_weight must be finite and not negative. Got nan in row 0.",
    ),
    case(
        "a weight is infinite",
        lambda: fit_tree({"a": [1, 2]}, Y, sample_weight=[1, np.inf]),
        DataError,
        "sample_weight must be finite and not negative. Got inf in row 1.",
    ),
    case(
        "weights are text",
        lambda: fit_tree({"a": [1, 2]}, Y, sample_weight=["a", "b"]),
        DataError,
        "sample_weight must be numbers, one for each row. Convert it, for example "
        "with np.asarray(weights, dtype=float).",
    ),
    case(
        "weights are numbers written as text",
        lambda: fit_tree({"a": [1, 2]}, Y, sample_weight=["1", "2"]),
        DataError,
        "sample_weight must be numbers, one for each row. Convert it, for example "
        "with np.asarray(weights, dtype=float).",
    ),
    case(
        "weights are too few",
        lambda: fit_tree({"a": [1, 2]}, Y, sample_weight=[1]),
        DataError,
        "sample_weight must have one weight for each of the 2 rows. Got an array "
        "of shape (1,).",
    ),
    case(
        "weights are a number",
        lambda: fit_tree({"a": [1, 2]}, Y, sample_weight=2),
        DataError,
        "sample_weight must have one weight for each of the 2 rows. Got an array "
        "of shape ().",
    ),
    case(
        "weights are all zero",
        lambda: fit_tree({"a": [1, 2]}, Y, sample_weight=[0, 0]),
        DataError,
        "sample_weight must have a sum between 1e-300 and 1e+300: with a weight of "
        "zero for every row there is nothing to learn from. Got the sum 0.",
    ),
    case(
        "weights are too large",
        lambda: fit_tree({"a": [1, 2]}, Y, sample_weight=[1e308, 1e308]),
        DataError,
        "sample_weight must have a sum between 1e-300 and 1e+300: with a weight of "
        "zero for every row there is nothing to learn from. Got the sum inf.",
    ),
    # -- class_weight
    case(
        "class_weight is a word",
        lambda: ID3Classifier(class_weight="equal").fit({"a": [1, 2]}, Y),
        ParameterError,
        "class_weight must be None, 'balanced' or a dict of class to weight. Got "
        "'equal' instead.",
    ),
    case(
        "class_weight is a list",
        lambda: ID3Classifier(class_weight=[1, 2]).fit({"a": [1, 2]}, Y),
        ParameterError,
        "class_weight must be None, 'balanced' or a dict of class to weight. Got "
        "[1, 2] instead.",
    ),
    case(
        "class_weight names other classes",
        lambda: ID3Classifier(class_weight={"nope": 2, "yes": 1}).fit({"a": [1, 2]}, Y),
        ParameterError,
        "class_weight names 'nope', but the classes of y are 'no', 'yes'. Give "
        "weights to these.",
    ),
    case(
        "class_weight is negative",
        lambda: ID3Classifier(class_weight={"no": -1}).fit({"a": [1, 2]}, Y),
        ParameterError,
        "class_weight must have finite weights that are not negative. Got -1 for "
        "the class 'no'.",
    ),
    case(
        "class_weight is no number",
        lambda: ID3Classifier(class_weight={"no": "2"}).fit({"a": [1, 2]}, Y),
        ParameterError,
        "class_weight must have finite weights that are not negative. Got '2' for"
        " the class 'no'.",
    ),
    case(
        "class_weight is not finite",
        lambda: ID3Classifier(class_weight={"no": np.nan}).fit({"a": [1, 2]}, Y),
        ParameterError,
        "class_weight must have finite weights that are not negative. Got nan for"
        " the class 'no'.",
    ),
    case(
        "class_weight is zero",
        lambda: ID3Classifier(class_weight={"no": 0, "yes": 0}).fit({"a": [1, 2]}, Y),
        ParameterError,
        "class_weight must give a class of y a weight above 0. Got 0 for all of "
        "'no', 'yes'.",
    ),
    case(
        "class_weight and a missing label",
        lambda: ID3Classifier(class_weight="balanced").fit({"a": [1, 2]}, ["no", None]),
        DataError,
        "y is missing in 1 row, the first of them row 1. Input y contains NaN or "
        "None, but every row needs a label; drop the rows without.",
    ),
    # -- categorical_features and categories
    case(
        "categorical_features is an unknown word",
        lambda: fit_tree({"a": [1, 2]}, Y, categorical_features="auto"),
        ParameterError,
        "categorical_features must be 'from_dtype', 'all', a mask, a list of "
        "indices or a list of names. Got 'auto' instead.",
    ),
    case(
        "categorical_features is a name",
        lambda: fit_tree({"a": [1, 2]}, Y, categorical_features="a"),
        ParameterError,
        "categorical_features must be 'from_dtype', 'all', a mask, a list of "
        "indices or a list of names. Got 'a'; for one column pass ['a'].",
    ),
    case(
        "categorical_features is None",
        lambda: fit_tree({"a": [1, 2]}, Y, categorical_features=None),
        ParameterError,
        "categorical_features must be 'from_dtype', 'all', a mask, a list of "
        "indices or a list of names. Got None instead.",
    ),
    case(
        "categorical_features has an unknown name",
        lambda: fit_tree(
            {"a": [1, 2], "b": [1, 2]}, Y, categorical_features=["a", "c"]
        ),
        ParameterError,
        "categorical_features names 'c', which is not a column of X. The columns "
        "are 'a', 'b'.",
    ),
    case(
        "categorical_features has an unknown index",
        lambda: fit_tree({"a": [1, 2], "b": [1, 2]}, Y, categorical_features=[0, 2]),
        ParameterError,
        "categorical_features names column 2, but X has only 2 columns, numbered "
        "from 0 to 1.",
    ),
    case(
        "categorical_features has a float",
        lambda: fit_tree({"a": [1, 2]}, Y, categorical_features=[0.5]),
        ParameterError,
        "categorical_features names 0.5, which is not a column of X. The columns "
        "are 'a'.",
    ),
    case(
        "categorical_features is a short mask",
        lambda: fit_tree({"a": [1, 2], "b": [1, 2]}, Y, categorical_features=[True]),
        ParameterError,
        "categorical_features is a mask of length 1, but X has 2 columns. Give "
        "one entry for each column.",
    ),
    case(
        "categories is a list",
        lambda: fit_tree({"a": [1, 2]}, Y, categories=[[1, 2]]),
        ParameterError,
        "categories must be None or a dict of column name (or index) to the list "
        "of its possible values. Got [[1, 2]] instead.",
    ),
    case(
        "categories has an unknown name",
        lambda: fit_tree({"a": [1, 2]}, Y, categories={"b": [1, 2]}),
        ParameterError,
        "categories names 'b', which is not a column of X. The columns are 'a'.",
    ),
    case(
        "categories has an unknown index",
        lambda: fit_tree({"a": [1, 2]}, Y, categories={1: [1, 2]}),
        ParameterError,
        "categories names column 1, but X has only 1 column, numbered from 0 to 0.",
    ),
    case(
        "categories names a column twice",
        lambda: fit_tree({"a": [1, 2]}, Y, categories={"a": [1, 2], 0: [1, 2]}),
        ParameterError,
        "categories names column 'a' twice, by name and by index. Name it once.",
    ),
    case(
        "categories has text for a list",
        lambda: fit_tree({"a": ["x", "y"]}, Y, categories={"a": "xy"}),
        ParameterError,
        "categories['a'] must be a list of values. Got 'xy' instead.",
    ),
    case(
        "categories has a number for a list",
        lambda: fit_tree({"a": ["x", "y"]}, Y, categories={"a": 2}),
        ParameterError,
        "categories['a'] must be a list of values. Got 2 instead.",
    ),
    case(
        "categories has an empty list",
        lambda: fit_tree({"a": ["x", "y"]}, Y, categories={"a": []}),
        ParameterError,
        "categories['a'] is empty. List at least one possible value.",
    ),
    case(
        "categories repeats a value",
        lambda: fit_tree({"a": ["x", "y"]}, Y, categories={"a": ["x", "y", "x"]}),
        ParameterError,
        "categories['a'] lists 'x' more than once. List every value once.",
    ),
    case(
        "categories mixes types",
        lambda: fit_tree({"a": ["x", "y"]}, Y, categories={"a": ["x", 1]}),
        ParameterError,
        "categories['a'] mixes numbers and text as categories: 'x', 1. Convert "
        "them to one type.",
    ),
    case(
        "categories has a missing value",
        lambda: fit_tree({"a": ["x", "y"]}, Y, categories={"a": ["x", None]}),
        ParameterError,
        "categories['a'] lists a missing value. Missing values need no "
        "declaration; leave it out.",
    ),
    case(
        "categories has NaN",
        lambda: fit_tree({"a": [1, 2]}, Y, categories={"a": [1, float("nan")]}),
        ParameterError,
        "categories['a'] lists a missing value. Missing values need no "
        "declaration; leave it out.",
    ),
    case(
        "a value is not declared",
        lambda: fit_tree(
            {"a": ["x", "y", "z"]}, [*Y, "no"], categories={"a": ["x", "y"]}
        ),
        DataError,
        "Column 'a' has the value 'z' in row 2, which is not among its declared "
        "categories 'x', 'y'. Add it to categories= or correct the row.",
    ),
    case(
        "a number is not declared",
        lambda: fit_tree({"a": [1, 2]}, Y, categories={"a": ["1", "2"]}),
        DataError,
        "Column 'a' has the value 1 in row 0, which is not among its declared "
        "categories '1', '2'. Add it to categories= or correct the row.",
    ),
    case(
        "a value of many is not declared",
        lambda: fit_tree({"a": ["x", "?"]}, Y, categories={"a": list("abcdefghx")}),
        DataError,
        "Column 'a' has the value '?' in row 1, which is not among its declared "
        "categories 'a', 'b', 'c', 'd', 'e' and 4 more. Add it to categories= or "
        "correct the row.",
    ),
    # -- parameters
    case(
        "algorithm is unknown",
        lambda: Recipe("ID3\n; DROP"),
        ParameterError,
        "algorithm must be 'ID3' or 'C4.5' or 'CART'. Got 'ID3\\n; DROP' instead.",
    ),
    case(
        "costs are beyond all",
        lambda: Recipe(costs=((0, 1e151), (1, 0))),
        ParameterError,
        "costs must be None or a square of numbers from 0 to 1e150, a row for each "
        "true class, with 0 where the prediction is right. Got ((0, 1e+151), (1, 0))"
        " instead.",
    ),
    case(
        "criterion is unknown",
        lambda: fit_tree(X, Y, Recipe(criterion="information")),
        ParameterError,
        "criterion must be 'gain' or 'gain_ratio' or 'gini' or 'entropy' or "
        "'log_loss' or a function of the class weights of nodes and of their "
        "branches. Got 'information' instead.",
    ),
    case(
        "criterion is a class",
        lambda: fit_tree(X, Y, Recipe(criterion=dict)),
        ParameterError,
        "criterion must be 'gain' or 'gain_ratio' or 'gini' or 'entropy' or "
        "'log_loss' or a function of the class weights of nodes and of their "
        "branches. Got <class 'dict'> "
        "instead.",
    ),
    case(
        "criterion is None",
        lambda: fit_tree(X, Y, Recipe(criterion=None)),
        ParameterError,
        "criterion must be 'gain' or 'gain_ratio' or 'gini' or 'entropy' or "
        "'log_loss' or a function of the class weights of nodes and of their "
        "branches. Got None instead.",
    ),
    case(
        "criterion returns a wrong shape",
        lambda: fit_tree(X, Y, Recipe(criterion=lambda nodes, branches: np.zeros(3))),
        ParameterError,
        "criterion '<lambda>' must return one score for each of the 1 nodes it is"
        " given. Got an array of shape (3,).",
    ),
    case(
        "criterion returns NaN",
        lambda: fit_tree(
            X, Y, Recipe(criterion=lambda nodes, branches: np.full(len(nodes), np.nan))
        ),
        ParameterError,
        "criterion '<lambda>' returned NaN. Scores must be numbers; branches "
        "without cases are rows of zeros and need care.",
    ),
    case(
        "max_depth is negative",
        lambda: ID3Classifier(max_depth=-1).fit(X, Y),
        ParameterError,
        "max_depth must be None or a whole number of at least 0. Got -1 instead.",
    ),
    case(
        "max_depth is a fraction",
        lambda: ID3Classifier(max_depth=2.5).fit(X, Y),
        ParameterError,
        "max_depth must be None or a whole number of at least 0. Got 2.5 instead.",
    ),
    case(
        "max_depth is a whole float",
        lambda: ID3Classifier(max_depth=2.0).fit(X, Y),
        ParameterError,
        "max_depth must be None or a whole number of at least 0. Got 2.0 instead.",
    ),
    case(
        "max_depth is true",
        lambda: ID3Classifier(max_depth=True).fit(X, Y),
        ParameterError,
        "max_depth must be None or a whole number of at least 0. Got True instead.",
    ),
    case(
        "max_depth is text",
        lambda: ID3Classifier(max_depth="3").fit(X, Y),
        ParameterError,
        "max_depth must be None or a whole number of at least 0. Got '3' instead.",
    ),
    case(
        "min_samples_split is one",
        lambda: ID3Classifier(min_samples_split=1).fit(X, Y),
        ParameterError,
        "min_samples_split must be a whole number of at least 2 or a share "
        "above 0 and up to 1.0. Got 1 instead.",
    ),
    case(
        "min_samples_split is a share of more than all",
        lambda: ID3Classifier(min_samples_split=1.5).fit(X, Y),
        ParameterError,
        "min_samples_split must be a whole number of at least 2 or a share "
        "above 0 and up to 1.0. Got 1.5 instead.",
    ),
    case(
        "min_samples_split is a share of nothing",
        lambda: ID3Classifier(min_samples_split=0.0).fit(X, Y),
        ParameterError,
        "min_samples_split must be a whole number of at least 2 or a share "
        "above 0 and up to 1.0. Got 0.0 instead.",
    ),
    case(
        "min_samples_split is NaN",
        lambda: ID3Classifier(min_samples_split=float("nan")).fit(X, Y),
        ParameterError,
        "min_samples_split must be a whole number of at least 2 or a share "
        "above 0 and up to 1.0. Got nan instead.",
    ),
    case(
        "min_samples_split is None",
        lambda: ID3Classifier(min_samples_split=None).fit(X, Y),
        ParameterError,
        "min_samples_split must be a whole number of at least 2 or a share "
        "above 0 and up to 1.0. Got None instead.",
    ),
    case(
        "min_samples_leaf is zero",
        lambda: ID3Classifier(min_samples_leaf=0).fit(X, Y),
        ParameterError,
        "min_samples_leaf must be a whole number of at least 1 or a share between"
        " 0 and 1. Got 0 instead.",
    ),
    case(
        "min_samples_leaf is a share too large",
        lambda: ID3Classifier(min_samples_leaf=1.5).fit(X, Y),
        ParameterError,
        "min_samples_leaf must be a whole number of at least 1 or a share between"
        " 0 and 1. Got 1.5 instead.",
    ),
    case(
        "min_samples_leaf is text",
        lambda: ID3Classifier(min_samples_leaf="1").fit(X, Y),
        ParameterError,
        "min_samples_leaf must be a whole number of at least 1 or a share between"
        " 0 and 1. Got '1' instead.",
    ),
    case(
        "min_gain is negative",
        lambda: ID3Classifier(min_gain=-0.1).fit(X, Y),
        ParameterError,
        "min_gain must be a finite number of at least 0. Got -0.1 instead.",
    ),
    case(
        "min_gain is infinite",
        lambda: ID3Classifier(min_gain=float("inf")).fit(X, Y),
        ParameterError,
        "min_gain must be a finite number of at least 0. Got inf instead.",
    ),
    case(
        "min_gain is None",
        lambda: ID3Classifier(min_gain=None).fit(X, Y),
        ParameterError,
        "min_gain must be a finite number of at least 0. Got None instead.",
    ),
    case(
        "min_gain is an array",
        lambda: ID3Classifier(min_gain=np.zeros(2)).fit(X, Y),
        ParameterError,
        "min_gain must be a finite number of at least 0. Got array([0., 0.]) instead.",
    ),
    case(
        "missing is unknown",
        lambda: ID3Classifier(missing="drop").fit(X, Y),
        ParameterError,
        "missing must be 'branch' or 'split' or 'largest' or 'node' or 'error' or "
        "'learned' or 'surrogate'. Got 'drop' instead.",
    ),
    case(
        "missing is None",
        lambda: ID3Classifier(missing=None).fit(X, Y),
        ParameterError,
        "missing must be 'branch' or 'split' or 'largest' or 'node' or 'error' or "
        "'learned' or 'surrogate'. Got None instead.",
    ),
    case(
        "unseen is unknown",
        lambda: ID3Classifier(unseen="ignore").fit(X, Y),
        ParameterError,
        "unseen must be 'branch' or 'split' or 'largest' or 'node' or 'error'. "
        "Got 'ignore' instead.",
    ),
    case(
        "unseen is a number",
        lambda: ID3Classifier(unseen=0).fit(X, Y),
        ParameterError,
        "unseen must be 'branch' or 'split' or 'largest' or 'node' or 'error'. "
        "Got 0 instead.",
    ),
    case(
        "missing is an error and a cell is missing",
        lambda: fit_tree({"a": ["x", None]}, Y, Recipe(missing="error")),
        DataError,
        "Column 'a' is missing in row 1, and missing='error' allows no missing "
        "values. Fill it or choose another policy: 'branch', 'split', "
        "'largest' or 'node'.",
    ),
    case(
        "missing is an error and a number is missing",
        lambda: fit_tree({"a": [1, 2], "b": [None, 2.5]}, Y, Recipe(missing="error")),
        DataError,
        "Column 'b' is missing in row 0, and missing='error' allows no missing "
        "values. Fill it or choose another policy: 'branch', 'split', "
        "'largest' or 'node'.",
    ),
    # -- prediction
    case(
        "predict lacks a column",
        lambda: MODEL.predict({"a": ["x"], "c": [1]}),
        DataError,
        "X lacks the column 'b' that the tree was fitted with. Its columns are "
        "'a', 'c'; rename or add what is lacking, "
        "with empty cells if it is not known.",
    ),
    case(
        "predict lacks all columns",
        lambda: MODEL.predict(pd.DataFrame({"A": ["x"], "B": [1]})),
        DataError,
        "X lacks the columns 'a', 'b' that the tree was fitted with. Did you mean "
        "'A'? Its columns are 'A', 'B'; rename or add what is lacking, "
        "with empty cells if it is not known.",
    ),
    case(
        "predict has too few columns without names",
        lambda: MODEL.predict([["x"]]),
        DataError,
        "X has 1 features, but branchwise is expecting 2 features as input: 'a', "
        "'b'. Pass the columns that the tree was fitted with, in that order.",
    ),
    case(
        "predict has too many columns without names",
        lambda: MODEL.predict(np.zeros((1, 3))),
        DataError,
        "X has 3 features, but branchwise is expecting 2 features as input: 'a', "
        "'b'. Pass the columns that the tree was fitted with, in that order.",
    ),
    case(
        "predict has no columns",
        lambda: MODEL.predict([]),
        DataError,
        "X has 0 features, but branchwise is expecting 2 features as input: 'a', "
        "'b'. Pass the columns that the tree was fitted with, in that order.",
    ),
    case(
        "predict has one dimension",
        lambda: MODEL.predict(np.array(["x", 1], dtype=object)),
        DataError,
        "X must be a table. Expected 2D array, got 1D array instead. Reshape your"
        " data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is "
        "one row.",
    ),
    case(
        "predict gets numbers for text",
        lambda: MODEL.predict({"a": [1], "b": [1]}),
        DataError,
        "Column 'a' was learnt as text (such as 'x') but now holds numbers (1 in "
        "row 0). Convert it to text, as it was for fitting.",
    ),
    case(
        "predict gets booleans for text",
        lambda: MODEL.predict({"a": [True], "b": [1]}),
        DataError,
        "Column 'a' was learnt as text (such as 'x') but now holds booleans (True"
        " in row 0). Convert it to text, as it was for fitting.",
    ),
    case(
        "predict gets text for numbers",
        lambda: MODEL.predict({"a": ["x"], "b": ["1"]}),
        DataError,
        "Column 'b' was learnt as numbers but now holds text ('1' in row 0). "
        "Convert it to numbers, as it was for fitting.",
    ),
    case(
        "predict gets booleans for numbers",
        lambda: MODEL.predict({"a": ["x", "y"], "b": pd.array([None, True])}),
        DataError,
        "Column 'b' was learnt as numbers but now holds booleans (True in row 1)."
        " Convert it to numbers, as it was for fitting.",
    ),
    case(
        "predict gets categories of another type",
        lambda: MODEL.predict({"a": pd.Categorical(["x", 1]), "b": [1, 1]}),
        DataError,
        "Column 'a' was learnt as text (such as 'x') but now holds numbers (1 in "
        "row 1). Convert it to text, as it was for fitting.",
    ),
    case(
        "predict gets text for number names",
        lambda: NAMES.predict({"n": ["1"]}),
        DataError,
        "Column 'n' was learnt as numbers (such as 1) but now holds text ('1' in "
        "row 0). Convert it to numbers, as it was for fitting.",
    ),
    case(
        "predict gets an infinite number",
        lambda: MODEL.predict({"a": ["x"], "b": [float("inf")]}),
        DataError,
        "Column 'b' is infinite in row 0 (Input X contains infinity). Numbers "
        "must be finite; replace it by a large number or by a missing value.",
    ),
    case(
        "predict gets an infinite name",
        lambda: NAMES.predict({"n": [float("inf")]}),
        DataError,
        "Column 'n' is infinite in row 0 (Input X contains infinity). Numbers "
        "must be finite; replace it by a large number or by a missing value.",
    ),
    case(
        "predict gets a nested cell",
        lambda: MODEL.predict({"a": [["x"]], "b": [1]}),
        DataError,
        "Column 'a' has a cell of type list in row 0: ['x']. A cell must be text,"
        " a number, a boolean or missing; convert the column first.",
    ),
    case(
        "predict gets unequal lengths",
        lambda: MODEL.predict({"a": ["x", "y"], "b": [1]}),
        DataError,
        "Columns must have the same length. Got 2 rows in 'a' and 1 in 'b'; give "
        "every column one value for each row.",
    ),
    case(
        "predict gets a missing value that is an error",
        lambda: STRICT.predict({"a": ["x", None], "b": [1, 1]}),
        DataError,
        "Column 'a' is missing in row 1, and missing='error' allows no missing "
        "values. Fill it or choose another policy: 'branch', 'split', "
        "'largest' or 'node'.",
    ),
    case(
        "predict gets a missing number that is an error",
        lambda: STRICT.predict({"a": ["x", "x"], "b": [1, None]}),
        DataError,
        "Column 'b' is missing in row 1, and missing='error' allows no missing "
        "values. Fill it or choose another policy: 'branch', 'split', "
        "'largest' or 'node'.",
    ),
    case(
        "predict gets an unseen value that is an error",
        lambda: STRICT.predict({"a": ["x", "z"], "b": [1, 1]}),
        DataError,
        "Column 'a' has the value 'z' in row 1, which training did not have, and "
        "unseen='error' allows none. Declare it in categories= or choose another "
        "policy: 'node', 'largest', 'split' or 'branch'.",
    ),
    # -- pruning, costs, numbers to predict
    case(
        "confidence of zero",
        lambda: C45Classifier(confidence=0).fit(_CELLS, _LABELS),
        ParameterError,
        "confidence must be a number above 0 and up to 0.5. Got 0 instead.",
    ),
    case(
        "confidence above a half",
        lambda: C45Classifier(confidence=0.6).fit(_CELLS, _LABELS),
        ParameterError,
        "confidence must be a number above 0 and up to 0.5. Got 0.6 instead.",
    ),
    case(
        "confidence is text",
        lambda: C45Classifier(confidence="high").fit(_CELLS, _LABELS),
        ParameterError,
        "confidence must be a number above 0 and up to 0.5. Got 'high' instead.",
    ),
    case(
        "confidence is not a number",
        lambda: MODEL.prune("error-based", confidence=float("nan")),
        ParameterError,
        "confidence must be a number above 0 and up to 0.5. Got nan instead.",
    ),
    case(
        "confidence without its pruning",
        lambda: ID3Classifier(confidence=0.1).fit(_CELLS, _LABELS),
        ParameterError,
        "confidence=0.1 has no effect unless pruning is 'error-based'. Got "
        "pruning=None.",
    ),
    case(
        "confidence with another pruning",
        lambda: MODEL.prune("cost-complexity", confidence=0.1),
        ParameterError,
        "confidence=0.1 has no effect unless pruning is 'error-based'. Got "
        "pruning='cost-complexity'.",
    ),
    case(
        "min_weight_fraction_leaf above a half",
        lambda: CARTRegressor(min_weight_fraction_leaf=0.6).fit(_CELLS, [1.0, 2.0]),
        ParameterError,
        "min_weight_fraction_leaf must be a share from 0 up to 0.5. Got 0.6 instead.",
    ),
    case(
        "max_p_value of zero",
        lambda: ID3Classifier(max_p_value=0).fit(_CELLS, _LABELS),
        ParameterError,
        "max_p_value must be None or a probability above 0 and up to 1, such as "
        "0.05. Got 0 instead.",
    ),
    case(
        "max_p_value in percent",
        lambda: ID3Classifier(max_p_value=5).fit(_CELLS, _LABELS),
        ParameterError,
        "max_p_value must be None or a probability above 0 and up to 1, such as "
        "0.05. Got 5 instead.",
    ),
    case(
        "costs of one row",
        lambda: ID3Classifier(costs=[[0, 1]]).fit(_CELLS, _LABELS),
        ParameterError,
        "costs must be None or a square of numbers from 0 to 1e150, a row "
        "for each true class, with 0 where the prediction is right. Got [[0, 1]]"
        " instead.",
    ),
    case(
        "costs of unequal rows",
        lambda: ID3Classifier(costs=[[0, 1], [1]]).fit(_CELLS, _LABELS),
        ParameterError,
        "costs must be None or a square of numbers from 0 to 1e150, a row "
        "for each true class, with 0 where the prediction is right. Got [[0, 1], "
        "[1]]"
        " instead.",
    ),
    case(
        "costs that are negative",
        lambda: ID3Classifier(costs=[[0, -1], [1, 0]]).fit(_CELLS, _LABELS),
        ParameterError,
        "costs must be None or a square of numbers from 0 to 1e150, a row "
        "for each true class, with 0 where the prediction is right. Got [[0, -1], [1,"
        " 0]]"
        " instead.",
    ),
    case(
        "costs of right answers",
        lambda: ID3Classifier(costs=[[1, 1], [1, 0]]).fit(_CELLS, _LABELS),
        ParameterError,
        "costs must be None or a square of numbers from 0 to 1e150, a row "
        "for each true class, with 0 where the prediction is right. Got [[1, 1], [1, "
        "0]]"
        " instead.",
    ),
    case(
        "costs that are infinite",
        lambda: ID3Classifier(costs=[[0, np.inf], [1, 0]]).fit(_CELLS, _LABELS),
        ParameterError,
        "costs must be None or a square of numbers from 0 to 1e150, a row "
        "for each true class, with 0 where the prediction is right. Got [[0, inf], "
        "[1, 0]]"
        " instead.",
    ),
    case(
        "costs are text",
        lambda: ID3Classifier(costs="cheap").fit(_CELLS, _LABELS),
        ParameterError,
        "costs must be None or a square of numbers from 0 to 1e150, a row "
        "for each true class, with 0 where the prediction is right. Got 'cheap'"
        " instead.",
    ),
    case(
        "costs for other classes",
        lambda: ID3Classifier(costs=[[0, 1, 1], [1, 0, 1], [1, 1, 0]]).fit(
            _CELLS, _LABELS
        ),
        ParameterError,
        "costs must have a row and a column for each of the 2 classes 'no', "
        "'yes'. Got 3 rows.",
    ),
    case(
        "priors without a class",
        lambda: ID3Classifier(priors={"no": 1}).fit(_CELLS, _LABELS),
        ParameterError,
        "priors must be None or a dict that gives every class its share: numbers "
        "of at least 0 for 'no', 'yes'. Got {'no': 1}.",
    ),
    case(
        "priors that are negative",
        lambda: ID3Classifier(priors={"no": -1, "yes": 2}).fit(_CELLS, _LABELS),
        ParameterError,
        "priors must be None or a dict that gives every class its share: numbers "
        "of at least 0 for 'no', 'yes'. Got {'no': -1, 'yes': 2}.",
    ),
    case(
        "priors of zero",
        lambda: ID3Classifier(priors={"no": 0, "yes": 0}).fit(_CELLS, _LABELS),
        ParameterError,
        "priors must be None or a dict that gives every class its share: numbers "
        "of at least 0 for 'no', 'yes'. Got {'no': 0, 'yes': 0}.",
    ),
    case(
        "priors are a list",
        lambda: ID3Classifier(priors=[0.5, 0.5]).fit(_CELLS, _LABELS),
        ParameterError,
        "priors must be None or a dict that gives every class its share: numbers "
        "of at least 0 for 'no', 'yes'. Got [0.5, 0.5].",
    ),
    case(
        "groups by a function",
        lambda: Recipe(criterion=lambda nodes, _: nodes[:, 0], branching="groups"),
        ParameterError,
        "branching='groups' merges values by 'gain', 'gain_ratio' or 'gini'. Got a "
        "function as criterion; choose branching='values' or 'two-way' for it.",
    ),
    case(
        "groups of values for numbers",
        lambda: Recipe(criterion="variance", branching="groups"),
        ParameterError,
        "branching='groups' merges values by 'gain', 'gain_ratio' or 'gini'. Got "
        "'variance'; choose branching='values' or 'two-way' for it.",
    ),
    case(
        "numbers that are infinite",
        lambda: CARTRegressor().fit(_CELLS, [1.0, 2.0, np.inf, 4.0]),
        DataError,
        "y is infinite in row 2. Input y contains infinity; every row needs a "
        "finite number.",
    ),
    case(
        "numbers that are NaN",
        lambda: CARTRegressor().fit(_CELLS, [1.0, 2.0, np.nan, 4.0]),
        DataError,
        "y is missing in 1 row, the first of them row 2. Input y contains NaN or "
        "None, but every row needs a label; drop the rows without.",
    ),
    case(
        "numbers that are text",
        lambda: CARTRegressor().fit(_CELLS, list("abcd")),
        DataError,
        "y must hold numbers to be predicted. Got 'a' among its values; convert "
        "it, or use a classifier.",
    ),
    case(
        "numbers that are too large",
        lambda: CARTRegressor().fit(_CELLS, [1.0, 2.0, 1e200, 4.0]),
        DataError,
        "y must have numbers up to 1e+120. Got 1e+200; use a larger unit.",
    ),
    case(
        "groups that are no flag",
        lambda: C45Classifier(group_values="no").fit(_CELLS, list("abab")),
        ParameterError,
        "group_values must be True or False. Got 'no' instead.",
    ),
    case(
        "cross-validation without groups",
        lambda: C45Classifier(cross_validate=True).fit(_CELLS, list("abab")),
        ParameterError,
        "cross_validate=True has no effect unless group_values is True. Got "
        "group_values=False.",
    ),
    case(
        "a tolerance without an early stop",
        lambda: GradientBoostingClassifier(tol=0.5).fit(_CELLS, list("abab")),
        ParameterError,
        "tol=0.5 has no effect unless n_iter_no_change is given. Give that, too, or "
        "leave it out.",
    ),
    case(
        "a row without columns",
        lambda: MODEL.predict({}),
        DataError,
        "X lacks the columns 'a', 'b' that the tree was fitted with. Add what is "
        "lacking, with empty cells if it is not known.",
    ),
    case(
        "rates that are negative",
        lambda: CARTRegressor(criterion="poisson").fit(_CELLS, [1.0, 2.0, -3.0, 4.0]),
        DataError,
        "criterion='poisson' and loss='poisson' need numbers y that are not negative "
        "and not all 0. Got numbers from -3 to 4; use criterion='variance' or "
        "loss='squared_error'.",
    ),
    case(
        "error-based pruning of numbers",
        lambda: CARTRegressor(pruning="error-based").fit(_CELLS, [1.0, 2.0, 3.0, 4.0]),
        ParameterError,
        "pruning='error-based' counts wrong classes, and this tree predicts "
        "numbers. Use 'reduced-error' or 'cost-complexity'.",
    ),
    case(
        "C4.5's thresholds of numbers",
        lambda: Recipe(criterion="variance", quinlan_thresholds=True),
        ParameterError,
        "quinlan_thresholds=True reduces what thresholds tell of classes, in bits, and "
        "this tree predicts numbers. Leave it out.",
    ),
    case(
        "reduced-error pruning without rows",
        lambda: ID3Classifier(pruning="reduced-error").fit(_CELLS, _LABELS),
        ParameterError,
        "pruning='reduced-error' needs rows to prune with: either validation, a "
        "table and its target, or validation_fraction, the share of the rows that"
        " is set aside. Got neither.",
    ),
    case(
        "reduced-error pruning with rows twice",
        lambda: ID3Classifier(pruning="reduced-error", validation_fraction=0.5).fit(
            _CELLS, _LABELS, validation=(_CELLS, _LABELS)
        ),
        ParameterError,
        "pruning='reduced-error' needs rows to prune with: either validation, a "
        "table and its target, or validation_fraction, the share of the rows that"
        " is set aside. Got both.",
    ),
    case(
        "validation_fraction without its pruning",
        lambda: ID3Classifier(validation_fraction=0.5).fit(_CELLS, _LABELS),
        ParameterError,
        "validation_fraction has no effect unless pruning is 'reduced-error'. Got"
        " pruning=None.",
    ),
    case(
        "validation without its pruning",
        lambda: ID3Classifier().fit(_CELLS, _LABELS, validation=(_CELLS, _LABELS)),
        ParameterError,
        "validation has no effect unless pruning is 'reduced-error'. Got pruning=None.",
    ),
    case(
        "validation_fraction of zero",
        lambda: REDUCED(validation_fraction=0).fit(_CELLS, _LABELS),
        ParameterError,
        "validation_fraction must be None or a share between 0 and 1, such as "
        "0.25. Got 0 instead.",
    ),
    case(
        "validation_fraction above one",
        lambda: REDUCED(validation_fraction=1.5).fit(_CELLS, _LABELS),
        ParameterError,
        "validation_fraction must be None or a share between 0 and 1, such as "
        "0.25. Got 1.5 instead.",
    ),
    case(
        "validation_fraction is text",
        lambda: REDUCED(validation_fraction="half").fit(_CELLS, _LABELS),
        ParameterError,
        "validation_fraction must be None or a share between 0 and 1, such as "
        "0.25. Got 'half' instead.",
    ),
    case(
        "validation_fraction of too few rows",
        lambda: REDUCED(validation_fraction=0.01).fit(_CELLS, _LABELS),
        DataError,
        "validation_fraction=0.01 leaves no rows to grow from or none to validate"
        " with, of 4. Pass a validation set.",
    ),
    case(
        "validation is no pair",
        lambda: REDUCED().fit(_CELLS, _LABELS, validation=_CELLS),
        ParameterError,
        "validation must be a pair: a table with the columns of X, and its "
        "target. Got dict instead.",
    ),
    case(
        "validation with other columns",
        lambda: REDUCED().fit(_CELLS, _LABELS, validation=({"a": ["x"]}, ["no"])),
        DataError,
        "In the validation set: X lacks the column 'b' that the tree was fitted "
        "with. Its columns are 'a'; rename or add what is lacking, "
        "with empty cells if it is not known.",
    ),
    case(
        "validation with other classes",
        lambda: REDUCED().fit(
            _CELLS, _LABELS, validation=(_CELLS, ["no", "yes", "maybe", "yes"])
        ),
        DataError,
        "In the validation set: y has 'maybe', but the classes of the tree are "
        "'no', 'yes'. Leave those rows out.",
    ),
    case(
        "validation with too few labels",
        lambda: REDUCED().fit(_CELLS, _LABELS, validation=(_CELLS, ["no", "yes"])),
        DataError,
        "In the validation set: y must have one label for each row of X. Got 2 "
        "labels for 4 rows (inconsistent numbers of samples).",
    ),
    case(
        "validation with other types",
        lambda: REDUCED().fit(
            _CELLS, _LABELS, validation=({"a": [1], "b": [1]}, ["no"])
        ),
        DataError,
        "In the validation set: Column 'a' was learnt as text (such as 'x') but "
        "now holds numbers (1 in row 0). Convert it to text, as it was for "
        "fitting.",
    ),
    case(
        "validation without rows",
        lambda: REDUCED().fit(_CELLS, _LABELS, validation=({"a": [], "b": []}, [])),
        DataError,
        "In the validation set: X has no rows. Pass rows to prune with.",
    ),
    case(
        "prune with a missing value that is an error",
        lambda: STRICT.prune("reduced-error", {"a": [None], "b": [1]}, ["no"]),
        DataError,
        "Column 'a' is missing in row 0, and missing='error' allows no missing "
        "values. Fill it or choose another policy: 'branch', 'split', "
        "'largest' or 'node'.",
    ),
    case(
        "prune by an unknown method",
        lambda: MODEL.prune("minimal"),
        ParameterError,
        "method must be 'error-based' or 'reduced-error' or 'cost-complexity'. "
        "Got 'minimal' instead.",
    ),
    case(
        "prune by no method",
        lambda: MODEL.prune(None),
        ParameterError,
        "method must be 'error-based' or 'reduced-error' or 'cost-complexity'. "
        "Got None instead.",
    ),
    case(
        "prune without the rows it needs",
        lambda: MODEL.prune("reduced-error"),
        ParameterError,
        "method 'reduced-error' needs rows to prune with that the tree was not "
        "grown from. Pass X and y.",
    ),
    case(
        "prune with other columns",
        lambda: MODEL.prune("reduced-error", {"a": ["x"]}, ["no"]),
        DataError,
        "X lacks the column 'b' that the tree was fitted with. Its columns are "
        "'a'; rename or add what is lacking, "
        "with empty cells if it is not known.",
    ),
    case(
        "prune with other classes",
        lambda: MODEL.prune("reduced-error", _CELLS, ["maybe"] * 4),
        DataError,
        "y has 'maybe', but the classes of the tree are 'no', 'yes'. Leave those "
        "rows out.",
    ),
    case(
        "prune with X alone",
        lambda: MODEL.prune("reduced-error", _CELLS),
        ParameterError,
        "X and y belong together: a table and its target. Got X without y.",
    ),
    case(
        "prune with weights alone",
        lambda: MODEL.prune("error-based", sample_weight=[1, 2, 3, 4]),
        ParameterError,
        "sample_weight has no effect without X and y.",
    ),
    case(
        "prune with other rows",
        lambda: MODEL.prune("error-based", _CELLS, _LABELS[::-1]),
        DataError,
        "X and y must be the rows that the tree was grown from, with their "
        "sample_weight: a branch that is raised gets the cases of its siblings, "
        "so all are counted again. These rows give other counts. Without X and y "
        "branches are not raised.",
    ),
    case(
        "prune with rows of other values",
        lambda: MODEL.prune(
            "error-based", {**_CELLS, "a": ["x", "x", "y", "z"]}, _LABELS
        ),
        DataError,
        "X and y must be the rows that the tree was grown from, with their "
        "sample_weight: a branch that is raised gets the cases of its siblings, "
        "so all are counted again. These rows give other counts. Without X and y "
        "branches are not raised.",
    ),
    case(
        "raise without rows",
        lambda: MODEL.prune("error-based", raise_subtrees=True),
        ParameterError,
        "raise_subtrees=True needs the rows that the tree was grown from, to "
        "count them again. Pass X and y.",
    ),
    case(
        "raise_subtrees is text",
        lambda: MODEL.prune("error-based", raise_subtrees="yes"),
        ParameterError,
        "raise_subtrees must be True or False. Got 'yes' instead.",
    ),
    case(
        "ccp_alpha is negative",
        lambda: MODEL.prune("cost-complexity", ccp_alpha=-1),
        ParameterError,
        "ccp_alpha must be a finite number of at least 0, 'best' or '1-se'. Got "
        "-1 instead.",
    ),
    case(
        "ccp_alpha is an unknown rule",
        lambda: MODEL.prune("cost-complexity", ccp_alpha="big"),
        ParameterError,
        "ccp_alpha must be a finite number of at least 0, 'best' or '1-se'. Got "
        "'big' instead.",
    ),
    case(
        "ccp_alpha by rows that are not there",
        lambda: MODEL.prune("cost-complexity", ccp_alpha="1-se"),
        ParameterError,
        "ccp_alpha='1-se' needs rows to choose by that the tree was not grown "
        "from. Pass X and y.",
    ),
    case(
        "ccp_alpha and rows",
        lambda: MODEL.prune("cost-complexity", _CELLS, _LABELS, ccp_alpha=0.1),
        ParameterError,
        "X and y have no effect where ccp_alpha is a number. Leave them out, or "
        "let them choose it: ccp_alpha='best' or '1-se'.",
    ),
    case(
        "tolerance is negative",
        lambda: MODEL.prune("reduced-error", _CELLS, _LABELS, tolerance=-1),
        ParameterError,
        "tolerance must be a finite number of at least 0. Got -1 instead.",
    ),
    case(
        "collapse nothing",
        MODEL.collapse_nodes,
        ParameterError,
        "collapse_nodes needs the numbers of nodes that become leaves.",
    ),
    case(
        "collapse a node that is not there",
        lambda: MODEL.collapse_nodes(99),
        ParameterError,
        "collapse_nodes takes numbers of nodes, from 0, the root, to 4. Got 99; "
        "apply() and rules() return the numbers.",
    ),
    case(
        "collapse by name",
        lambda: MODEL.collapse_nodes("root"),
        ParameterError,
        "collapse_nodes takes numbers of nodes, from 0, the root, to 4. Got 'root'; "
        "apply() and rules() return the numbers.",
    ),
    case(
        "collapse a leaf",
        lambda: MODEL.collapse_nodes(2),
        ParameterError,
        "Node 2 cannot be pruned: it is a leaf already. Nodes are renumbered "
        "whenever a tree is pruned.",
    ),
    case(
        "collapse a node that is snipped already",
        lambda: MODEL.collapse_nodes(1).collapse_nodes(1),
        ParameterError,
        "Node 1 cannot be pruned: it is a leaf already. Nodes are renumbered "
        "whenever a tree is pruned.",
    ),
    case(
        "collapse a node below another",
        lambda: MODEL.collapse_nodes(0, 1),
        ParameterError,
        "Node 1 cannot be pruned: it is below node 0, which is to be pruned, too."
        " Name one of them.",
    ),
    case(
        "the pruning path of other columns",
        lambda: MODEL.pruning_path({"a": ["x"]}, ["no"]),
        DataError,
        "X lacks the column 'b' that the tree was fitted with. Its columns are "
        "'a'; rename or add what is lacking, "
        "with empty cells if it is not known.",
    ),
    case(
        "plot a table with rows",
        lambda: plot_pruning_path(MODEL.pruning_path(), _CELLS, _LABELS),
        ParameterError,
        "X and y have no effect with a table. Pass the model, or pass them to its"
        " pruning_path().",
    ),
    case(
        "plot something else",
        lambda: plot_pruning_path("tree"),
        ParameterError,
        "plot_pruning_path draws a model or what its pruning_path() returns. Got "
        "str instead.",
    ),
    # -- views and datasets
    case(
        "to_text with a negative depth",
        lambda: MODEL.to_text(max_depth=-1),
        ParameterError,
        "max_depth must be None or a whole number of at least 0. Got -1.",
    ),
    case(
        "to_text without values",
        lambda: MODEL.to_text(max_values=0),
        ParameterError,
        "max_values must be a whole number of at least 1. Got 0.",
    ),
    case(
        "an unknown dataset",
        lambda: datasets.load("titanic"),
        ParameterError,
        "There is no dataset 'titanic'. Choose one of 'car', 'fish', 'golf', "
        "'house_votes', 'iris', 'labor', 'lenses', 'tennis', 'toy', 'toy_test', "
        "'voters', 'votes', 'votes_test', 'weather'.",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), CASES)
def test_message(call, error, message):
    with pytest.raises(BranchwiseError) as caught:
        call()
    assert type(caught.value) is error
    assert str(caught.value) == message
    # No error of another library stands above it.
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_errors_are_value_errors():
    """Code written for scikit-learn catches them."""
    assert issubclass(BranchwiseError, ValueError)
    assert issubclass(DataError, BranchwiseError)
    assert issubclass(ParameterError, BranchwiseError)


@pytest.mark.parametrize("wrong", [-1, 0, "x", None, 2.5, [], float("nan")])
def test_recipes_and_estimators_refuse_the_same(wrong):
    """An estimator's parameters are a recipe's: no check is made twice."""
    for name in ("max_depth", "min_samples_split", "min_samples_leaf", "min_gain"):
        got = []
        for make in (
            lambda name: Recipe(**{name: wrong}),
            lambda name: ID3Classifier(**{name: wrong}).fit(X, Y),
        ):
            try:
                make(name)
            except ParameterError as error:
                got.append(str(error))
        assert len(got) in (0, 2)
        assert len(set(got)) <= 1


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    tree = ID3Classifier().fit(X, Y)
    before = tree.model_
    with pytest.raises(DataError):
        tree.fit({"b": [[], []]}, Y)
    assert tree.model_ is before
    assert tree.feature_names_in_.tolist() == ["a"]


def test_extra_columns_and_other_orders_are_no_error():
    """Columns are found by name; those that the tree does not know are ignored."""
    table = {"z": [[], []], "b": [2, 1], "a": ["x", "y"]}
    assert MODEL.predict(table).tolist() == ["yes", "yes"]


def test_data_errors_know_their_row_and_column():
    model = ID3Classifier(missing="error").fit({"x": ["a", "b"]}, [0, 1]).model_
    with pytest.raises(DataError) as caught:
        model.predict({"x": ["a", None]})
    assert (caught.value.row, caught.value.column) == (1, "x")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.row, again.column) == (str(caught.value), 1, "x")
    with pytest.raises(DataError) as caught:
        ID3Classifier().fit({"x": ["a", "b"]}, [0.0, float("inf")])
    assert (caught.value.row, caught.value.column) == (1, None)
    assert DataError("no row").row is None
