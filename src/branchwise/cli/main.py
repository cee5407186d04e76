"""``branchwise``: the application with its subcommands, and its exit codes.

Exit codes: 0 success, 1 bad data or a file that cannot be read or written, 2 bad
usage, 130 interrupted by Ctrl-C, 141 standard output was closed, 143 terminated by
SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from branchwise import __version__
from branchwise.cli.support import Reporter, complain, with_options
from branchwise.errors import BranchwiseError, ParameterError

BAD_DATA = 1
BAD_USAGE = 2
INTERRUPTED = 130
NO_READER = 141
ENDED = 143
#: In the order of the help. Each is a function, in a module of its name or of these.
SUBCOMMANDS = (
    "fit",
    "predict",
    "show",
    "view",
    "rules",
    "steps",
    "explain",
    "what-if",
    "diff",
    "evaluate",
    "tune",
    "report",
    "prune",
    "export",
    "schema",
    "studio",
)
_MODULES = {"view": "show", "what-if": "explain", "diff": "explain"}


class _Ended(KeyboardInterrupt):
    """SIGTERM, such as before the system shuts down."""


class _Subcommand(TyperCommand):
    """Lists options under the headings that they name, in plain text.

    What would be a warning in Python is a note here.
    """

    def invoke(self, ctx: Any) -> Any:
        with _warnings_as_notes(ctx.params.get("quiet", False)):
            return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[Any]] = {}
        for param in self.get_params(ctx):
            usual = "Arguments" if param.param_type_name == "argument" else "Options"
            heading = getattr(param, "rich_help_panel", None) or usual
            record = param.get_help_record(ctx)
            if record is not None:
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class _Subcommands(TyperGroup):
    """Runs a subcommand; expected errors become one line and an exit code.

    The module of a subcommand is imported when it is requested, to start fast.
    """

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(SUBCOMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # For another name all are loaded, so that a similar one can be suggested.
        for name in (cmd_name,) if cmd_name in SUBCOMMANDS else SUBCOMMANDS:
            if name not in self.commands:
                self.commands[name] = _loaded(name)
        return super().get_command(ctx, cmd_name)

    def get_help(self, ctx: Any) -> str:
        self.help = _page("branchwise")
        return super().get_help(ctx)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _Ended:
            _stop("terminated", ENDED)
        except KeyboardInterrupt:
            _stop("interrupted", INTERRUPTED)
        except BrokenPipeError:
            _silence_output()
            raise typer.Exit(NO_READER) from None
        except ParameterError as error:
            _stop(f"error: {with_options(str(error))}", BAD_USAGE)
        except BranchwiseError as error:
            _stop(f"error: {with_options(str(error))}", BAD_DATA)
        except OSError as error:
            _stop(f"error: {_about(error)}", BAD_DATA)
        except MemoryError:
            _stop("error: out of memory", BAD_DATA)


def _loaded(name: str) -> Any:
    module = import_module(f"branchwise.cli.{_MODULES.get(name, name)}")
    subcommand = getattr(module, name.replace("-", "_"))
    own = typer.Typer(add_completion=False, rich_markup_mode=None)
    own.command(cls=_Subcommand, help=_page(name))(subcommand)
    return typer.main.get_command(own)


def _page(name: str) -> str:
    """Return the text of a page of ``cli/help``, without the options."""
    from branchwise.cli.options import Page

    return Page(name).text


def _stop(message: str, code: int) -> NoReturn:
    complain(message)
    raise typer.Exit(code) from None


def _about(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def _silence_output() -> None:
    """Redirect standard output to the null device, for Python flushes it at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _warnings_as_notes(quiet: bool) -> Iterator[None]:
    reporter = Reporter(quiet)

    def show(message: Warning | str, *_: object, **__: object) -> None:
        reporter.note(str(message))

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


app = typer.Typer(
    cls=_Subcommands,
    name="branchwise",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"branchwise {__version__}")
        raise typer.Exit


@app.callback()
def _branchwise(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Decision trees that a person can read, defend and ship."""


def _end(*_: object) -> NoReturn:
    raise _Ended


def main() -> None:
    """Run the command line."""
    # Without a handler temporary files, tables and workers would not be cleaned up.
    signal.signal(signal.SIGTERM, _end)
    app(prog_name="branchwise")
