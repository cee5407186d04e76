"""Source text of tree statements, shared by the programming languages."""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from branchwise.data.table_schema import Value
from branchwise.errors import ExportError, ParameterError
from branchwise.export.plan import Plan
from branchwise.export.statements import (
    Choose,
    Go,
    If,
    Piece,
    Share,
    Statement,
    Table,
    Test,
    Tests,
    pieces_of,
)
from branchwise.text.as_html import asset
from branchwise.text.words import listed, number, word
from branchwise.tree.splits import EVERY_BRANCH, STOP

#: What has a meaning in a comment of some language, or in a page around the program.
_LOADED = set("\\*/<>&?`$")
_WIDTH = 79


#: Names that the exports use themselves: parameters of functions, and locals.
_OURS = re.compile(r"cells|todo|to|part|[bs]\d+")


@cache
def _reserved() -> frozenset[str]:
    """Return lower-case words with a meaning in C, C++, JavaScript or headers of C.

    Python knows its own. Columns are named in lower case.
    """
    return frozenset(asset("export/templates/reserved_words.txt").split())


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
    is_taken = made in _reserved() or keyword.iskeyword(made) or _OURS.fullmatch(made)
    return f"{made}_column" if is_taken else made


def checked_name(name: str, target: str) -> str:
    """Return a name that the user chose, checked."""
    if (
        not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,59}", name)
        or name.lower() in _reserved()
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
    """Reject whole numbers that a language without large integers would change."""
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


_INDENT = "    "
#: Characters of a comment behind a line.
_NOTE = 60


class Source(ABC):
    """Writes the pieces of a plan; subclasses have the syntax of a language.

    ``tables`` collects the lines that have to precede the functions. A block is
    written by its lines: ``begin`` has those that open the first arm of a condition,
    the next ones and the last, ``end`` the line that closes it, if there is one.
    ``goes`` says where a case goes, without and with a share; ``shares`` is a fraction
    of a share, always and under a condition; ``choice`` declares a variable.
    """

    begin: tuple[str, str, str]
    end: str | None
    either: str
    remark: str
    equal = "=="
    identity = "=="
    missing: str
    other: str
    is_nan = "isnan({})"
    negation: str
    ascii_only = True
    goes: tuple[str, str]
    shares: tuple[str, str]
    assignment: str
    choice: str | None = None

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names = identifiers(field.name for field in plan.fields)
        self.pieces = list(pieces_of(plan))
        self.tables: list[str] = []

    def functions(self) -> Iterator[str]:
        """Yield the lines of all functions; pieces are called by those before them."""
        for piece in self.pieces:
            yield from self.function(piece, self._block(piece.statements, 1))

    @abstractmethod
    def function(self, piece: Piece, body: Iterable[str]) -> Iterator[str]:
        """Yield the lines of one function."""

    def test(self, test: Test) -> str:
        """Write a test."""
        if test.kind == "went":
            return f"b{test.level} {self.equal} {test.branch}"
        name = self.names[test.field]
        nan = self.is_nan.format(name)
        match test.kind:
            case "one of":
                return self.one_of(name, test)
            case "up to":
                return f"{name} <= {self.number(test.threshold)}"
            case "above":
                return f"{name} > {self.number(test.threshold)}"
            case "known":
                return self.negation + nan
            case "other":
                return f"{name} {self.identity} {self.other}"
        numeric = self.plan.fields[test.field].numeric
        return nan if numeric else f"{name} {self.identity} {self.missing}"

    @abstractmethod
    def one_of(self, name: str, test: Test) -> str:
        """Write that a field has one of some values."""

    @abstractmethod
    def number(self, value: float) -> str:
        """Write a number in a condition."""

    def go(self, to: str, share: str | None) -> str:
        """Write where the case goes, or list it with its share."""
        return self.goes[share is not None].format(to, share)

    def share(self, name: str, of: str, piece: float, when: str) -> str:
        """Write a share: a fraction of another, always or under a condition."""
        less = f"{of} * {self.number(piece)}"
        return self.shares[bool(when)].format(name=name, less=less, of=of, when=when)

    @abstractmethod
    def lookup(self, table: Table) -> str:
        """Put a table where it can be used; write how to look the case up in it."""

    @abstractmethod
    def everywhere(self, table: Table) -> list[str]:
        """Add the shares of a table; write that a case goes down every branch."""

    def any_of(self, tests: Tests) -> str:
        """Write that any of some tests is true."""
        return self.either.join(self.test(test) for test in tests)

    def note(self, text: str) -> str:
        """Write a comment behind a line."""
        short = text if len(text) <= _NOTE else f"{text[:_NOTE]}..."
        return f"  {self.remark} {comment(short, self.ascii_only)}"

    def _block(self, statements: Sequence[Statement], depth: int) -> Iterator[str]:
        """Yield the lines of statements; the depth is limited by that of a piece."""
        for statement in statements:
            if isinstance(statement, If):
                yield from self._arms(statement, depth)
            else:
                for line in self._lines(statement):
                    yield f"{_INDENT * depth}{_indented(line, _INDENT * depth)}"

    def _arms(self, statement: If, depth: int) -> Iterator[str]:
        indent, arms = _INDENT * depth, statement.arms
        if len(arms) == 1 and not statement.fractional:
            yield from self._block(arms[0].body, depth)
            return
        first, following, otherwise = self.begin
        for offset, arm in enumerate(arms):
            if offset and not statement.fractional and arm is arms[-1]:
                yield f"{indent}{otherwise}{self.note(self._in_words(arm.tests))}"
            else:
                starts = first if offset == 0 or statement.fractional else following
                line = starts.format(self.any_of(arm.tests))
                dated = any(self._is_date(test) for test in arm.tests)
                note = self.note(self._in_words(arm.tests)) if dated else ""
                yield f"{indent}{_indented(line, indent)}{note}"
            yield from self._block(arm.body, depth + 1)
            if self.end is not None and (statement.fractional or arm is arms[-1]):
                yield f"{indent}{self.end}"

    def _lines(self, statement: Go | Share | Choose | Table) -> Iterator[str]:
        if isinstance(statement, Go):
            share = self._level(statement.share)
            yield self.go(str(statement.to), share) + self.note(
                self._position(statement)
            )
        elif isinstance(statement, Share):
            name, of = f"s{statement.level}", f"s{statement.of}"
            yield self.share(name, of, statement.piece, self.any_of(statement.when))
        elif isinstance(statement, Choose):
            yield from self._choice(statement)
        else:
            yield from self._looked_up(statement)

    def _level(self, level: int) -> str | None:
        return f"s{level}" if self.plan.divides else None

    def _choice(self, statement: Choose) -> Iterator[str]:
        name = f"b{statement.level}"
        if self.choice is not None:
            yield self.choice.format(name)
        first, following, otherwise = self.begin
        for offset, (tests, branch) in enumerate(statement.arms):
            yield (following if offset else first).format(self.any_of(tests))
            yield f"{_INDENT}{self.assignment.format(name, branch)}"
        yield otherwise + self.note("missing, and nothing stands in for it")
        yield f"{_INDENT}{self.assignment.format(name, statement.default)}"
        if self.end is not None:
            yield self.end

    def _looked_up(self, table: Table) -> Iterator[str]:
        fractional: list[Test] = []
        if table.every and table.of_missing is None:
            fractional.append(Test("missing", table.field))
        if table.every and table.of_other is None:
            fractional.append(Test("other", table.field))
        found = self.go(self.lookup(table), self._level(table.share))
        if not fractional:
            yield found
            return
        first, _, otherwise = self.begin
        yield first.format(self.any_of(tuple(fractional)))
        yield from (f"{_INDENT}{line}" for line in self.everywhere(table))
        yield otherwise
        yield f"{_INDENT}{found}"
        if self.end is not None:
            yield self.end

    def _position(self, statement: Go) -> str:
        """Say in words where a case goes."""
        if statement.to < 0:
            root = self.pieces[-statement.to].root
            split = self.plan.nodes[root].split
            splits_on = "" if split is None else self.plan.fields[split.field].name
            return f"go on in part {-statement.to}: {label_word(splits_on)}?"
        node = self.plan.nodes[statement.to]
        if node.number is not None:
            return number(node.number)
        return label_word(self.plan.classes[node.label])

    def _in_words(self, tests: Tests) -> str:
        """Describe tests in words; all are about one field, or one choice."""
        first = tests[0]
        about = "" if first.kind == "went" else self.plan.fields[first.field].name
        tests_in_words = " or ".join(self._test_in_words(test) for test in tests)
        return f"{label_word(about)}: {tests_in_words}" if about else tests_in_words

    def _is_date(self, test: Test) -> bool:
        bound = test.kind in ("up to", "above")
        return bound and self.plan.fields[test.field].date is not None

    def _test_in_words(self, test: Test) -> str:
        if test.kind == "went":
            words = {STOP: "no branch", EVERY_BRANCH: "every branch"}
            return words.get(test.branch, f"branch {test.branch}")
        if test.kind == "one of":
            values = self.plan.fields[test.field].values
            return listed([values[code] for code in test.codes], 5)
        if test.kind in ("up to", "above"):
            date = self.plan.fields[test.field].date
            bound = number(test.threshold)
            return f"{test.kind} {bound if date is None else date.show(test.threshold)}"
        return "new to the tree" if test.kind == "other" else test.kind


def _indented(line: str, indent: str) -> str:
    """Indent what follows the first line of a list too long for one."""
    return line.replace("\n", f"\n{indent}")


#: More values than these are looked for in a table of their own.
MOST_VALUES = 8


class BraceSource(Source):
    """Writes the pieces of a plan in a language with braces."""

    begin = ("if ({}) {{", "}} else if ({}) {{", "} else {")
    end = "}"
    either = " || "
    remark = "//"
    negation = "!"
    shares = ("const {name} = {less};", "const {name} = {when} ? {less} : {of};")
    assignment = "{} = {};"

    def one_of(self, name: str, test: Test) -> str:
        """Write that a field has one of some values."""
        if len(test.codes) > MOST_VALUES:
            return self.in_set(name, test)
        values = (self.value(test.field, code) for code in test.codes)
        return self.either.join(f"{name} {self.equal} {value}" for value in values)

    @abstractmethod
    def in_set(self, name: str, test: Test) -> str:
        """Put values into a table; write that a field has one of them."""

    @abstractmethod
    def value(self, field: int, code: int) -> str:
        """Write a value that fields are compared with."""
