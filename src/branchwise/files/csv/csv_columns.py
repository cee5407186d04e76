"""Parsing of delimited text into Arrow columns, in parallel and with little memory.

pyarrow infers the types of columns from all rows, and keeps the text of all of them
until then. So the types of long texts are inferred from their first rows, and from
all rows only where later ones do not fit.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from branchwise.data.arrow import arrow_csv, is_text, pa, sorted_dictionary
from branchwise.files.options import reading_progress
from branchwise.files.raw_bytes import Buffer, find

#: Arrow falls back to plain text beyond this many distinct values in a block.
NO_LIMIT = 2**31 - 1

#: How hexadecimal numbers begin.
_HEXADECIMAL = (b"0x", b"0X")
#: Texts longer than this are long.
_LONG = 2**26
#: Bytes of a long text from which the types of its columns are inferred.
_SAMPLE = 2**22


@dataclass(frozen=True)
class Parser:
    """How the rows of a text in UTF-8, from ``start`` on, are parsed.

    ``width`` is the number of cells of a row. With ``quoted_na_values`` the cells that
    are ``missing`` values are so in quotes, too; ``has_quotes`` tells whether there is
    any quotation mark.
    """

    content: Buffer
    start: int
    width: int
    delimiter: str
    missing: tuple[str, ...]
    quoted_na_values: bool
    has_quotes: bool

    @property
    def is_long(self) -> bool:
        """Whether types are inferred from the first rows."""
        return len(self.content) - self.start > _LONG

    def columns(self, indices: Sequence[int], text: Collection[int]) -> dict[int, Any]:
        """Parse columns, those in ``text`` as text; dates and times are text, too.

        Text is in dictionaries whose values are sorted. Raises
        ``pyarrow.ArrowInvalid`` if rows have not the width, or cannot be parsed.
        """
        columns = self._quickly(indices, text) if self.is_long else None
        if columns is None:
            columns = self._parsed(indices, {index: _category() for index in text})
        # Dates and times, which only Arrow recognises, are converted back to text.
        dated = [i for i, c in columns.items() if pa.types.is_temporal(c.type)]
        if dated:
            columns |= self._parsed(dated, {index: _category() for index in dated})
        columns |= self._hexadecimal(columns)
        return {
            index: sorted_dictionary(column) if is_text(column.type) else column
            for index, column in columns.items()
        }

    def _hexadecimal(self, columns: Mapping[int, Any]) -> dict[int, Any]:
        """Return columns with cells such as 0x1A as text, as other readers have them.

        Arrow takes them for whole numbers.
        """
        whole = [i for i, c in columns.items() if pa.types.is_integer(c.type)]
        # One byte is found many times as fast as two, and mostly there is none.
        has_some = (
            find(self.content, mark[1:], self.start) >= 0
            and find(self.content, mark, self.start) >= 0
            for mark in _HEXADECIMAL
        )
        if not whole or not any(has_some):
            return {}
        texts = self._parsed(whole, {index: _category() for index in whole})
        return {
            index: column
            for index, column in texts.items()
            if any(
                value.as_py().lstrip("-")[:2].encode() in _HEXADECIMAL
                for chunk in column.chunks
                for value in chunk.dictionary
            )
        }

    def _quickly(
        self, indices: Sequence[int], text: Collection[int]
    ) -> dict[int, Any] | None:
        """Parse columns with the types of the first rows; None if later rows differ."""
        try:
            return self._parsed(indices, self._types_of_first_rows(indices, text))
        except pa.ArrowInvalid as error:
            if "conversion error" not in str(error):
                raise
            return None

    def last_cell(self) -> str | None:
        """Parse all rows in chunks, and return the last cell of the last one.

        Raises ``pyarrow.ArrowInvalid`` if rows have not the width.
        """
        index = self.width - 1
        reader = arrow_csv.open_csv(
            self._source(),
            self._read_options(None),
            self._parse_options(),
            self._convert_options([index], {index: pa.string()}),
        )
        last = None
        for batch in reader:
            last = batch.column(0)[-1].as_py() if len(batch) else last
        return last

    def _types_of_first_rows(
        self, indices: Sequence[int], text: Collection[int]
    ) -> dict[int, Any]:
        types = {index: _category() for index in text}
        first = self.content[self.start : self.start + _SAMPLE]
        try:
            found = self._parsed(indices, types, first[: first.rfind(b"\n") + 1])
        except pa.ArrowInvalid:  # a cell in quotes may be longer than that
            return types
        for index, column in found.items():
            if pa.types.is_temporal(column.type):
                types[index] = _category()
            elif not pa.types.is_null(column.type):
                types[index] = column.type
        return types

    def _parsed(
        self,
        indices: Sequence[int],
        types: Mapping[int, Any],
        chunk: bytes | None = None,
    ) -> dict[int, Any]:
        size = len(self.content) - self.start if chunk is None else len(chunk)

        def attempt(block_size: int | None) -> Any:
            return arrow_csv.read_csv(
                self._source() if chunk is None else pa.BufferReader(chunk),
                self._read_options(block_size),
                self._parse_options(),
                self._convert_options(indices, types),
            )

        try:
            table = attempt(None)
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error):
                raise
            # A row longer than a block: take the text as one.
            table = attempt(min(size + 1, NO_LIMIT))
        return {index: table[str(index)] for index in indices}

    def _source(self) -> Any:
        if self.is_long or not isinstance(self.content, bytes):
            return _Monitored(self.content, self.start)
        return pa.BufferReader(pa.py_buffer(self.content)[self.start :])

    def _read_options(self, block_size: int | None) -> Any:
        names = [str(index) for index in range(self.width)]
        return arrow_csv.ReadOptions(column_names=names, block_size=block_size)

    def _parse_options(self) -> Any:
        return arrow_csv.ParseOptions(
            delimiter=self.delimiter,
            # Only quoted cells can hold line breaks, and searching for them is slow.
            newlines_in_values=self.has_quotes,
        )

    def _convert_options(self, indices: Sequence[int], types: Mapping[int, Any]) -> Any:
        wanted = {*indices}
        return arrow_csv.ConvertOptions(
            include_columns=[str(index) for index in indices],
            column_types={str(i): kind for i, kind in types.items() if i in wanted},
            null_values=list(self.missing),
            strings_can_be_null=True,
            quoted_strings_can_be_null=self.quoted_na_values,
            auto_dict_encode=True,
            auto_dict_max_cardinality=NO_LIMIT,
            # TRUE and false are text.
            true_values=[],
            false_values=[],
        )


class _Monitored(io.RawIOBase):
    """The rest of a text as a stream that reports how many rows have been read."""

    def __init__(self, content: Buffer, start: int) -> None:
        super().__init__()
        self._content = content
        self._position = start
        self._progress = reading_progress()
        self._rows = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        rest = len(self._content) - self._position
        size = rest if size < 0 else min(size, rest)
        begin, self._position = self._position, self._position + size
        taken = self._content[begin : self._position]
        if self._progress is not None:
            self._rows += taken.count(b"\n")
            self._progress(f"{self._rows:,} rows")
        return taken


def _category() -> Any:
    return pa.dictionary(pa.int32(), pa.string())
