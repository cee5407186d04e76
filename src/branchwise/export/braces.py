"""What JavaScript and C have in common: braces, and how conditions are joined."""

from __future__ import annotations

from abc import abstractmethod

from branchwise.export.nested import Above, Known, OneOf, Other, Test, UpTo, Went
from branchwise.export.source import Source

#: More values than these are looked for in a table of their own.
MOST_VALUES = 8


class BraceSource(Source):
    """Writes the parts of a plan in a language with braces."""

    begin = ("if ({}) {{", "}} else if ({}) {{", "} else {")
    end = "}"
    either = " || "
    remark = "//"
    constant: str
    equal: str
    missing: str
    other: str
    isnan: str

    def test(self, test: Test) -> str:
        """Write a test."""
        if isinstance(test, Went):
            return f"b{test.level} {self.equal} {test.branch}"
        name = self.names[test.field]
        if isinstance(test, OneOf):
            return self.one_of(name, test)
        if isinstance(test, UpTo):
            return f"{name} <= {self.number(test.cut)}"
        if isinstance(test, Above):
            return f"{name} > {self.number(test.cut)}"
        if isinstance(test, Known):
            return f"!{self.isnan}({name})"
        if isinstance(test, Other):
            return f"{name} {self.equal} {self.other}"
        if self.plan.fields[test.field].numeric:
            return f"{self.isnan}({name})"
        return f"{name} {self.equal} {self.missing}"

    def one_of(self, name: str, test: OneOf) -> str:
        """Write that a field has one of some values."""
        if len(test.codes) > MOST_VALUES:
            return self.in_set(name, test)
        values = (self.value(test.field, code) for code in test.codes)
        return self.either.join(f"{name} {self.equal} {value}" for value in values)

    @abstractmethod
    def in_set(self, name: str, test: OneOf) -> str:
        """Put values into a table; write that a field has one of them."""

    @abstractmethod
    def number(self, value: float) -> str:
        """Write a number in a condition."""

    @abstractmethod
    def value(self, field: int, code: int) -> str:
        """Write a value that fields are compared with."""

    def share(self, name: str, of: str, part: float, when: str) -> str:
        """Write a share."""
        less = f"{of} * {self.number(part)}"
        value = f"{when} ? {less} : {of}" if when else less
        return f"{self.constant} {name} = {value};"

    def assign(self, name: str, value: int) -> str:
        """Assign."""
        return f"{name} = {value};"
