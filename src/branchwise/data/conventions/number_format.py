"""Numbers as people write them: 1.234,56 €, 12 %, (500), 12,34,567.

A column is read as numbers if all its texts follow one convention. Texts are analysed
by their shape, in which every digit is 0: a column of a million texts has few shapes.
Where 1,234 may be 1.234 as well as 1234, both readings are returned, and none is
chosen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats
from branchwise.data.arrow import dictionary_codes, pa

#: ISO 4217 codes of currencies.
_CODES = re.compile(
    r"AED|AFN|ALL|AMD|AOA|ARS|AUD|AWG|AZN|BAM|BBD|BDT|BGN|BHD|BIF|BMD|BND|BOB|BRL|BSD|"
    r"BTN|BWP|BYN|BZD|CAD|CDF|CHF|CLP|CNY|COP|CRC|CUP|CVE|CZK|DJF|DKK|DOP|DZD|EGP|ERN|"
    r"ETB|EUR|FJD|FKP|GBP|GEL|GHS|GIP|GMD|GNF|GTQ|GYD|HKD|HNL|HTG|HUF|IDR|ILS|INR|IQD|"
    r"IRR|ISK|JMD|JOD|JPY|KES|KGS|KHR|KMF|KPW|KRW|KWD|KYD|KZT|LAK|LBP|LKR|LRD|LSL|LYD|"
    r"MAD|MDL|MGA|MKD|MMK|MNT|MOP|MRU|MUR|MVR|MWK|MXN|MYR|MZN|NAD|NGN|NIO|NOK|NPR|NZD|"
    r"OMR|PAB|PEN|PGK|PHP|PKR|PLN|PYG|QAR|RON|RSD|RUB|RWF|SAR|SBD|SCR|SDG|SEK|SGD|SHP|"
    r"SLE|SOS|SRD|SSP|STN|SYP|SZL|THB|TJS|TMT|TND|TOP|TRY|TTD|TWD|TZS|UAH|UGX|USD|UYU|"
    r"UZS|VES|VND|VUV|WST|XAF|XCD|XOF|XPF|YER|ZAR|ZMW|ZWG"
)
#: Other words for currencies, in the spelling that tables have.
_WORDS = frozenset(("Fr.", "SFr.", "kr", "kr.", "Kč", "zł", "Ft", "lei", "Rs", "Rs."))
#: A sign of a currency may have letters before it: US$, R$.
_SIGNED = re.compile(r"[A-Z]{0,3}(.)")
#: Characters that mean the same: spaces, apostrophes, minus signs.
ALIKE = str.maketrans(
    dict.fromkeys("\u00a0\u2007\u2009\u202f\u2002\u2003\t", " ")
    | dict.fromkeys("\u2019\u02bc\u2032\u00b4`", "'")
    | dict.fromkeys("\u2212\u2013\ufe63\uff0d", "-")
)
#: The marks between thousands, each with what else is written for it.
THOUSANDS = (".", ",", " ", "'")
DECIMALS = (".", ",")

_SHAPE = re.compile(r"(?P<before>[^0()]*)(?P<number>0(?:.*0)?)(?P<after>[^0()]*)")
_GROUPED = r"0{{1,3}}(?P<mark>[{marks}])0{{3}}(?:(?P=mark)0{{3}})*"
#: 12,34,567: groups of two digits before the last three.
_INDIAN = r"0{1,2}(?:,00)+,000"

_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
#: The most digits of a whole number that float64 holds exactly.
_MOST_DIGITS = 15
#: Texts that are looked at before all are.
_SAMPLE = 20


@dataclass(frozen=True)
class NumberFormat:
    """The convention of a column of numbers.

    ``thousands`` is the mark between groups of digits; None if the column has none, and
    any mark is understood then; empty if there must be none, because the column does
    not tell the decimal mark either. ``indian`` groups have two digits before the last
    three. ``currency`` may stand before or behind a number, ``percent`` must stand
    behind: 12 % is 0.12.
    """

    decimal: str = "."
    thousands: str | None = None
    indian: bool = False
    currency: str | None = None
    percent: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> NumberFormat:
        """Return the convention with these fields; raise if one is not valid."""
        allowed: dict[str, tuple[Any, ...]] = {
            "decimal": DECIMALS,
            "thousands": (None, "", *THOUSANDS),
            "indian": (False, True),
            "percent": (False, True),
            "currency": (None,),
        }
        for name, value in given.items():
            if name not in allowed:
                raise ValueError(f"has the unknown field {name!r}")
            is_sign = name == "currency" and isinstance(value, str)
            # True is equal to 1.
            if not is_sign and repr(value) not in map(repr, allowed[name]):
                raise ValueError(f"has an invalid {name!r}")
        found = cls(**given)
        if found.thousands == found.decimal:
            raise ValueError("has the same mark for decimals and thousands")
        return found

    @property
    def fields(self) -> dict[str, Any]:
        """The marks, and what else differs from plain numbers, for model files."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        other = {f.name: own[f.name] for f in fields(self) if own[f.name] != f.default}
        return {"decimal": self.decimal, **other}

    @property
    def pattern(self) -> str:
        """A regular expression of texts that follow the convention, for exports.

        They have one kind of spaces, apostrophes and minus signs (:data:`ALIKE`). The
        groups are an opening parenthesis, a sign, the currency, another sign, the whole
        number, the fraction, the exponent, a minus, the unit, another minus, and a
        closing parenthesis.
        """
        marks = [m for m in THOUSANDS if m != self.decimal]
        if self.thousands is not None:
            marks = [self.thousands] if self.thousands else []
        groups = [f"[0-9]{{1,3}}(?:[{mark}][0-9]{{3}})+" for mark in marks]
        if self.indian:
            groups = ["[0-9]{1,2}(?:,[0-9]{2})*,[0-9]{3}"]
        whole = "|".join([*groups, "[0-9]+"])
        currency = re.escape(self.currency) if self.currency else "(?!)"
        exponent = "((?!))?" if self.percent else "(?:[eE]([+-]?[0-9]{1,4}))?"
        unit = "(%)" if self.percent else f"({currency})?"
        return (
            rf"([(])? *([+-])? *({currency})? *([+-])? *"
            rf"({whole})?(?:[{self.decimal}]([0-9]+))?{exponent}"
            rf" *(-)? *{unit} *(-)? *([)])?"
        )

    def __str__(self) -> str:
        """Return a number that is written so."""
        mark = self.thousands or ""
        whole = f"12{mark}34{mark}567" if self.indian else f"1{mark}234"
        unit = "%" if self.percent else self.currency
        return f"{whole}{self.decimal}56{f' {unit}' if unit else ''}"


@dataclass(frozen=True)
class _Reading:
    """How texts of a shape are read as numbers.

    ``digits`` are positions of bytes; the number is that of all digits divided by a
    power of ten, unless there is an exponent. A ``grouped`` number has no leading zero.
    """

    digits: tuple[int, ...]
    scale: int
    negative: bool
    grouped: bool
    mark: str | None
    indian: bool | None
    currency: str | None
    percent: bool
    exponent: bool


@dataclass(frozen=True)
class Detected:
    """The conventions that all texts of a column follow, by their decimal mark.

    There is none if they follow none, and two if the decimal mark is not known.
    ``example`` is the text at a ``position``; if it has two readings, they are
    ``readings``.
    """

    formats: Mapping[str, NumberFormat]
    numbers: Mapping[str, Floats]
    example: str = ""
    position: int = 0
    readings: Mapping[str, float] | None = None

    @property
    def is_ambiguous(self) -> bool:
        """Whether a text has two readings."""
        return self.readings is not None

    @property
    def decimal(self) -> str | None:
        """The decimal mark, if the texts tell it."""
        return next(iter(self.formats)) if len(self.formats) == 1 else None

    def chosen(
        self, decimal: str | None, thousands: str | None, likely: str | None = None
    ) -> NumberFormat | None:
        """Return the convention, by marks that are insisted on where there are two.

        None if there is no convention, or if it is ambiguous. Where two conventions
        read the same, the ``likely`` decimal mark is that of other columns.
        """
        possible = [
            found
            for mark, found in self.formats.items()
            if decimal in (None, mark)
            and thousands != mark
            and (thousands is None or found.thousands in (None, thousands))
        ]
        possible = possible or list(self.formats.values())
        if len(possible) < 2:
            return next(iter(possible), None)
        if self.is_ambiguous:
            return None
        if likely is not None:
            return self.formats[likely]
        # Spaces between thousands mostly go with a decimal comma.
        found = self.formats["," if possible[0].thousands == " " else "."]
        return found if found.thousands else replace(found, thousands="")


NOTHING = Detected({}, {})


def detect(texts: Any) -> Detected:
    """Find the convention of distinct texts, an Arrow array without missing ones."""
    if not len(texts) or not _may_be_numbers(texts):
        return NOTHING
    shapes, of_text = _shapes(texts)
    formats: dict[str, NumberFormat] = {}
    numbers: dict[str, Floats] = {}
    for decimal in DECIMALS:
        readings = [_reading(shape, decimal) for shape in shapes]
        found = _common_format(readings, decimal)
        if found is None:
            continue
        values, valid = _values(texts, shapes, of_text, readings)
        if valid.all():
            formats[decimal], numbers[decimal] = found, values
    if len(formats) == 2:
        one, other = numbers.values()
        differs = np.flatnonzero(one != other)
        if len(differs):
            at = int(differs[0])
            two = {mark: float(values[at]) for mark, values in numbers.items()}
            return Detected(formats, numbers, texts[at].as_py(), at, two)
    longest = max(range(len(shapes)), key=lambda code: len(shapes[code]))
    at = int(np.argmax(of_text == longest))
    return Detected(formats, numbers, texts[at].as_py(), at)


def detect_texts(texts: Sequence[str]) -> Detected:
    """Find the convention of distinct texts."""
    return detect(pa.array(texts, pa.string()))


def parse(texts: Any, how: NumberFormat) -> tuple[Floats, NDArray[np.bool_]]:
    """Read an Arrow array of texts by a convention, and tell which follow it."""
    if not len(texts):
        return np.empty(0), np.empty(0, dtype=bool)
    shapes, of_text = _shapes(texts)
    readings = [_reading(shape, how.decimal) for shape in shapes]
    followed = [r if r is not None and _follows(r, how) else None for r in readings]
    return _values(texts, shapes, of_text, followed)


def parse_texts(texts: Sequence[str], how: NumberFormat) -> list[float | None]:
    """Read texts by a convention; None are those that do not follow it."""
    # Half a surrogate pair is no number, and Arrow has no place for it.
    known = [text.encode("utf-8", "replace").decode() for text in texts]
    values, valid = parse(pa.array(known, pa.string()), how)
    return [x if ok else None for x, ok in zip(values.tolist(), valid, strict=True)]


def follows_any(text: str) -> bool:
    """Whether a text is a number in some convention."""
    shape = text.encode().translate(_TO_ZERO)
    return any(_reading(shape, decimal) for decimal in DECIMALS)


def _follows(reading: _Reading, how: NumberFormat) -> bool:
    return (
        reading.percent == how.percent
        and reading.currency in (None, how.currency)
        and (reading.mark is None or how.thousands in (None, reading.mark))
        and (reading.indian is None or reading.indian == how.indian)
    )


def _may_be_numbers(texts: Any) -> bool:
    """Look at some texts: most columns of text are recognised as such by the first."""
    if not follows_any(texts[0].as_py()):
        return False
    return all(map(follows_any, texts.slice(1, _SAMPLE).to_pylist()))


def _shapes(texts: Any) -> tuple[list[bytes], NDArray[np.integer[Any]]]:
    """Return the distinct shapes of texts, and for each text which it has."""
    if pa.types.is_string_view(texts.type):
        texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    zeros = pa.py_buffer((data.to_pybytes() if data else b"").translate(_TO_ZERO))
    same = pa.Array.from_buffers(
        texts.type, len(texts), [None, offsets, zeros], offset=texts.offset
    )
    encoded = same.dictionary_encode()
    shapes = [shape.encode() for shape in encoded.dictionary.to_pylist()]
    return shapes, dictionary_codes(encoded.indices)


@lru_cache(maxsize=4096)
def _reading(shape: bytes, decimal: str) -> _Reading | None:
    """Return how a shape is read with a decimal mark; None if it is no number."""
    text = shape.decode().translate(ALIKE).strip()
    negative = text.startswith("(") and text.endswith(")")
    if negative:
        text = text[1:-1].strip()
    found = _SHAPE.fullmatch(text)
    if found is None:
        return None
    before, written, behind = _pieces(found["before"]), found["number"], found["after"]
    if before and before[-1][-1] == decimal and before[-1] not in _WORDS:
        # .5 has no digit before the point.
        before[-1], written = before[-1][:-1], f"{decimal}{written}"
    after = _pieces(behind)
    signs = [piece for piece in before if piece in ("+", "-")]
    signs += [piece for piece in after if piece == "-"]
    units = [piece for piece in before if piece and piece not in signs]
    units += [piece for piece in after if piece != "-"]
    percent = "%" in after and units.count("%") == 1
    units = [unit for unit in units if unit != "%"] if percent else units
    if len(signs) > 1 - negative or len(units) > 1 - percent:
        return None
    if not all(map(_is_currency, units)):
        return None
    number = _number_pattern(decimal).fullmatch(written)
    if number is None or (percent and number["exponent"]):
        return None
    fraction = len(number["fraction"] or "")
    mark = "," if number["indian"] else number["mark"]
    return _Reading(
        digits=tuple(at for at, byte in enumerate(shape) if byte == ord("0")),
        scale=fraction + 2 * percent,
        negative=negative or signs == ["-"],
        grouped=mark is not None,
        mark=mark,
        # Of 1,234 it is not known whether further groups have two or three digits.
        indian=_is_indian(number["grouped"]) if mark == "," else None,
        currency=units[0] if units else None,
        percent=percent,
        exponent=bool(number["exponent"]),
    )


@lru_cache(maxsize=2)
def _number_pattern(decimal: str) -> re.Pattern[str]:
    marks = "".join(mark for mark in THOUSANDS if mark != decimal)
    grouped = rf"(?P<western>{_GROUPED.format(marks=marks)})"
    indian = f"|(?P<indian>{_INDIAN})" if decimal == "." else "|(?P<indian>(?!))"
    return re.compile(
        rf"(?:0+|(?P<grouped>{grouped}{indian}))?"
        rf"(?:[{decimal}](?P<fraction>0+))?(?P<exponent>[eE][+-]?0{{1,4}})?"
    )


def _is_indian(grouped: str) -> bool | None:
    """Whether groups are those of India; None if both conventions write them so."""
    groups = grouped.split(",")
    if len(groups) > 2:
        return len(groups[1]) == 2
    return False if len(groups[0]) == 3 else None


def _pieces(text: str) -> list[str]:
    """Split what is around a number into signs and units."""
    return [piece for piece in re.split(r"([+-])|\s+|(%)", text) if piece]


def _is_currency(text: str) -> bool:
    if text in _WORDS or _CODES.fullmatch(text):
        return True
    signed = _SIGNED.fullmatch(text)
    return signed is not None and unicodedata.category(signed[1]) == "Sc"


def _common_format(
    readings: Sequence[_Reading | None], decimal: str
) -> NumberFormat | None:
    """Return the convention that all shapes follow; None if there is none."""
    known = [reading for reading in readings if reading is not None]
    if len(known) < len(readings):
        return None
    marks = {reading.mark for reading in known} - {None}
    currencies = {reading.currency for reading in known} - {None}
    percents = {reading.percent for reading in known}
    indian = {reading.indian for reading in known} - {None}
    if any(len(found) > 1 for found in (marks, currencies, percents, indian)):
        return None
    return NumberFormat(
        decimal,
        next(iter(marks), None),
        True in indian,
        next(iter(currencies), None),
        True in percents,
    )


def _values(
    texts: Any,
    shapes: Sequence[bytes],
    of_text: NDArray[np.integer[Any]],
    readings: Sequence[_Reading | None],
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the numbers of texts, and which of them are numbers.

    All texts of a shape are read at once: their bytes are a matrix.
    """
    values = np.full(len(texts), np.nan)
    valid = np.zeros(len(texts), dtype=bool)
    order = np.argsort(of_text, kind="stable")
    ends = np.cumsum(np.bincount(of_text, minlength=len(shapes)))
    starts, data = _bytes_of(texts)
    for code, reading in enumerate(readings):
        rows = order[ends[code - 1] if code else 0 : ends[code]]
        if reading is None:
            continue
        where = starts[rows]
        first = data[where + reading.digits[0]]
        valid[rows] = ~((first == ord("0")) & reading.grouped)
        if len(reading.digits) > _MOST_DIGITS or reading.exponent:
            values[rows] = [_slowly(texts[row].as_py(), reading) for row in rows]
            continue
        whole = np.zeros(len(rows), dtype=np.int64)
        for position in reading.digits:
            whole = whole * 10 + (data[where + position] - np.uint8(ord("0")))
        # Both are exact, so the quotient is the float64 nearest to the decimal number.
        number = whole.astype(np.float64) / 10.0**reading.scale
        values[rows] = -number if reading.negative else number
    return values, valid


def _slowly(text: str, reading: _Reading) -> float:
    """Read a number of many digits, or with an exponent."""
    digits = re.sub("[^0-9]", "", text)
    if not reading.exponent:
        value = float(f"{digits}e-{reading.scale}")
    else:
        mantissa, _, power = re.sub("[^0-9eE+-]", "", text).upper().rpartition("E")
        mantissa = re.sub("[^0-9]", "", mantissa)
        value = float(f"{mantissa}e{int(power) - reading.scale}")
    return -value if reading.negative else value


def _bytes_of(texts: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return where each text begins among the bytes of all."""
    wide = texts.cast(pa.large_string())
    _, offsets, data = wide.buffers()
    starts = np.frombuffer(offsets, np.int64)[wide.offset : wide.offset + len(wide)]
    return starts, np.frombuffer(data or b"", np.uint8)
