"""A table that the page has loaded: its columns, corrections, rows to grow from.

Files are read as by the command line: same formats, same conventions, same notes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from branchwise.data.checks import find_problems
from branchwise.data.columns import Coded, Numbers, RawColumn
from branchwise.data.frames import open_table, read_vector
from branchwise.data.table_schema import Value
from branchwise.data.target import learn_numbers, learn_target
from branchwise.errors import BranchwiseError, DataError, ParameterError, plain, quoted
from branchwise.files.formats import known_format
from branchwise.files.number_columns import note_of_identifiers
from branchwise.files.options import COMPRESSED, ENDINGS, FORMATS, Reading
from branchwise.files.read_table import MISSING, TableFile, with_location

Kind = Literal["number", "category", "ignore"]
KINDS: tuple[Kind, ...] = ("number", "category", "ignore")
#: What keeps text as it is, on the page.
_AS_TEXT = "take those to keep as text for categories"
#: How ``read_table`` calls them.
_PARAMETERS = {
    "number_columns": "number",
    "text_columns": "category",
    "ignore": "ignore",
}
#: Options of reading that the page may change, by type: none names another file.
PAGE_READING: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("separator", "encoding", "decimal", "thousands"), (str,)),
    **dict.fromkeys(("header", "merge_case"), (bool,)),
    "skip": (int,),
    "sheet": (str, int),
    "date_format": (str, dict),
    "missing": (list,),
}
_TYPES = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    list: "a list of texts",
    dict: "an object of texts",
}
#: Options that a script of the session does not repeat: limits, and what has no words.
_NOT_IN_SCRIPTS = ("max_size", "date_features")
#: What the page may upload: files that need no others, and that are read, not opened
#: as databases are.
UPLOADED_FORMATS = (
    *("csv", "tsv", "arff", "parquet", "arrow", "excel", "jsonl"),
    *("spss", "sas", "stata"),
)
#: The most bytes that a compressed upload may have when it is decompressed.
MOST_DECOMPRESSED = 4 * 10**9
#: How many values of a column are shown, and how much of a long one.
_EXAMPLES = 5
_LONGEST = 60
#: Columns with no more values have all of them listed.
_LISTED = 50
#: Numbers with more distinct values than this are hardly meant as classes.
MOST_NUMBER_CLASSES = 20


def stored_name(name: str) -> str:
    """Return a name for the file of an upload: only its known ending is kept."""
    lower, ending = name.lower(), ""
    for compressed in COMPRESSED:
        if lower.endswith(compressed):
            lower, ending = lower.removesuffix(compressed), compressed
    own = Path(lower).suffix
    return "table" + (own if own in ENDINGS else "") + ending


def shown_name(name: str) -> str:
    """Return the name of a file as the page shows it: no folders, one line."""
    return plain(name.replace("\\", "/").rpartition("/")[2])[:200] or "table"


def is_uploadable(path: str) -> bool:
    """Whether a file needs no others, and cannot read them."""
    return known_format(path) in UPLOADED_FORMATS


def unread_summary(path: str, name: str) -> dict[str, Any]:
    """Return what the page needs to let a file be read with other options."""
    usual = _page_reading(Reading(), MISSING)
    return {"name": name, "format": known_format(path), "sheets": [], "reading": usual}


def _page_reading(reading: Reading, missing: Sequence[str]) -> dict[str, Any]:
    """Return the options of reading that the page may change."""
    known = vars(reading) | {"missing": list(missing)}
    return {name: known[name] for name in PAGE_READING}


def check_uploaded(path: str, name: str) -> None:
    """Reject formats that need other files, or that can read them."""
    found = known_format(path)
    if not is_uploadable(path):
        known = ", ".join(FORMATS[each] for each in UPLOADED_FORMATS)
        raise DataError(
            f"{name} is a {FORMATS[found]} file, which cannot be uploaded. Upload "
            f"{known}; or start the studio with it: branchwise studio FILE."
        )


@dataclass(frozen=True)
class LoadedTable:
    """An opened table and how it is read.

    ``name`` is what the page calls it, ``path`` where it is, ``file`` the opened file,
    ``table`` all of its columns as they are detected.
    """

    name: str
    path: str
    file: TableFile
    table: Any

    @classmethod
    def of_file(
        cls,
        path: str,
        name: str,
        reading: Reading | None = None,
        missing: Sequence[str] = MISSING,
    ) -> LoadedTable:
        """Open a file and read it; errors call it by its name."""
        try:
            file = TableFile(path, reading, missing=missing)
            file.label = name
            table = file.read(allow_ambiguous=True)
        except BranchwiseError as error:
            raise type(error)(str(error).replace(path, name)) from None
        if not table.num_rows:
            raise DataError(f"{name} has no rows, so there is nothing to learn from.")
        return cls(name, path, file, table)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def summary(self) -> dict[str, Any]:
        """Return what the page shows of the table before a tree is grown."""
        frame = open_table(self.table)
        columns = [
            self._described(name, index) for index, name in enumerate(frame.names)
        ]
        return {
            "name": self.name,
            "n_rows": self.n_rows,
            "columns": columns,
            "notes": self.notes(),
            "format": self.file.file_format,
            "sheets": list(self.file.sheets),
            "reading": self._reading(),
        }

    def _reading(self) -> dict[str, Any]:
        """Return the options of reading that the page may change."""
        return _page_reading(self.file.reading, self.file.missing)

    def reread(self, given: Mapping[str, Any]) -> LoadedTable:
        """Return the same file, read with other options; None is the usual one."""
        file = self.file
        return LoadedTable.of_options(
            self.path, self.name, given, file.reading, file.missing
        )

    @classmethod
    def of_options(
        cls,
        path: str,
        name: str,
        given: Mapping[str, Any],
        reading: Reading,
        missing: Sequence[str] = MISSING,
    ) -> LoadedTable:
        """Open a file, and read it with options that the page has changed."""
        values = {name: _checked_option(name, value) for name, value in given.items()}
        missing = values.pop("missing", missing) or MISSING
        reading = replace(reading, flags=False, **values)
        na_values = tuple(dict.fromkeys(("", *missing)))
        return cls.of_file(path, name, reading, na_values)

    def _described(self, name: str, index: int) -> dict[str, Any]:
        try:
            raw = open_table(self.table).column(index)
        except DataError as error:
            missing = int(self.table.column(index).null_count)
            found = _content("ignore", 0, missing, [])
            return {"name": name, **found, "note": str(error)}
        found = _described(raw)
        return {"name": name, **found, "note": self._doubt(name)}

    def _doubt(self, name: str) -> str | None:
        """Say that a column can be read in two ways."""
        numbers = self.file.numbers
        if name in numbers.ambiguous or name in numbers.dates.ambiguous:
            return (
                "Its numbers or dates can be read in two ways: take it as a category, "
                "or ignore it, or start the studio with --decimal or --date-format."
            )
        return None

    def notes(self) -> list[str]:
        """Return what is odd about the table, as sentences."""
        notes = [
            note.replace("name those to keep as text in text_columns", _AS_TEXT)
            for note in self.file.numbers.notes
        ]
        if len(self.file.sheets) > 1:
            notes.append(
                f"The sheet {self.file.sheets[0]!r} is read; others are "
                f"{quoted(self.file.sheets[1:])}."
            )
        if self.file.identifiers:
            notes.append(note_of_identifiers(self.file.identifiers, self.name))
        return [*notes, *map(str, find_problems(self.table))]

    def read(
        self,
        target: str,
        kinds: Mapping[str, str],
        regression: bool,
        others: Collection[str] = (),
    ) -> Any:
        """Read the rows to grow from, each column as the corrections say.

        ``others`` are columns that are numbers for another reason, such as weights.
        """
        self.check_kinds(target, kinds)
        of_kind = {
            kind: [name for name, given in kinds.items() if given == kind]
            for kind in KINDS
        }
        numbers = dict.fromkeys((*of_kind["number"], *others))
        if regression:
            numbers[target] = None
        elif target in numbers:
            del numbers[target]
        try:
            table = self.file.read(
                text_columns=[n for n in of_kind["category"] if n not in numbers],
                number_columns=list(numbers),
                ignore=of_kind["ignore"],
                classes=None if regression else target,
            )
        except BranchwiseError as error:
            raise self.located(error) from None
        if len(table.column_names) < 2 + len(others):
            raise DataError(
                f"{self.name} has no attributes: besides the target {target!r} no "
                "column is left to learn from."
            )
        self.check_target(table, target, regression)
        return table

    def known_kinds(self, kinds: Mapping[str, str]) -> dict[str, str]:
        """Return the corrections of columns that the table has."""
        return {name: kind for name, kind in kinds.items() if name in self.file.names}

    def in_python(self, kinds: Mapping[str, str]) -> str:
        """Return the code that reads the table in the same way."""
        given = [repr(self.name), *self._reading_in_python()]
        for parameter, kind in _PARAMETERS.items():
            names = [name for name, one in kinds.items() if one == kind]
            given += [f"{parameter}={names!r}"] if names else []
        return f"table = branchwise.read_table({', '.join(given)})"

    def _reading_in_python(self) -> Iterator[str]:
        """Yield the parameters of ``read_table`` that are not the usual ones."""
        for name, value in self.file.reading.given.items():
            if name not in _NOT_IN_SCRIPTS:
                yield f"{name}={value!r}"
        if tuple(self.file.missing) != tuple(MISSING):
            yield f"missing={list(self.file.missing)!r}"

    def check_kinds(self, target: str, kinds: Mapping[str, str]) -> None:
        """Reject columns that are not there, and a target that is left out."""
        self.file.check_names([target, *kinds])
        for name, kind in kinds.items():
            if kind not in KINDS:
                raise ParameterError(
                    f"kinds must give each column one of {quoted(KINDS)}. Got {kind!r} "
                    f"for {name!r}."
                )
        if kinds.get(target) == "ignore":
            raise ParameterError(
                f"The target {target!r} cannot be ignored. Choose another target, or "
                "take it as a number or a category."
            )

    def check_target(self, table: Any, target: str, regression: bool) -> None:
        """Reject rows without a class or a number, and numbers that are no classes."""
        learn = learn_numbers if regression else learn_target
        try:
            learn(read_vector(table[target], target))
        except DataError as error:
            raise self.located(error) from None

    def located(self, error: BranchwiseError) -> BranchwiseError:
        """Add the line of the file to an error that names a row."""
        if isinstance(error, DataError):
            return with_location(error, self.name, self.file.location) or error
        return error

    def is_regression(self, target: str, kinds: Mapping[str, str]) -> bool:
        """Whether a target is rather a number than a class: fractions, or many."""
        if target in kinds:
            return kinds[target] == "number"
        raw = read_vector(self.table[target], target)
        if not isinstance(raw, Numbers):
            return False
        distinct = np.unique(raw.values[~np.isnan(raw.values)])
        whole = bool((distinct == np.rint(distinct)).all())
        return not whole or len(distinct) > MOST_NUMBER_CLASSES


def _checked_option(name: str, value: Any) -> Any:
    """Return an option of reading that the page may change; raise for others."""
    if name not in PAGE_READING:
        raise ParameterError(
            f"reading has no option {name!r:.60}. It has {quoted(PAGE_READING, 99)}."
        )
    if value is None:
        return getattr(Reading(), name, None)
    types = PAGE_READING[name]
    inner = value.values() if isinstance(value, dict) else value
    nested = isinstance(value, (list, dict))
    if type(value) not in types or (nested and not all(map(_is_text, inner))):
        words = " or ".join(_TYPES[kind] for kind in types)
        raise ParameterError(f"{name} must be {words}. Got {value!r:.60}.")
    return value


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _described(raw: RawColumn) -> dict[str, Any]:
    """Return the kind of a column, how many values it has, and some of them."""
    if isinstance(raw, Coded):
        counts = np.bincount(raw.codes[raw.codes >= 0], minlength=len(raw.values))
        usual = np.argsort(-counts, kind="stable")[:_EXAMPLES].tolist()
        examples = [str(raw.values[code]) for code in usual if counts[code]]
        values = [raw.values[code] for code in np.flatnonzero(counts).tolist()]
        present = int(np.count_nonzero(counts))
        missing = int(np.count_nonzero(raw.codes < 0))
        return _content("category", present, missing, examples, values)
    known = raw.values[~np.isnan(raw.values)]
    distinct = np.unique(known)
    ends = [distinct[0], distinct[-1]] if len(distinct) else []
    if raw.date is not None:
        shown = [raw.date.show(each) for each in map(float, ends)]
    else:
        shown = [f"{each:.6g}" for each in ends]
    missing = len(raw.values) - len(known)
    whole = raw.date is None and bool((distinct == np.rint(distinct)).all())
    values = [int(each) for each in distinct[: _LISTED + 1]] if whole else []
    return _content("number", len(distinct), missing, shown, values)


def _content(
    kind: str,
    n_values: int,
    n_missing: int,
    examples: Sequence[str],
    values: Sequence[Value] = (),
) -> dict[str, Any]:
    """Return a description; a number's examples are its least and its largest.

    ``values`` are told where they are few: they may be classes.
    """
    return {
        "kind": kind,
        "n_values": n_values,
        "n_missing": n_missing,
        "examples": [plain(_shortened(text)) for text in examples],
        "values": list(map(str, values)) if len(values) <= _LISTED else [],
    }


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
