"""Parts of a tree as source text: what the programming languages have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from branchwise.export.nested import (
    Above,
    Choose,
    Go,
    If,
    Known,
    Missing,
    OneOf,
    Other,
    Part,
    Share,
    Statement,
    Table,
    Test,
    Tests,
    UpTo,
    Went,
    parts_of,
)
from branchwise.export.plan import EVERY_BRANCH, STOP, Plan
from branchwise.export.spelling import comment, identifiers, label_word
from branchwise.words import listed, number

_INDENT = "    "
#: Characters of a comment behind a line.
_NOTE = 60


class Source(ABC):
    """Writes the parts of a plan; a language says how it spells each thing.

    ``tables`` gathers the lines that have to stand before the functions. A block is
    written by its lines: ``begin`` has those that open the first arm of a condition,
    the next ones and the last, ``end`` the line that closes it, if there is one.
    """

    begin: tuple[str, str, str]
    end: str | None
    either: str
    remark: str
    ascii_only = True

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names = identifiers(field.name for field in plan.fields)
        self.parts = list(parts_of(plan))
        self.tables: list[str] = []

    def functions(self) -> Iterator[str]:
        """Yield the lines of all functions; parts are called by those before them."""
        for part in self.parts:
            yield from self.function(part, self._block(part.statements, 1))

    @abstractmethod
    def function(self, part: Part, body: Iterable[str]) -> Iterator[str]:
        """Yield the lines of one function."""

    @abstractmethod
    def test(self, test: Test) -> str:
        """Write a test."""

    @abstractmethod
    def go(self, to: str, share: str | None) -> str:
        """Write that the case goes somewhere."""

    @abstractmethod
    def share(self, name: str, of: str, part: float, when: str) -> str:
        """Write a share: part of another where something is true, or always."""

    @abstractmethod
    def choice(self, name: str) -> str | None:
        """Write that a variable will be chosen, if it has to be said."""

    @abstractmethod
    def assign(self, name: str, value: int) -> str:
        """Write that a variable has a value."""

    @abstractmethod
    def lookup(self, table: Table) -> str:
        """Put a table where it can be used; write how to look the case up in it."""

    @abstractmethod
    def everywhere(self, table: Table) -> list[str]:
        """Put the shares of a table there, too; write that a case goes everywhere."""

    def any_of(self, tests: Tests) -> str:
        """Write that any of some tests is true."""
        return self.either.join(self.test(test) for test in tests)

    def note(self, text: str) -> str:
        """Write a comment behind a line."""
        short = text if len(text) <= _NOTE else f"{text[:_NOTE]}..."
        return f"  {self.remark} {comment(short, self.ascii_only)}"

    def _block(self, statements: Sequence[Statement], depth: int) -> Iterator[str]:
        """Yield the lines of statements; as deep as a part is, no deeper."""
        for statement in statements:
            if isinstance(statement, If):
                yield from self._arms(statement, depth)
            else:
                for line in self._lines(statement):
                    yield f"{_INDENT * depth}{_indented(line, _INDENT * depth)}"

    def _arms(self, statement: If, depth: int) -> Iterator[str]:
        indent, arms = _INDENT * depth, statement.arms
        if len(arms) == 1 and not statement.divided:
            yield from self._block(arms[0].body, depth)
            return
        first, following, otherwise = self.begin
        for place, arm in enumerate(arms):
            if place and not statement.divided and arm is arms[-1]:
                yield f"{indent}{otherwise}{self.note(self._in_words(arm.tests))}"
            else:
                starts = first if place == 0 or statement.divided else following
                line = starts.format(self.any_of(arm.tests))
                yield f"{indent}{_indented(line, indent)}"
            yield from self._block(arm.body, depth + 1)
            if self.end is not None and (statement.divided or arm is arms[-1]):
                yield f"{indent}{self.end}"

    def _lines(self, statement: Go | Share | Choose | Table) -> Iterator[str]:
        if isinstance(statement, Go):
            share = self._level(statement.share)
            yield self.go(str(statement.to), share) + self.note(self._place(statement))
        elif isinstance(statement, Share):
            name, of = f"s{statement.level}", f"s{statement.of}"
            yield self.share(name, of, statement.part, self.any_of(statement.when))
        elif isinstance(statement, Choose):
            yield from self._choice(statement)
        else:
            yield from self._looked_up(statement)

    def _level(self, level: int) -> str | None:
        return f"s{level}" if self.plan.divides else None

    def _choice(self, statement: Choose) -> Iterator[str]:
        name = f"b{statement.level}"
        said = self.choice(name)
        if said is not None:
            yield said
        first, following, otherwise = self.begin
        for place, (tests, branch) in enumerate(statement.arms):
            yield (following if place else first).format(self.any_of(tests))
            yield f"{_INDENT}{self.assign(name, branch)}"
        yield otherwise + self.note("missing, and nothing stands in for it")
        yield f"{_INDENT}{self.assign(name, statement.default)}"
        if self.end is not None:
            yield self.end

    def _looked_up(self, table: Table) -> Iterator[str]:
        divided: list[Test] = []
        if table.every and table.of_missing is None:
            divided.append(Missing(table.field))
        if table.every and table.of_other is None:
            divided.append(Other(table.field))
        found = self.go(self.lookup(table), self._level(table.share))
        if not divided:
            yield found
            return
        first, _, otherwise = self.begin
        yield first.format(self.any_of(tuple(divided)))
        yield from (f"{_INDENT}{line}" for line in self.everywhere(table))
        yield otherwise
        yield f"{_INDENT}{found}"
        if self.end is not None:
            yield self.end

    def _place(self, statement: Go) -> str:
        """Say in words where a case goes."""
        if statement.to < 0:
            root = self.parts[-statement.to].root
            question = self.plan.nodes[root].question
            asks = "" if question is None else self.plan.fields[question.field].name
            return f"go on in part {-statement.to}: {label_word(asks)}?"
        node = self.plan.nodes[statement.to]
        if node.number is not None:
            return number(node.number)
        return label_word(self.plan.classes[node.label])

    def _in_words(self, tests: Tests) -> str:
        """Say in words what tests ask; all are about one field, or one choice."""
        first = tests[0]
        about = "" if isinstance(first, Went) else self.plan.fields[first.field].name
        asked = " or ".join(self._test_in_words(test) for test in tests)
        return f"{label_word(about)}: {asked}" if about else asked

    def _test_in_words(self, test: Test) -> str:
        if isinstance(test, Went):
            words = {STOP: "no branch", EVERY_BRANCH: "every branch"}
            return words.get(test.branch, f"branch {test.branch}")
        if isinstance(test, OneOf):
            values = self.plan.fields[test.field].values
            return listed([values[code] for code in test.codes], 5)
        if isinstance(test, UpTo):
            return f"up to {number(test.cut)}"
        if isinstance(test, Above):
            return f"above {number(test.cut)}"
        known = {Known: "known", Missing: "missing", Other: "new to the tree"}
        return known[type(test)]


def _indented(line: str, indent: str) -> str:
    """Indent what follows the first line of a list too long for one."""
    return line.replace("\n", f"\n{indent}")
