"""SQL dialects: names, texts, numbers, comparisons, and what engines are good at."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from branchwise.data.table_schema import Value, ValueType
from branchwise.errors import DataError, ExportError

#: Whole numbers up to here are float64 without rounding.
WHOLE = 2**53
#: Powers of ten up to here are float64 without rounding.
_TENS = 22
#: Digits of a decimal whose digits alone are a whole number below 2**53.
_DIGITS = 15
#: Powers of two in one factor: 2**62 is the last that is a 64-bit integer.
_TWOS = 62
#: Class probabilities are quotients of counts, mostly of small ones.
_LARGEST_COUNT = 1_000_000


def quotient(number: float, real: Callable[[str], str]) -> str:
    """Write a number with whole numbers, divisions and multiplications alone.

    ``real`` makes a floating-point number of a decimal. Decimals that are a float64
    without rounding, such as 77.5, stand as they are.
    """
    if number == int(number) and abs(number) <= WHOLE:
        return real(str(int(number)))
    decimal = _decimal(number)
    if decimal is not None and Fraction(*decimal) == Fraction(number):
        return real(format(Decimal(repr(number)), "f"))
    terms = decimal or _ratio(number)
    if terms is not None:
        return f"{real(str(terms[0]))} / {real(str(terms[1]))}"
    return _binary(number, real)


def _decimal(number: float) -> tuple[int, int] | None:
    """Return the digits of the shortest decimal and the power of ten to divide by."""
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    if (
        not isinstance(exponent, int)
        or not -_TENS <= exponent < 0
        or len(digits) > _DIGITS
    ):
        return None
    whole = int("".join(map(str, digits)))
    return (-whole if sign else whole), 10**-exponent


def _ratio(number: float) -> tuple[int, int] | None:
    """Return two small whole numbers whose quotient is this number."""
    near = Fraction(number).limit_denominator(_LARGEST_COUNT)
    if abs(near.numerator) > WHOLE or near.numerator / near.denominator != number:
        return None
    return near.numerator, near.denominator


def _binary(number: float, real: Callable[[str], str]) -> str:
    """Write the 53 bits as a whole number, then powers of two: exact at every step."""
    fraction, exponent = math.frexp(number)
    bits, exponent = int(fraction * WHOLE), exponent - 53
    while bits % 2 == 0:
        bits, exponent = bits // 2, exponent + 1
    sign = "*" if exponent > 0 else "/"
    factors = [_TWOS] * (abs(exponent) // _TWOS)
    if abs(exponent) % _TWOS:
        factors.append(abs(exponent) % _TWOS)
    wholes = [bits, *(2**power for power in factors)]
    return f" {sign} ".join(real(str(whole)) for whole in wholes)


#: Characters that are not shown, or end a line: written by their numbers.
_CONTROL = r"\x00-\x1f\x7f"
_LARGEST_INTEGER = 2**63 - 1


@dataclass(frozen=True)
class Dialect:
    """What a dialect has of its own.

    ``number`` writes a float64 and ``text`` a text. ``number_column`` and
    ``text_column`` make a column compare as float64 and by code points, where it would
    not of its own accord. ``is_nan`` is the test for NaN, None where there is none.
    ``same`` compares two columns of which both may be missing. ``keep`` follows the
    name of a step that is to be computed once. ``truths`` are false and true.
    ``folds`` maps names to what the dialect takes for the same name; ``most_bytes`` is
    the length of a name, and ``forbidden`` what a name cannot hold. ``most_levels`` is
    the depth of a tree that the engine bears.

    What follows is for counting rows in a database. ``mark`` is where a value is bound
    that is of one of the ``types``. ``lists`` tells whether whole columns of values can
    be bound. ``text_key`` makes text of any cell, compared by its bytes.
    ``grouping_sets`` tells whether one pass can group by several columns;
    ``keep_rows`` follows the name of rows that other steps are to share.
    ``most_values`` is how many values a statement takes, and ``forced`` how a table is
    joined that is to be looked up row by row. Up to ``nodes_in_case`` nodes CASE is
    used in place of joins, nested for so many levels. ``dates`` are the literal and the
    type of dates, times and times with a time zone.
    """

    name: str
    title: str
    number: Callable[[float], str]
    text: Callable[[str], str]
    column_types: Mapping[ValueType, str]
    number_column: str = "{}"
    text_column: str = "{}"
    is_nan: str | None = None
    same: str = "{0} IS NOT DISTINCT FROM {1}"
    keep: str = "AS MATERIALIZED"
    greatest: str | None = "GREATEST"
    truths: tuple[str, str] = ("FALSE", "TRUE")
    quote: str = '"'
    folds: Callable[[str], str] = str
    most_bytes: int | None = None
    forbidden: str | None = None
    most_levels: int | None = None
    mark: str = "${}"
    types: Mapping[str, str] = field(default_factory=dict)
    lists: bool = True
    text_key: str = "{}"
    grouping_sets: bool = True
    keep_rows: str = "AS"
    forced: str = "JOIN"
    most_values: int | None = None
    nodes_in_case: int = 10_000
    levels_in_case: int = 300
    dates: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def quoted(self, *pieces: str) -> str:
        """Quote a name, also of several components."""
        for piece in pieces:
            if "\0" in piece:
                raise DataError(
                    f"{piece!r} cannot be the name of a table or column: it holds the "
                    "character NUL. Rename it."
                )
        mark = self.quote
        return ".".join(mark + p.replace(mark, mark * 2) + mark for p in pieces)

    def whole(self, most: int) -> str:
        """Return the type for whole numbers up to ``most``."""
        if self.grouping_sets and most < 2**15 - 2:
            return "SMALLINT"
        return self.types["i"]

    def double(self, expression: str) -> str:
        """Return the expression as float64."""
        return f"CAST({expression} AS {self.types['f']})"

    def as_text(self, expression: str) -> str:
        """Return the expression as text that is compared by its bytes."""
        return self.text_key.format(expression)

    def named(self, name: str) -> str:
        """Quote the name of a column of the model, or say why it cannot be one."""
        reason = self.no_name(name)
        if reason is not None:
            raise ExportError(
                f"{name!r} cannot be the name of a table or column in the dialect "
                f"{self.name!r}: {reason}. Rename it and fit again, or choose another "
                "dialect."
            )
        return self.quoted(name)

    def no_name(self, name: str) -> str | None:
        """Tell why a text cannot be a name; None if it can."""
        if not name:
            return "names must have at least one character"
        if "\0" in name:
            return "names cannot hold the character NUL"
        if not _is_unicode(name):
            return "it is no valid Unicode"
        if self.forbidden is not None and self.forbidden in name:
            return f"the engine puts something else in the place of {self.forbidden!r}"
        if self.most_bytes is not None and len(name.encode()) > self.most_bytes:
            return f"names have at most {self.most_bytes} bytes"
        return None

    def value(self, value: Value) -> str:
        """Write a value of any kind."""
        if isinstance(value, bool):
            return self.truths[value]
        if isinstance(value, float):
            return self.number(value)
        if isinstance(value, int):
            return self._integer(value)
        if not _is_unicode(value):
            raise ExportError(
                f"The value {value!r} is no valid Unicode and cannot be written in "
                "SQL. Replace it and fit again."
            )
        return self.text(value)

    def _integer(self, value: int) -> str:
        if abs(value) > _LARGEST_INTEGER:
            raise ExportError(
                f"The value {value} is beyond the integers of SQL, which have 64 bits. "
                "Use text for such numbers and fit again."
            )
        return str(value)

    def distinct(self, names: Sequence[str]) -> None:
        """Reject names that the dialect cannot distinguish."""
        seen: dict[str, str] = {}
        for name in names:
            other = seen.setdefault(self.folds(name), name)
            if other != name:
                raise ExportError(
                    f"The dialect {self.name!r} cannot tell the columns {other!r} and "
                    f"{name!r} apart: names that differ in case alone are the same. "
                    "Rename one and fit again, or use the dialect 'postgresql'."
                )


def _is_unicode(text: str) -> bool:
    return text.isascii() or not re.search("[\ud800-\udfff]", text)


def _ascii_folded(name: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in name)


def _in_quotes(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _ansi_text(text: str) -> str:
    if "\0" in text:
        raise ExportError(
            f"The value {text!r} holds the character NUL, for which standard SQL has "
            "no notation. Choose another dialect (sqlite, duckdb, spark)."
        )
    return _in_quotes(text)


def _postgresql_text(text: str) -> str:
    """Write a text so that no setting of the server changes what it means."""
    if "\0" in text:
        raise ExportError(
            f"The value {text!r} holds the character NUL, which PostgreSQL cannot "
            "store. Replace it and fit again, or choose another dialect."
        )
    escaped = re.sub(rf"[{_CONTROL}\\]", _postgresql_escape, text)
    return ("E" if escaped != text else "") + _in_quotes(escaped)


def _postgresql_escape(found: re.Match[str]) -> str:
    character = found.group()
    return "\\\\" if character == "\\" else f"\\x{ord(character):02X}"


def _pieces(text: str, special: str, function: str) -> str:
    """Write a text as pieces: special characters by number, the others in quotes."""
    pieces = [
        f"{function}({ord(piece)})"
        if re.fullmatch(f"[{special}]", piece)
        else _in_quotes(piece)
        for piece in re.split(f"([{special}])", text)
        if piece
    ]
    return " || ".join(pieces) or "''"


def _duckdb_number(number: float) -> str:
    # Without an exponent it would be a DECIMAL.
    written = repr(number + 0.0)
    return written if "e" in written else f"{written}e0"


ANSI = Dialect(
    "ansi",
    "standard SQL",
    lambda number: quotient(number, lambda decimal: f"{decimal}E0"),
    _ansi_text,
    {"text": "VARCHAR(1000)", "number": "DOUBLE PRECISION", "boolean": "BOOLEAN"},
    number_column="CAST({} AS DOUBLE PRECISION)",
    keep="AS",
    greatest=None,
    # To SQLite, TRUE is a column of the table if there is one of that name.
    truths=("(1 = 0)", "(1 = 1)"),
    folds=_ascii_folded,
    # As text, to SQLite; other engines make dates of it.
    dates={"date": ("'{}'", "DATE"), "time": ("'{}'", "TIMESTAMP")},
)
SQLITE = Dialect(
    "sqlite",
    "SQLite",
    lambda number: quotient(number, lambda d: d if "." in d else f"{d}.0"),
    lambda text: _pieces(text, _CONTROL, "char"),
    {"text": "TEXT", "number": "NUMERIC", "boolean": "BOOLEAN"},
    # SQLite compares integers beyond 2**53 with numbers exactly; the model does not.
    number_column="CAST({} AS REAL)",
    text_column="{} COLLATE BINARY",
    same="{0} IS {1}",
    greatest="MAX",
    truths=("0", "1"),
    folds=_ascii_folded,
    mark="?{}",
    types={"i": "INTEGER", "f": "REAL", "t": "TEXT"},
    lists=False,
    # A plus removes the type affinity of a column in comparisons.
    text_key="(+{}) COLLATE BINARY",
    grouping_sets=False,
    keep_rows="AS MATERIALIZED",
    forced="CROSS JOIN",
    most_values=32_000,
    # Its parser has a stack of a hundred entries.
    levels_in_case=8,
    dates={"date": ("'{}'", "TEXT"), "time": ("'{}'", "TEXT")},
)
DUCKDB = Dialect(
    "duckdb",
    "DuckDB",
    _duckdb_number,
    lambda text: _pieces(text, _CONTROL, "chr"),
    {"text": "VARCHAR", "number": "DOUBLE", "boolean": "BOOLEAN"},
    text_column='{} COLLATE "binary"',
    is_nan="isnan({})",
    folds=_ascii_folded,
    types={"i": "BIGINT", "f": "DOUBLE", "t": "VARCHAR"},
    text_key='CAST({} AS VARCHAR) COLLATE "binary"',
    # It evaluates a block of rows for every node.
    nodes_in_case=16,
    dates={
        "date": ("DATE '{}'", "TIMESTAMP"),
        "time": ("TIMESTAMP '{}'", "TIMESTAMP"),
        "zoned": ("TIMESTAMPTZ '{}'", "TIMESTAMPTZ"),
    },
)
POSTGRESQL = Dialect(
    "postgresql",
    "PostgreSQL",
    lambda number: f"'{number + 0.0!r}'::float8",
    _postgresql_text,
    {"text": "text", "number": "float8", "boolean": "boolean"},
    text_column='{} COLLATE "C"',
    is_nan="{} = 'NaN'::float8",
    # IS NOT DISTINCT FROM would compare every row with every case.
    same="(COALESCE({0}, {2}) = COALESCE({1}, {2}) AND ({0} IS NULL) = ({1} IS NULL))",
    most_bytes=63,
    types={"i": "bigint", "f": "float8", "t": "text"},
    text_key='CAST({} AS text) COLLATE "C"',
    most_values=60_000,
    dates={
        "date": ("DATE '{}'", "timestamp"),
        "time": ("TIMESTAMP '{}'", "timestamp"),
        "zoned": ("TIMESTAMPTZ '{}'", "timestamptz"),
    },
)
SPARK = Dialect(
    "spark",
    "Spark",
    lambda number: f"{number + 0.0!r}D",
    # Quotes and backslashes depend on settings of Spark's parser, and even inside of
    # a text it puts the values of variables in the place of ${their names}.
    lambda text: _pieces(text, rf"{_CONTROL}'\\$", "char"),
    {"text": "STRING", "number": "DOUBLE", "boolean": "BOOLEAN"},
    is_nan="isnan({})",
    same="{0} <=> {1}",
    keep="AS",
    quote="`",
    folds=str.casefold,
    forbidden="${",
    # It compiles expressions: 500 levels run, 5,000 exhaust a heap of 1 GB.
    most_levels=500,
    dates={
        "date": ("DATE '{}'", "TIMESTAMP_NTZ"),
        "time": ("TIMESTAMP_NTZ '{}'", "TIMESTAMP_NTZ"),
        "zoned": ("TIMESTAMP_LTZ '{}'", "TIMESTAMP_LTZ"),
    },
)

DIALECTS = {d.name: d for d in (ANSI, SQLITE, DUCKDB, POSTGRESQL, SPARK)}
