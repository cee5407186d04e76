"""Columns of delimited text as codes, numbered by the compiled extension.

The extension numbers the distinct cells of every column as they are in the text, and
pyarrow parses each of these once: so types, missing values and quotes are those of
pyarrow. Columns with too many distinct cells are parsed by pyarrow alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from branchwise.data.arrays import Ints
from branchwise.data.arrow import as_array, from_array, pa
from branchwise.files.csv.csv_columns import Parser
from branchwise.files.options import reading_progress
from branchwise.native import available, extension
from branchwise.threads import as_done

#: The most columns that the extension reads.
_WIDEST = 2**11

#: A range of bytes that begins and ends with a row.
Span = tuple[int, int]


@dataclass(frozen=True)
class _Block:
    """Numbered columns of some rows (None: too varied), and a copy of other cells.

    A column has codes of its rows, and what the text has for each code.
    """

    n_rows: int
    columns: list[tuple[Ints, list[bytes]] | None]
    copy: bytes


def numbered_columns(
    parser: Parser, spans: Sequence[Span], indices: Sequence[int], text: Collection[int]
) -> dict[int, Any] | None:
    """Return columns of rows in some spans, or None if pyarrow is to read them all.

    Those in ``text`` are text. Errors are left to pyarrow, too: it says what is wrong.
    """
    if not available() or not spans or parser.width > _WIDEST:
        return None
    first = _numbered(parser, indices, [], spans[0])
    if first is None:
        return None
    varied = [i for i, c in zip(indices, first.columns, strict=True) if c is None]
    coded = [i for i in indices if i not in varied]
    work = partial(_numbered, parser, coded, varied)
    blocks = _in_spans(work, spans if varied else spans[1:])
    if blocks is None:
        return None
    blocks = blocks if varied else [first, *blocks]
    try:
        columns = _copied_columns(parser, varied, text, blocks)
        for at, index in enumerate(coded):
            pieces = [block.columns[at] for block in blocks]
            column = _joined(parser, pieces, index in text)
            if column is None:
                return None
            columns[index] = column
    except pa.ArrowInvalid:
        return None
    return columns


def _numbered(
    parser: Parser, coded: Sequence[int], copied: Sequence[int], span: Span
) -> _Block | None:
    rows = parser.content[slice(*span)]
    found = extension().number_csv(
        rows, ord(parser.delimiter), parser.width, list(coded), list(copied)
    )
    if found is None:
        return None
    n_rows, columns, copy = found
    return _Block(n_rows, [_cells(rows, c) for c in columns], copy.tobytes())


def _cells(rows: bytes, column: Any) -> tuple[Ints, list[bytes]] | None:
    if column is None:
        return None
    codes, starts, ends = column
    bounds = zip(starts.tolist(), ends.tolist(), strict=True)
    return codes, [rows[begin:end] for begin, end in bounds]


def _in_spans(work: Any, spans: Sequence[Span]) -> list[_Block] | None:
    """Return the blocks of all spans in their order, and report progress."""
    blocks: dict[int, _Block] = {}
    progress, n_rows = reading_progress(), 0
    for at, block in as_done(work, spans, min(pa.cpu_count(), len(spans)) or 1):
        if block is None:
            return None
        blocks[at] = block
        n_rows += block.n_rows
        if progress is not None:
            progress(f"{n_rows:,} rows")
    return [blocks[at] for at in range(len(spans))]


def _copied_columns(
    parser: Parser,
    varied: Sequence[int],
    text: Collection[int],
    blocks: Sequence[_Block],
) -> dict[int, Any]:
    """Return the columns whose cells were copied."""
    if not varied:
        return {}
    copies = b"".join(block.copy for block in blocks)
    # The delimiter after the last cell begins another one, which is empty.
    rows = replace(parser, content=copies, start=0, width=len(varied) + 1)
    as_text = [at for at, index in enumerate(varied) if index in text]
    columns = rows.columns(range(len(varied)), as_text)
    return {index: columns[at] for at, index in enumerate(varied)}


def _joined(
    parser: Parser, pieces: Sequence[tuple[Ints, list[bytes]] | None], as_text: bool
) -> Any:
    """Return a column from its codes in all blocks, or None if a block has none."""
    known = [piece for piece in pieces if piece is not None]
    if len(known) < len(pieces):
        return None
    # In order: then the dictionary of texts need not be sorted later.
    distinct = sorted({cell for _, cells in known for cell in cells})
    values = _parsed_cells(parser, distinct, as_text)
    if values is None:
        return None
    number = np.arange(len(distinct), dtype=np.int32)
    is_plain = pa.types.is_dictionary(values.type) and not values.indices.null_count
    if is_plain:
        number = as_array(values.indices).astype(np.int32)
    position = dict(zip(distinct, number.tolist(), strict=True))
    whole = np.empty(sum(len(codes) for codes, _ in known), dtype=np.int32)
    begin = 0
    for codes, cells in known:
        own = np.array([position[cell] for cell in cells], dtype=np.int32)
        # Without a mode that checks, numpy would fill a copy first.
        own.take(codes, out=whole[begin : begin + len(codes)], mode="clip")
        begin += len(codes)
    indices = from_array(whole)
    if not is_plain:
        return pa.chunked_array([values.take(indices)])
    column = pa.DictionaryArray.from_arrays(indices, values.dictionary, safe=False)
    return pa.chunked_array([column])


def _parsed_cells(parser: Parser, cells: Sequence[bytes], as_text: bool) -> Any:
    """Return the values of distinct cells; None if pyarrow finds other cells."""
    end = parser.delimiter.encode() + b"\n"
    # An empty line is no row: an empty cell has another one beside it.
    rows = b"".join(cell + end for cell in cells)
    alone = replace(parser, content=rows, start=0, width=2)
    column = alone.columns([0], [0] if as_text else [])[0]
    if len(column) != len(cells):
        return None
    return column.combine_chunks()
