"""Run the command line in this process, and look at what it printed."""

from __future__ import annotations

from typer.testing import CliRunner

from branchwise import datasets
from branchwise.cli.main import app

WEATHER = datasets.path("weather")


def run(*arguments, stdin=None):
    """Run a command; returns exit code, standard output and standard error."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def output(*arguments, stdin=None):
    code, out, err = run(*arguments, stdin=stdin)
    assert code == 0, err
    return out


def refusal(*arguments, code=1, stdin=None):
    """Run a command that is refused with one line; returns the line."""
    got, out, err = run(*arguments, stdin=stdin)
    assert (got, out) == (code, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err.removeprefix("error: ").rstrip("\n")


def usage_error(*arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Usage: " in err
    return " ".join(err.split())
