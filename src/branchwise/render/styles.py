"""The styles of a tree in text: what lines begin with, and how names are escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: What Markdown, or a page that shows it, could read as something else.
_MARKS = re.compile(r"[\\`*_{}\[\]<>&|~#$@:!^]|^[-+=]")
#: What begins a numbered list.
_NUMBER = re.compile(r"^(\d+)([.)])")


@dataclass(frozen=True)
class Style:
    """Quinlan's: a bar for each level, a colon after every branch."""

    def starts(self, start: str, last: bool) -> tuple[str, str]:  # noqa: ARG002
        """Return what a line begins with, and what those below it are given."""
        return start, start + "|   "

    def branch(self, branch: str, end: str) -> str:
        """Write a branch, with its answer if it has one."""
        return f"{branch}: {end}" if end else f"{branch}:"

    def answer(self, answer: str) -> str:
        """Write the answer of a tree that asks nothing."""
        return answer

    def opening(self, target: str) -> Iterator[str]:  # noqa: ARG002
        """Yield what stands above the tree."""
        yield from ()

    def heading(self, name: str) -> Iterator[str]:
        """Yield what stands above a subtree."""
        yield name
        yield ""


@dataclass(frozen=True)
class Box(Style):
    """Box-drawing characters, as the program ``tree`` lists files."""

    def starts(self, start: str, last: bool) -> tuple[str, str]:
        """Return what a line begins with, and what those below it are given."""
        if last:
            return f"{start}└── ", f"{start}    "
        return f"{start}├── ", f"{start}│   "

    def branch(self, branch: str, end: str) -> str:
        """Write a branch, with its answer if it has one."""
        return f"{branch}: {end}" if end else branch

    def opening(self, target: str) -> Iterator[str]:
        """Yield what stands above the tree: what is predicted."""
        yield target

    def heading(self, name: str) -> Iterator[str]:
        """Yield what stands above a subtree."""
        yield name


@dataclass(frozen=True)
class Markdown(Style):
    """A nested list; answers are bold."""

    def starts(self, start: str, last: bool) -> tuple[str, str]:  # noqa: ARG002
        """Return what a line begins with, and what those below it are given."""
        return f"{start}- ", f"{start}  "

    def branch(self, branch: str, end: str) -> str:
        """Write a branch, with its answer if it has one."""
        return f"{markdown(branch)}: **{markdown(end)}**" if end else markdown(branch)

    def answer(self, answer: str) -> str:
        """Write the answer of a tree that asks nothing."""
        return f"**{markdown(answer)}**"

    def heading(self, name: str) -> Iterator[str]:
        """Yield what stands above a subtree."""
        yield f"**{markdown(name)}**"
        yield ""


def markdown(text: str) -> str:
    """Escape a text so that Markdown shows it as it is."""
    escaped = _MARKS.sub(lambda mark: f"\\{mark[0]}", text)
    escaped = _NUMBER.sub(r"\1\\\2", escaped)
    return escaped.replace("  ", " &nbsp;")  # pages show several blanks as one


#: The styles by name; the first is the default.
STYLES: dict[str, Style] = {"quinlan": Style(), "box": Box(), "markdown": Markdown()}
