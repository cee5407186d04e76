"""The history of a session, which branches, and the file that its actions are kept in.

Undoing and then doing something else keeps what was undone: every entry has a number
and the entry it follows. A file of actions has a line of JSON for the session and one
for each action, undo, redo and goto, in their order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from branchwise.errors import DataError, ParameterError, json_text
from branchwise.files.raw_bytes import atomic_write
from branchwise.studio.actions import Action, read_action
from branchwise.text.blocks import Block, Table
from branchwise.text.document import Document

#: Limits of a file of actions: bytes of a line and of all, and lines.
_LONGEST_LINE = 64 << 20
_MOST_BYTES = 1 << 30
_MOST_LINES = 1_000_000
#: The version of the layout of files of actions.
LAYOUT = 1
#: Steps in a history that are no edits.
MOVES = ("undo", "redo", "goto")


@dataclass(frozen=True)
class Entry:
    """An action in a history: its number, and that of the entry it follows."""

    number: int
    parent: int | None
    action: Action | None
    #: What leads to the node of the action; None where it is not known.
    way: tuple[str, ...] | None = None

    @property
    def words(self) -> str:
        """The action in a few words."""
        return "start" if self.action is None else self.action.words


@dataclass(frozen=True)
class Step:
    """A line of a file: an action and the way to its node."""

    action: Action
    way: tuple[str, ...] | None

    def to_dict(self) -> dict[str, Any]:
        """Return the line in plain values."""
        record = self.action.to_dict()
        return record if self.way is None else {**record, "way": list(self.way)}


@dataclass(frozen=True)
class Move:
    """A line of a file: an undo, a redo, or a goto and its number."""

    move: str
    number: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the line in plain values."""
        given = {} if self.number is None else {"number": self.number}
        return {"do": self.move, **given}


class History(Document):
    """The actions of a session; 0 is the start."""

    def __init__(self) -> None:
        self.entries = [Entry(0, None, None)]
        self.current = 0
        #: Called after every step, such as by pages that follow it.
        self.listeners: list[Callable[[], None]] = []
        self._next: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __getitem__(self, number: int) -> Entry:
        return self.entries[number]

    def __repr__(self) -> str:
        return f"<History of {len(self) - 1} actions, at {self.current}>"

    def add(self, action: Action, way: tuple[str, ...] | None = None) -> int:
        """Add an action after the current entry, which it becomes."""
        number = len(self.entries)
        self.entries.append(Entry(number, self.current, action, way))
        self._move(number)
        self._tell()
        return number

    def _tell(self) -> None:
        for listener in self.listeners:
            listener()

    def _move(self, number: int) -> None:
        self.current = number
        # What redo returns to is the branch that was last gone along.
        below = number
        while (parent := self.entries[below].parent) is not None:
            self._next[parent] = below
            below = parent

    @property
    def undo_to(self) -> int | None:
        """The entry that undo goes to."""
        return self.entries[self.current].parent

    @property
    def redo_to(self) -> int | None:
        """The entry that redo goes to."""
        return self._next.get(self.current)

    def check_move(self, move: str, number: object = None) -> int:
        """Return the entry that a move goes to; raise if there is none."""
        if move == "goto":
            whole = isinstance(number, int) and not isinstance(number, bool)
            at = cast("int", number) if whole else -1
            if not 0 <= at < len(self.entries):
                raise ParameterError(
                    "number must be that of an entry of the history, from 0, the "
                    f"start, to {len(self.entries) - 1}. Got {number!r}."
                )
            return at
        to = self.undo_to if move == "undo" else self.redo_to
        if to is None:
            raise ParameterError(
                f"There is nothing to {move}: the session is at "
                + ("its start." if move == "undo" else "the end of its history.")
            )
        return to

    def move(self, number: int, move: str) -> None:
        """Go to an entry."""
        if move == "undo":
            self.current = number
        else:
            self._move(number)
        self._tell()

    def way_to(self, number: int) -> list[Entry]:
        """Return the entries from the start to one, without the start."""
        way: list[Entry] = []
        at: int | None = number
        while at:
            way.append(self.entries[at])
            at = self.entries[at].parent
        return way[::-1]

    @property
    def way(self) -> list[Entry]:
        """The entries that led to the current one, without the start."""
        return self.way_to(self.current)

    def blocks(self) -> Iterator[Block]:
        """Yield a table of the entries; those that led here are marked."""
        way = {0, *(entry.number for entry in self.way)}
        rows = [
            [
                str(entry.number),
                "" if entry.parent is None else str(entry.parent),
                entry.words,
                "now"
                if entry.number == self.current
                else ""
                if entry.number in way
                else "left",
            ]
            for entry in self
        ]
        yield Table(["number", "after", "action", ""], rows, words=(2, 3))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        entries = [
            {
                "number": entry.number,
                "parent": entry.parent,
                "words": entry.words,
                "action": None if entry.action is None else entry.action.to_dict(),
            }
            for entry in self
        ]
        return {
            "entries": entries,
            "current": self.current,
            "undo": self.undo_to,
            "redo": self.redo_to,
        }


class Journal:
    """A file that has every action before the call that does it returns."""

    def __init__(self, path: str | os.PathLike[str], lines: Sequence[Any]) -> None:
        self.path = Path(path)
        write_lines(self.path, lines)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a line, and wait until it is on the disk."""
        try:
            # The file is there: one that was removed is not begun in the middle.
            with self.path.open("r+b") as file:
                end = file.seek(0, os.SEEK_END)
                try:
                    file.write(_line(record))
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(end)
                    raise
        except OSError as error:
            raise DataError(
                f"The journal {str(self.path)!r} cannot be written: {error.strerror}. "
                "The action was not done; mend it, or save the session in another file."
            ) from None


def check_new(journal: str | os.PathLike[str]) -> None:
    """Reject a journal that would replace a file."""
    if Path(journal).exists():
        raise ParameterError(
            f"journal must be a file that does not exist yet. Got {str(journal)!r}; "
            "branchwise.open_session continues it, or choose another name."
        )


def write_lines(path: str | os.PathLike[str], lines: Sequence[Any]) -> None:
    """Write a file of actions, whole or not at all."""
    with atomic_write(path) as file:
        for record in lines:
            file.write(_line(record))


def lines_text(lines: Sequence[Any]) -> str:
    """Return the content of a file of actions."""
    return b"".join(map(_line, lines)).decode()


def _line(record: Mapping[str, Any]) -> bytes:
    return json_text(record, allow_nan=False).encode() + b"\n"


def read_lines(content: bytes, name: str) -> tuple[dict[str, Any], list[Step | Move]]:
    """Return the session and the actions and moves of a file of actions, checked.

    A last line that was truncated is left out.
    """
    if len(content) > _MOST_BYTES:
        raise DataError(
            f"{name} has {len(content):,} bytes, more than {_MOST_BYTES:,}."
        )
    lines = content.split(b"\n")
    if len(lines) > _MOST_LINES:
        raise DataError(f"{name} has more than {_MOST_LINES:,} lines.")
    # What follows the last line break was truncated, unless it is empty.
    del lines[-1]
    if not lines:
        raise DataError(
            f"{name} is not a file of actions: it has no whole line. session.save and "
            "journal= write such files."
        )
    records = [_parsed(line, f"{name}, line {at}") for at, line in enumerate(lines, 1)]
    header = records[0]
    if not isinstance(header, dict) or header.get("actions") != LAYOUT:
        raise DataError(
            f"{name}, line 1, must describe a session, with 'actions': {LAYOUT}. It is "
            "not a file of actions, or one of a later version of branchwise."
        )
    steps: list[Step | Move] = []
    for at, record in enumerate(records[1:], 2):
        try:
            steps.append(_step(record))
        except ParameterError as error:
            raise DataError(f"{name}, line {at}: {error}") from None
    return header, steps


def _parsed(line: bytes, where: str) -> Any:
    if len(line) > _LONGEST_LINE:
        raise DataError(f"{where}, has more than {_LONGEST_LINE:,} bytes.")
    try:
        return json.loads(line.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise DataError(
            f"{where}, is not JSON. Every line but a truncated last one must be "
            "an object."
        ) from None


def _no_constant(text: str) -> None:
    raise ValueError(text)


def _step(record: Any) -> Step | Move:
    """Return an action, or a move and the number it goes to."""
    if isinstance(record, dict) and record.get("do") in MOVES:
        number = record.get("number")
        extra = set(record) - {"do", "number"}
        is_goto = record["do"] == "goto"
        whole = isinstance(number, int) and not isinstance(number, bool)
        if extra or is_goto != ("number" in record) or (is_goto and not whole):
            raise ParameterError(
                "undo and redo have nothing besides 'do', goto has a 'number'."
            )
        return Move(record["do"], number)
    way = None
    if isinstance(record, dict) and "way" in record:
        way = _read_way(record["way"])
        record = {name: value for name, value in record.items() if name != "way"}
    return Step(read_action(record), way)


def _read_way(given: Any) -> tuple[str, ...]:
    texts = isinstance(given, list) and all(isinstance(each, str) for each in given)
    if not texts:
        raise ParameterError("'way' of an action must be a list of texts.")
    return tuple(given)
