"""``branchwise tune``: a search for the best parameters of an algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from branchwise.cli import options
from branchwise.cli.options import Page, check_idle, growing, split_entry, takes
from branchwise.cli.support import Reporter, check_outputs, open_output
from branchwise.cli.support.models import note_written, size_of, write_model
from branchwise.cli.support.rows import print_result
from branchwise.cli.support.training import Growth, TrainingTable, growth_options
from branchwise.errors import ParameterError, counted
from branchwise.files.read_table import STANDARD_STREAM
from branchwise.model import Model

if TYPE_CHECKING:
    from branchwise.ensemble.ensemble import Ensemble
    from branchwise.evaluation import SearchResults
    from branchwise.evaluation.trials import Trial

_PAGE = Page("tune")
_SHOWN = 10
_WORDS = {"none": None, "true": True, "false": False}


@takes(growth=growth_options)
def tune(
    table_path: str = options.TABLE,
    target: str = options.TARGET,
    output: str | None = _PAGE.option("--output"),
    results_path: str | None = _PAGE.option("--results"),
    plot_path: str | None = _PAGE.option("--plot"),
    resume: str | None = _PAGE.option("--resume"),
    output_format: str = options.FORMAT,
    quiet: bool = options.QUIET,
    algorithm: str | None = growing.EVALUATED_ALGORITHM,
    regression: bool = growing.EVALUATED_REGRESSION,
    grid: list[str] | None = _PAGE.option("--grid"),
    method: str = _PAGE.option("--method", "grid", choices=("grid", "halving")),
    scoring: str | None = _PAGE.option("--scoring"),
    one_se: bool = _PAGE.flag("--one-se"),
    cv: int | None = growing.FOLDS,
    seed: int | None = growing.SEED,
    jobs: int = options.SHARED.option("--jobs", -1, shown=None),
    *,
    growth: Growth,
) -> None:
    """Search for the parameters with the best cross-validated score."""
    reporter = Reporter(quiet)
    chosen = growing.chosen_algorithm(algorithm, regression)
    growth.check(chosen, regression)
    wanted = _grid(grid)
    for name in wanted or ():
        if name in growth.given:
            raise ParameterError(
                f"{growing.option_of(name)} and --grid {name}=... both set {name}. "
                "Give one of them."
            )
    if output is None:
        why = (
            "without -o: it says which tree is written. Give -o FILE, or leave it out."
        )
        check_idle({"--one-se": one_se}, why)
    written = {"-o": output, "--results": results_path, "--plot": plot_path}
    check_outputs(written | {"--resume": resume}, table_path)
    if plot_path is not None:
        _check_drawing(plot_path, wanted)
    rows = growth.read_encoded(table_path, target, regression, jobs, reporter)
    estimator = growth.estimator(chosen, regression, rows)
    found = _searched_grid(
        estimator,
        rows,
        reporter,
        results_path,
        resume,
        grid=wanted,
        method=method,
        scoring=scoring,
        cv=cv or 10,
        seed=seed or 0,
        n_jobs=jobs,
    )
    _write_results(found, results_path)
    if plot_path is not None:
        _draw(found, plot_path)
    for note in _remarks(found):
        reporter.note(note)
    winner = found.one_se if one_se else found.best
    if output is not None:
        _write_winner(estimator, winner, rows, target, output, reporter)
    if output != STANDARD_STREAM:
        print_result(found.to_dict(), found.lines(_SHOWN), output_format)


def _grid(given: Sequence[str] | None) -> dict[str, list[Any]] | None:
    """Read ``--grid`` such as ``max_depth=2,4,none``."""
    if not given:
        return None
    grid: dict[str, list[Any]] = {}
    for entry in given:
        name, values = split_entry(entry) or (entry, "")
        name = name.strip().replace("-", "_")
        listed = [value.strip() for value in values.split(",")]
        if not name or not all(listed):
            raise ParameterError(
                "--grid must be a parameter, = and the values to try with commas "
                f"between them, such as max_depth=2,4,none. Got {entry!r}."
            )
        if name in grid:
            raise ParameterError(
                f"--grid names {name!r} twice. Give all its values at once."
            )
        grid[name] = [_value(text) for text in listed]
    return grid


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return text


def _check_drawing(path: str, grid: dict[str, list[Any]] | None) -> None:
    """Reject a plot that cannot be drawn, before any work is done."""
    if grid is not None and all(len(values) == 1 for values in grid.values()):
        raise ParameterError(
            "--plot draws scores against parameters of which several values are tried, "
            "and --grid has one of each. Give --grid several, such as max_depth=2,4,8, "
            "or leave --plot out."
        )
    from branchwise.evaluation.plots import require_matplotlib

    known = require_matplotlib().Figure().canvas.get_supported_filetypes()
    if _kind(path) not in known:
        raise ParameterError(
            "--plot must name a file that ends in one of "
            f"{', '.join(sorted(known))}. Got {path!r}."
        )


def _kind(drawing: str) -> str:
    return Path(drawing).suffix.lstrip(".").lower() or "png"


def _searched_grid(
    estimator: Any,
    rows: TrainingTable,
    reporter: Reporter,
    results_path: str | None,
    resume: str | None,
    **options: Any,
) -> SearchResults:
    from branchwise.evaluation.tune import SearchInterrupted, search

    try:
        with reporter.counting("Fitting") as progress:
            return search(
                estimator,
                rows.attributes,
                rows.labels,
                sample_weight=rows.weights,
                state=resume,
                progress=progress,
                **options,
            )
    except SearchInterrupted as stopped:
        _keep_partial(stopped, results_path, resume, reporter)
        raise KeyboardInterrupt from None


def _keep_partial(
    stopped: Any, results_path: str | None, resume: str | None, reporter: Reporter
) -> None:
    done = f"{stopped.done:,} of {counted(stopped.total, 'fit')} done"
    if stopped.results is not None and results_path is not None:
        _write_results(stopped.results, results_path)
        finished = counted(len(stopped.results.trials), "finished candidate")
        reporter.note(f"{finished} written to {results_path}.")
    if resume is None:
        reporter.note(f"{done}; with --resume FILE they would be kept.")
    else:
        reporter.note(f"{done}; the same command goes on from {resume}.")


def _write_results(found: SearchResults, path: str | None) -> None:
    if path is not None:
        with open_output(path) as file:
            file.write(found.to_csv().encode())


def _draw(found: SearchResults, path: str) -> None:
    from branchwise.plot import plot_search

    axes = plot_search(found)
    figure = axes[0].figure
    with open_output(path) as file:
        figure.savefig(file, format=_kind(path))


def _remarks(found: SearchResults) -> Iterator[str]:
    best, smaller = found.best, found.one_se
    yield f"best: {_told(found, best)}."
    if smaller is not best:
        yield (
            f"within one standard error of it, the smallest: {_told(found, smaller)}; "
            "--one-se writes it to -o."
        )


def _told(found: SearchResults, one: Trial) -> str:
    from branchwise.evaluation.trials import said

    values = ", ".join(f"{n}={said(v)}" for n, v in sorted(one.parameters.items()))
    return f"{values} ({found.scoring} {one.mean:.4f}, {one.leaves:,.1f} leaves)"


def _write_winner(
    estimator: Any,
    winner: Trial,
    rows: TrainingTable,
    target: str,
    output: str,
    reporter: Reporter,
) -> None:
    """Fit the best candidate to all rows, and write it."""
    from branchwise.evaluation.tune import fitted

    own = fitted(
        estimator, winner.parameters, rows.attributes, rows.labels, rows.weights
    )
    schema = replace(own.model_.schema, target=target)
    if isinstance(own.model_, Model):
        model: Model | Ensemble = Model(schema, own.model_.tree, own.model_.recipe)
    else:
        model = type(own.model_)(*own.model_.stored._replace(schema=schema))
    write_model(model, output)
    made = f"{size_of(model)} from {counted(rows.n_rows, 'row')}"
    note_written(made, output, reporter)
