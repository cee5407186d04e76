"""Names, comments and lists for source text in any language.

Nothing that a table contains may become code: names are reduced to letters and digits,
and comments show characters that any language could read something into as escapes.
"""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence

from branchwise.errors import ExportError, ParameterError
from branchwise.table.schema import Value
from branchwise.words import word

#: What has a meaning in a comment of some language, or in a page around the program.
_LOADED = set("\\*/<>&?`$")
_WIDTH = 79
#: Lower-case words with a meaning in C, C++, JavaScript or the headers of C; Python
#: knows its own. Columns are named in lower case.
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
    abstract alignas alignof and_eq arguments asm assert auto await bitand bitor bool
    boolean break byte case catch char class compl complex concept const const_cast
    constexpr continue co_await co_return co_yield debugger decltype default delete do
    double dynamic_cast else enum environ errno eval explicit export extends extern far
    false final finally float for fortran friend function goto i386 if imaginary
    implements import in inline instanceof int interface isfinite isinf isnan isnormal
    let linux long max min mutable namespace native near new noexcept not_eq null
    nullptr offsetof operator or_eq package pascal private protected public register
    reinterpret_cast requires restrict return self short signbit signed sizeof small
    static static_assert static_cast stderr stdin stdout strcmp struct super switch
    synchronized template this thread_local throw throws transient true try typedef
    typeid typename typeof undefined union unix unsigned unused using var virtual void
    volatile wchar_t while with xor xor_eq yield
    char8_t char16_t char32_t
    """,
    )
)
#: Names that the exports use themselves: parameters of functions, and locals.
_OURS = re.compile(r"cells|todo|to|part|[bs]\d+")


def comment(text: str, ascii_only: bool = True) -> str:
    """Write a text so that it stays in a comment of one line."""
    return "".join(_shown(char, ascii_only) for char in text)


def _shown(char: str, ascii_only: bool) -> str:
    plain = char.isascii() or not ascii_only
    if plain and char.isprintable() and char not in _LOADED:
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def identifiers(names: Iterable[str]) -> list[str]:
    """Return distinct names for columns that every language takes."""
    counts: dict[str, int] = {}
    found: dict[str, None] = {}
    for name in names:
        base = made = _identifier(name)
        while made in found:
            counts[base] = counts.get(base, 1) + 1
            made = f"{base}_{counts[base]}"
        found[made] = None
    return list(found)


def _identifier(name: str) -> str:
    base = unicodedata.normalize("NFKD", name[:60])
    letters = "".join(c for c in base if not unicodedata.combining(c)).lower()
    made = re.sub(r"[^a-z0-9]+", "_", letters).strip("_")[:40].rstrip("_")
    if not made or made[0].isdigit():
        made = f"column_{made}".rstrip("_")
    is_taken = made in _RESERVED or keyword.iskeyword(made) or _OURS.fullmatch(made)
    return f"{made}_column" if is_taken else made


def checked_name(name: str, target: str) -> str:
    """Return a name that the user chose, or say why it cannot be used."""
    if (
        not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,59}", name)
        or name.lower() in _RESERVED
        or keyword.iskeyword(name)
    ):
        raise ParameterError(
            f"name of the export to {target!r} must begin with a letter, have only "
            "letters of English, digits and underscores (60 at most), and be no word "
            f"of a programming language. Got {name!r}."
        )
    return name


def finite(number: float) -> float:
    """Return a number, or say that no source text can have it."""
    if math.isfinite(number):
        return number
    raise ExportError(
        f"The tree has a number that is not finite ({number!r}), which source text "
        "cannot have. Fit it to numbers and weights that are not that large."
    )


def whole_within_doubles(values: Sequence[Value], language: str) -> None:
    """Refuse whole numbers that a language without large ones would change."""
    for value in values:
        if isinstance(value, int) and abs(value) > 2**53:
            raise ExportError(
                f"{language} cannot tell {value} from its neighbours: its numbers are "
                "exact up to 2**53. Turn the column, or the classes, into text."
            )


def wrapped(items: Sequence[str], indent: str, end: str = ",") -> list[str]:
    """Write items in lines that are not too long, each item whole."""
    lines: list[str] = []
    for item in items:
        entry = f"{item}{end}"
        if lines and len(lines[-1]) + 1 + len(entry) <= _WIDTH:
            lines[-1] += f" {entry}"
        else:
            lines.append(f"{indent}{entry}")
    return lines


def label_word(label: Value) -> str:
    """Write a class or a number as people read it, not too long."""
    written = word(label)
    return written if len(written) <= 40 else f"{written[:40]}..."
