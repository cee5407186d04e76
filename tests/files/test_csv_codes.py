"""Numbered columns of delimited text are those that pyarrow reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchwise.errors import DataError
from branchwise.files.csv import csv_codes, csv_rows
from branchwise.files.csv.csv_rows import Records
from branchwise.native import available, extension

pytestmark = pytest.mark.skipif(not available(), reason="needs the extension")

CELLS = (
    *("", "a", "b", "NA", "?", "1", "01", "-7", "2.5", "1e3", "nan", "inf", " a", "a "),
    *(
        "2024-01-31",
        "12:30",
        "true",
        "é",
        "long text with spaces",
        "x" * 40,
        "y" * 150,
        "'",
    ),
)
QUOTED = ('"a"', '"a,b"', '"two ""quotes"""', '"line\nbreak"', '""', '"1"', 'a"b', '"')


def loaded(content: bytes, width: int, text: Any, numbers: bool, size: int) -> Any:
    """Return types and cells of all columns, or the error, by one of two ways."""
    names = tuple(f"c{i}" for i in range(width))
    records = Records(content, "table", names, ",")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_rows, "_WORTH_NUMBERING", -1 if numbers else 2**40)
        patch.setattr(csv_rows, "_NUMBERED", size)
        patch.setattr(csv_rows, "_BLOCK_TAIL", 6)
        try:
            columns = records.load(range(width), text, ["NA", "?", ""])
        except DataError as error:
            return str(error)
    return [(str(c.type), repr(c.to_pylist())) for c in columns]


@st.composite
def tables(draw: Any) -> tuple[bytes, int, set[int]]:
    """Return delimited text, mostly of one width, and the columns that are text."""
    width = draw(st.integers(1, 4))
    cells = CELLS + (QUOTED if draw(st.booleans()) else ())
    each = [
        draw(st.lists(st.sampled_from(cells), min_size=1, max_size=6))
        for _ in range(width)
    ]
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    rows = []
    for _ in range(draw(st.integers(0, 30))):
        row = [draw(st.sampled_from(column)) for column in each]
        if draw(st.integers(0, 60)) == 0:
            row.append("surplus")
        rows.append(",".join(row) + end * draw(st.sampled_from([1, 1, 1, 2])))
    content = "".join(rows).encode()
    if draw(st.booleans()):
        content = content.removesuffix(end.encode())
    if draw(st.integers(0, 20)) == 0:
        content = content.replace(b"a", b"\xff")
    return content, width, draw(st.sets(st.integers(0, width - 1)))


@given(tables(), st.sampled_from([1, 7, 50, 2**20]))
def test_columns_are_those_of_pyarrow(table: Any, size: int) -> None:
    content, width, text = table
    expected = loaded(content, width, text, False, size)
    assert loaded(content, width, text, True, size) == expected


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_that_become_shorter_or_longer(end: str) -> None:
    """The number of rows is guessed from the first ones."""
    long, short = f"{'long ' * 40},b{end}", f"a,{end}"
    for rows in (long * 300 + short * 30_000, short * 30_000 + long * 300, short * 5):
        expected = loaded(rows.encode(), 2, {0}, False, 2**22)
        assert loaded(rows.encode(), 2, {0}, True, 2**22) == expected


def test_varied_columns_are_parsed_by_pyarrow() -> None:
    rng = np.random.default_rng(3)
    rows = [
        f"{rng.choice(['a', 'b', ''])},{value!r},id{row},{row % 70}"
        for row, value in enumerate(rng.normal(size=9_000).tolist())
    ]
    content = "\n".join(rows).encode()
    expected = loaded(content, 4, {3}, False, 2**16)
    assert [kind for kind, _ in expected][1] == "double"
    assert loaded(content, 4, {3}, True, 2**16) == expected
    assert loaded(content, 4, {3}, True, 2**20) == expected


def test_a_column_that_becomes_varied_later_is_read_as_well() -> None:
    rows = ["a,1"] * 3_000 + [f"b{row},2" for row in range(9_000)]
    content = "\n".join(rows).encode()
    expected = loaded(content, 2, set(), False, 2**12)
    assert loaded(content, 2, set(), True, 2**14) == expected


def test_rows_that_are_not_whole_are_left_to_pyarrow() -> None:
    number = extension().number_csv
    for text in (b"a", b"a,b", b"a,b,c\na", b"\n\na,b\n", b"a,b,c,d\n"):
        assert number(text, 44, 3, [0, 1, 2], []) is None
        assert number(text, 44, 3, [], [0, 1, 2]) is None
    assert number(b"", 44, 3, [0], [1])[0] == 0
    for text in (b"a,b,c", b"a,b,c\nd,e,f", b"a,b,c\r\n"):
        lines = text.splitlines()
        n_rows, _, copy = number(text, 44, 3, [], [0, 1, 2])
        assert n_rows == len(lines)
        assert copy.tobytes() == b"".join(line + b",\n" for line in lines)


def test_plain_text_is_not_left_to_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b'a,1\n"b, c",2\n\n?,"3"\r\n'
    found: list[Any] = []

    def kept(*given: Any) -> Any:
        found.append(csv_codes.numbered_columns(*given))
        return found[-1]

    monkeypatch.setattr(csv_rows, "numbered_columns", kept)
    columns = loaded(content, 2, set(), True, 2**20)
    assert columns[0][1] == "['a', 'b, c', None]"
    assert columns[1] == ("int64", "[1, 2, 3]")
    assert found[0] is not None


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"text": 3}, "text must be an array"),
        ({"width": 0}, "width must be between 1 and"),
        ({"width": 2**21}, "width must be between 1 and"),
        ({"delimiter": 10}, "neither a line end nor a quotation mark"),
        ({"delimiter": 200}, "delimiter must be between 1 and 127"),
        ({"numbered": [2]}, r"numbered\[0\] must be between 0 and 1"),
        ({"numbered": [0, 0]}, "must name a column once"),
        ({"copied": [0]}, "must name a column once"),
    ],
)
def test_invalid_arguments_are_named(given_: dict[str, Any], message: str) -> None:
    arguments = {"text": b"a,b\nc,d\n", "delimiter": 44, "width": 2}
    arguments |= {"numbered": [0], "copied": []} | given_
    with pytest.raises((ValueError, TypeError), match=message):
        extension().number_csv(**arguments)
