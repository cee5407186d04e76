"""Standard streams and output files, hints about columns, wording of messages.

``Reporter`` writes notes and progress; ``open_output`` and ``print_lines`` write
results. The hints say how to correct a column with options; ``with_options`` puts
options in place of parameters into messages of the library.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np

from branchwise.data.checks import Finding
from branchwise.data.columns import Coded, Numbers, RawColumn
from branchwise.data.frames import Frame
from branchwise.data.schema import Value
from branchwise.errors import DataError, ParameterError, json_text, plain, quoted
from branchwise.files.atomic import atomic_write, is_device, telling
from branchwise.files.read_table import STANDARD_STREAM

if TYPE_CHECKING:
    from rich.progress import Progress

Style = TypeVar("Style", bound=StrEnum)

#: Endings of files that hold any text.
_ANY_TEXT = ("", ".txt", ".md")
#: Seconds of work before a progress bar shows.
_PATIENCE = 1.0


class Reporter:
    """Writes notes and progress to standard error.

    Parameters
    ----------
    quiet : bool
        Whether to suppress notes and progress.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def note(self, message: str) -> None:
        """Write a note."""
        if not self.quiet:
            complain(f"note: {message}")

    @contextmanager
    def working(self, task: str) -> Iterator[Callable[[str], None]]:
        """Show a progress bar if the work takes more than a second on a terminal.

        While tables are read, it also tells how much of them has been.

        Parameters
        ----------
        task : str
            What is being done.

        Yields
        ------
        callable
            Takes a text that replaces the task.
        """
        if self.quiet or sys.stderr is None or not sys.stderr.isatty():
            yield lambda _: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        number = bar.add_task(task, total=None)
        now = task

        def say(text: str) -> None:
            nonlocal now
            now = text
            bar.update(number, description=text)

        def tell(amount: str) -> None:
            bar.update(number, description=f"{now}: {amount}")

        with _after_a_while(bar), telling(tell):
            yield say

    def reading(self, path: str) -> AbstractContextManager[Callable[[str], None]]:
        """Show a progress bar for a table that is read, and for what follows."""
        return self.working(
            f"Reading {'standard input' if path == STANDARD_STREAM else path}"
        )

    @contextmanager
    def counting(self, task: str) -> Iterator[Callable[[int, int], None]]:
        """Show how much is done, if the work takes more than a second on a terminal.

        Parameters
        ----------
        task : str
            What is being done.

        Yields
        ------
        callable
            Takes how many things are done, and how many there are.
        """
        if self.quiet or sys.stderr is None or not sys.stderr.isatty():
            yield lambda _done, _total: None
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        number = bar.add_task(task, total=None)
        with _after_a_while(bar):
            yield lambda done, total: bar.update(number, completed=done, total=total)


@contextmanager
def _after_a_while(bar: Progress) -> Iterator[None]:
    lock = threading.Lock()
    over = False

    def show() -> None:
        with lock:
            if not over:
                bar.start()

    timer = threading.Timer(_PATIENCE, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            over = True
            bar.stop()


def complain(message: str) -> None:
    """Write a line to standard error, whatever its encoding can show."""
    if sys.stderr is None:
        return
    encoding = sys.stderr.encoding or "utf-8"
    safe = plain(message).encode(encoding, "backslashreplace").decode(encoding)
    print(safe, file=sys.stderr)


@contextmanager
def open_output(path: str | None) -> Iterator[BinaryIO]:
    """Open a file that appears only when it is whole; None is standard output."""
    if path is None or path == STANDARD_STREAM:
        with _standard_output() as stream:
            yield stream
        return
    with atomic_write(path) as file:
        yield file


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    stream = sys.stdout.buffer
    if not isinstance(stream, io.RawIOBase):
        yield stream
        stream.flush()
        return
    # With PYTHONUNBUFFERED set, a write may take only a part of what it is given.
    writer = io.BufferedWriter(stream)
    try:
        yield writer
        writer.flush()
    finally:
        with suppress(OSError):
            writer.detach()


def style_of_file(
    path: str, style: Style | None, endings: Mapping[str, Style], text: bool = False
) -> Style:
    """Return the style of a file: the one given, or that of its ending.

    ``text`` tells that plain text is written in place of a style.
    """
    ending = Path(path).suffix.lower()
    own = endings.get(ending)
    if own is None and style is None and not text:
        raise ParameterError(
            f"-o {path}: no style is known for files that end in {ending!r}. Known "
            f"are {', '.join(filter(None, endings))}; or say which with --style."
        )
    if own is None or ending in _ANY_TEXT:
        return style or own or endings[""]
    if text or style not in (None, own):
        given = f"--style {style}" if style else "text"
        raise ParameterError(
            f"-o {path}: a file that ends in {ending!r} is {own}. Got {given}: give "
            "the file another ending."
        )
    return own


def check_output(
    path: str | None, option: str = "-o", example: str = "tree.json"
) -> None:
    """Reject a path that cannot be written, before any work is done.

    Parameters
    ----------
    path : str or None
        The file to write; None is none, or standard output.
    option : str
        The option that names it.
    example : str
        What such a file may be called.
    """
    if path is None or path == STANDARD_STREAM:
        return
    final = Path(path).resolve()
    if final.is_dir():
        raise DataError(
            f"{path!r} is a directory. Give the name of a file with {option}, such as "
            f"{path.rstrip('/')}/{example}."
        )
    if not final.parent.is_dir():
        raise DataError(
            f"There is no directory {str(final.parent)!r} to write {final.name!r} to. "
            f"Make it first, or choose another directory with {option}."
        )
    if not is_device(final) and not os.access(final.parent, os.W_OK):
        raise DataError(
            f"{str(final.parent)!r} allows no new files. Choose another directory "
            f"with {option}."
        )


def keep_inputs(outputs: Mapping[str, str | None], *inputs: str | None) -> None:
    """Reject options that overwrite an input, or another output."""
    taken: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None or path == STANDARD_STREAM or is_device(Path(path)):
            continue
        final = Path(path).resolve()
        for given in inputs:
            if given and Path(given).exists() and final == Path(given).resolve():
                raise ParameterError(
                    f"{option} would write over {path}, which is read. Give the result "
                    "a name of its own."
                )
        if final in taken:
            raise ParameterError(
                f"{taken[final]} and {option} would both write {path}. Give each a "
                "name of its own."
            )
        taken[final] = option


def print_lines(lines: Iterable[str], path: str | None = None) -> None:
    """Write lines of a result to a file, or to standard output, as UTF-8."""
    with open_output(path) as file:
        for line in lines:
            file.write(line.encode("utf-8", "backslashreplace") + b"\n")


def print_json(document: Any, path: str | None = None) -> None:
    """Write a result to a file, or to standard output, as JSON."""
    print_lines([json_text(document, indent=2)], path)


#: With fewer rows no column is reported as an identifier.
_ENOUGH_ROWS = 10
#: Whole numbers with no more values than this may well be names.
_FEW_NUMBERS = 5
#: So many values that are no numbers may be marks of missing ones.
_FEW_WORDS = 2
#: With so many numbers among its values, a column is hardly meant as text.
_MANY_NUMBERS = 10
#: What people write, in upper or lower case, for a missing value.
_USUAL_NA_VALUES = frozenset(("", "?", "na", "n/a", "nan", "null", "-", "--", "."))
#: With so large a share of its cells alike, a column is meant to hold such cells.
_NEARLY_ALL = 0.95
_MONEY = "$€£¥"
#: Numbers with a comma for the point, or with marks between groups of three digits.
_DIGITS = (
    r"(?:\d+(?:[.,]\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+"
    r"|\d{1,3}(?:[ '\u00a0\u202f]\d{3})+(?:[.,]\d+)?)"
)
#: These and plain numbers, with signs of money or of percent.
_DRESSED = re.compile(rf"[+-]?(?:[{_MONEY}]\s?)?[+-]?{_DIGITS}(?:\s?[%{_MONEY}])?")


def hint(name: str, raw: RawColumn, padded: str | None = None) -> str:
    """Tell how a column may have to be corrected, or nothing.

    Parameters
    ----------
    name : str
        The name of the column.
    raw : Coded or Numbers
        The column as it was read.
    padded : str or None
        A number as it is in the file, with zeros in front of it.
    """
    if has_no_value(raw):
        return f"no value at all: {option('--ignore', name)}"
    if isinstance(raw, Coded):
        return _text_hint(name, raw)
    if padded is not None:
        return f"{option('--categorical', name)} keeps zeros in front, as in {padded}"
    distinct = np.unique(raw.values[~np.isnan(raw.values)])
    if len(distinct) <= _FEW_NUMBERS and (distinct == np.rint(distinct)).all():
        return f"{option('--categorical', name)} if these numbers are names"
    return ""


def unusable_hint(name: str, column: Any) -> str:
    """Tell why a column of Arrow cannot be used, and what to do."""
    ignore = option("--ignore", name)
    if str(column.type).removeprefix("u").startswith("int"):
        return (
            f"whole numbers beyond 2^53 are not exact: {option('--categorical', name)} "
            f"takes them as names, or {ignore}"
        )
    return f"{column.type} cannot be used: {ignore}"


def _text_hint(name: str, raw: Coded) -> str:
    values = present_values(raw)
    words = _words(values)
    dressed = _dressed_numbers(raw)
    if dressed:
        return dressed
    if 0 < len(words) <= min(_FEW_WORDS, len(values) - 1):
        return f"numeric with {_as_missing(words)}"
    if is_identifier(raw):
        return f"another value in every row: {option('--ignore', name)}?"
    na_values = [text for text in words if _is_usual_na_value(text)]
    if na_values:
        return f"{_as_missing(na_values)} if that is no value"
    if any(text != text.strip() for text in words):
        return "spaces around some values are part of them"
    return "one value only" if len(values) == 1 else ""


def present_values(raw: Coded) -> tuple[Value, ...]:
    """Return the values that occur, in their order."""
    codes = np.unique(raw.codes[raw.codes >= 0]).tolist()
    return tuple(raw.values[code] for code in codes)


def has_no_value(raw: RawColumn) -> bool:
    """Whether every cell is missing."""
    if isinstance(raw, Numbers):
        return bool(np.isnan(raw.values).all())
    return not (raw.codes >= 0).any()


def is_identifier(raw: Coded) -> bool:
    """Whether a text column tells every row from every other."""
    n_rows = len(raw.codes)
    return n_rows >= _ENOUGH_ROWS and len(np.unique(raw.codes)) == n_rows


def why_text(raw: Coded) -> str:
    """Tell why a column that seems to hold numbers is taken for text, or nothing."""
    dressed = _dressed_numbers(raw)
    if dressed:
        return dressed
    words = _stray_words(raw)
    if not words:
        return ""
    return (
        f"taken for text because of {quoted(words)}; it is numeric with "
        f"{_as_missing(words)}"
    )


def _stray_words(raw: Coded) -> list[str]:
    """Return the few words that keep a column from being numeric."""
    values = present_values(raw)
    words = _words(values)
    n_numbers = len(values) - len(words)
    if not n_numbers or not 0 < len(words) <= _FEW_WORDS:
        return []
    usual = all(_is_usual_na_value(text) for text in words)
    return words if usual or n_numbers >= _MANY_NUMBERS else []


def _dressed_numbers(raw: Coded) -> str:
    """Say that text looks like numbers that are not written plainly, if it does.

    Commas, currency and percent signs, and spaces between digits make text of numbers,
    and nearly every row then has another value.
    """
    times = np.bincount(raw.codes[raw.codes >= 0], minlength=len(raw.values))
    others_left = (1.0 - _NEARLY_ALL) * float(times.sum())
    example = ""
    for value, n_cells in zip(raw.values, times.tolist(), strict=True):
        if not n_cells or _is_number(value):
            continue
        if _DRESSED.fullmatch(str(value).strip()):
            example = example or str(value)
            continue
        others_left -= n_cells
        if others_left < 0:
            return ""
    if not example:
        return ""
    return (
        f"taken for names: {example!r} looks like {_kind_of_number(example)}. If these "
        "are numbers, write them plainly in the file, such as 1.5"
    )


def _kind_of_number(text: str) -> str:
    if "%" in text:
        return "a percentage"
    if any(sign in text for sign in _MONEY):
        return "an amount of money"
    return "a number with a comma" if "," in text else "a number in groups of digits"


def _as_missing(words: Sequence[str]) -> str:
    """Write the options that make words missing values."""
    return " ".join(option("--missing", text) for text in words)


def without_mistaken(findings: Sequence[Finding], frame: Frame) -> list[Finding]:
    """Leave out text that is only text because of how its numbers are written.

    It does not identify rows: another hint advises to read it as numbers.
    """
    kept = []
    for finding in findings:
        if finding.kind == "identifier":
            raw = frame.column(frame.names.index(finding.columns[0]))
            if isinstance(raw, Coded) and why_text(raw):
                continue
        kept.append(finding)
    return kept


def with_option(finding: Finding) -> str:
    """Write a finding with the option that does what it advises."""
    flag = "--categorical" if finding.kind == "codes" else "--ignore"
    said = finding.message[0].lower() + finding.message[1:]
    if not finding.advice.endswith((" out.", " categorical.")):
        return f"{said} {finding.advice}"
    correction = option(flag, finding.columns[-1])
    return f"{said} {finding.advice.removesuffix('.')} with {correction}."


def option(name: str, value: str) -> str:
    """Write an option as it can be typed into a shell."""
    return f"{name} {shlex.quote(value)}"


def _words(values: Sequence[Value]) -> list[str]:
    return [str(value) for value in values if not _is_number(value)]


def _is_usual_na_value(text: str) -> bool:
    return text.strip().lower() in _USUAL_NA_VALUES


def _is_number(value: Value) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


#: Wordings of the library -> wordings of the command line.
_PHRASES = (
    ("without verification (verify=False)", "without verification (--no-verify)"),
    ("and name it as the weight", "and name it with --weight"),
    ("rules() and apply() give the numbers.", "branchwise show --nodes prints them."),
    (
        (
            "X and y must be the rows that the tree was grown from, with their "
            "sample_weight"
        ),
        (
            "The table must have the rows that the tree was grown from, with their "
            "weights (--weight)"
        ),
    ),
    (
        "X and y must be the rows that it was grown from",
        "The table must have the rows that it was grown from",
    ),
    ("Without X and y branches", "Without --data branches"),
    (
        (
            "unseen='error' allows none. Declare it in categories= or choose another "
            "policy: 'node', 'largest', 'split' or 'branch'."
        ),
        (
            "--unseen-policy error allows none. Fit a tree with the value declared "
            "(--categories), or with another policy: node, largest, split or branch."
        ),
    ),
)


def with_options(message: str) -> str:
    """Write a message of the library with options in place of parameters."""
    for parameters, options in _PHRASES:
        message = message.replace(parameters, options)
    return message
