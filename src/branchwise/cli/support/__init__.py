"""Standard streams, output files and the wording of messages."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from branchwise.errors import DataError, ParameterError, json_text, plain
from branchwise.files.options import telling
from branchwise.files.raw_bytes import STANDARD_STREAM, atomic_write, is_device

if TYPE_CHECKING:
    from rich.progress import Progress

#: Endings of files that hold any text.
_ANY_TEXT = ("", ".txt", ".md")
#: Seconds of work before a progress bar shows.
_PATIENCE = 1.0


class Reporter:
    """Writes notes and progress to standard error, unless it is to be quiet."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def note(self, message: str) -> None:
        """Write a note."""
        if not self.quiet:
            complain(f"note: {message}")

    @contextmanager
    def working(self, task: str) -> Iterator[Callable[[str], None]]:
        """Show a progress bar if the work takes more than a second on a terminal.

        While tables are read, it also tells how much of them has been. Yields a
        function of a text that replaces the task.
        """
        with self._bar(task, "TimeElapsedColumn") as update:
            now = task

            def say(text: str) -> None:
                nonlocal now
                now = text
                update(description=text)

            with telling(lambda amount: update(description=f"{now}: {amount}")):
                yield say

    def reading(self, path: str) -> AbstractContextManager[Callable[[str], None]]:
        """Show a progress bar for a table that is read, and for what follows."""
        return self.working(
            f"Reading {'standard input' if path == STANDARD_STREAM else path}"
        )

    @contextmanager
    def counting(self, task: str) -> Iterator[Callable[[int, int], None]]:
        """Show how much is done; yields a function of the number done and of all."""
        with self._bar(task, "MofNCompleteColumn", "TimeRemainingColumn") as update:
            yield lambda done, total: update(completed=done, total=total)

    @contextmanager
    def _bar(self, task: str, *columns: str) -> Iterator[Callable[..., None]]:
        """Yield a function that updates a progress bar; without a terminal, nothing."""
        if self.quiet or sys.stderr is None or not sys.stderr.isatty():
            yield lambda **_: None
            return
        from rich import progress
        from rich.console import Console

        bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            *(getattr(progress, name)() for name in columns),
            console=Console(stderr=True),
            transient=True,
        )
        number = bar.add_task(task, total=None)
        with _after_a_while(bar):
            yield lambda **changes: bar.update(number, **changes)


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
    path: str, style: str | None, endings: Mapping[str, str], text: bool = False
) -> str:
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


#: What a file that an option names may be called.
_EXAMPLES = {"--results": "results.csv", "--plot": "tune.png", "--resume": "tune.state"}


def check_outputs(outputs: Mapping[str, str | None], *inputs: str | None) -> None:
    """Reject files that cannot be written, before any work is done.

    ``outputs`` are the files to write, by the options that name them; None is none, or
    standard output. None of them may be an input, or another output.
    """
    taken: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None or path == STANDARD_STREAM:
            continue
        _check_folder(path, option)
        if is_device(Path(path)):
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


def _check_folder(path: str, option: str) -> None:
    final = Path(path).resolve()
    if final.is_dir():
        raise DataError(
            f"{path!r} is a directory. Give the name of a file with {option}, such as "
            f"{path.rstrip('/')}/{_EXAMPLES.get(option, 'tree.json')}."
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


def print_lines(lines: Iterable[str], path: str | None = None) -> None:
    """Write lines of a result to a file, or to standard output, as UTF-8."""
    with open_output(path) as file:
        for line in lines:
            file.write(line.encode("utf-8", "backslashreplace") + b"\n")


def print_json(document: Any, path: str | None = None) -> None:
    """Write a result to a file, or to standard output, as JSON."""
    print_lines([json_text(document, indent=2)], path)


def with_options(message: str) -> str:
    """Write a message of the library with options in place of parameters.

    The words of the library are each followed by those of the command line.
    """
    wordings = Path(__file__).parents[1] / "help" / "wordings.txt"
    for pair in wordings.read_text("utf-8").strip().split("\n\n"):
        parameters, options = pair.split("\n")
        message = message.replace(parameters, options)
    return message
