"""Growing options of subcommands other than fit, and cross-validation of tables.

``growth_options`` are the growing options of ``branchwise fit`` for other
subcommands; ``evaluate_table`` is ``branchwise evaluate`` for a table without a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from branchwise.cli.fit import roles_of
from branchwise.cli.options.algorithm import (
    ALGORITHMS,
    chosen_algorithm,
    full_name,
    given_recipe,
    has_effect,
    has_parameter,
    pruning_method,
    read_costs,
)
from branchwise.cli.options.declaration import leaving_out
from branchwise.cli.options.growing import given_parameters, growing_options, option_of
from branchwise.cli.options.shared import OutputFormat, read_na_values
from branchwise.cli.support.models import located
from branchwise.cli.support.streams import Reporter, print_json, print_lines
from branchwise.cli.support.training import Roles, by_class, read_training
from branchwise.data.encoded_table import EncodedTable
from branchwise.data.target import learn_target
from branchwise.errors import ParameterError, quoted
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile

if TYPE_CHECKING:
    from branchwise.evaluation import Comparison

#: What the columns are is not a parameter of the tree either, but is passed on.
OF_COLUMNS = ("categorical", "numeric", "ignore", "missing", "categories", "weight")


@dataclass(frozen=True)
class Growth:
    """The growing and reading options that were given."""

    options: Mapping[str, Any]

    def of_columns(self, name: str) -> Any:
        """Return an option about the columns."""
        return self.options[name]

    def roles(self, file: TableFile, target: str, regression: bool) -> Roles:
        """Return the role of every column."""
        named = {"target": target, "regression": regression}
        return roles_of(file, {**self.options, **named})

    @property
    def given(self) -> dict[str, Any]:
        """The parameters that were given, by the names of the estimators."""
        return given_parameters(self.options)

    def check(self, algorithm: str, regression: bool) -> None:
        """Reject options that the algorithm does not have."""
        given_recipe(algorithm, regression, self.given)

    def parameters(self, labels: Any, algorithm: str) -> dict[str, Any]:
        """Return the parameters for an estimator, classes by their names.

        Parameters
        ----------
        labels : pyarrow column
            The target, which tells the classes.
        algorithm : str
            The algorithm; parameters that it does not have are left out.
        """
        given = self.given
        if given.get("pruning") == "none":
            del given["pruning"]
            given["prune"] = False
        given = {n: v for n, v in given.items() if has_parameter(algorithm, n)}
        for name in ("class_weight", "priors"):
            read = by_class(option_of(name), given.get(name))
            if callable(read):
                given[name] = read(learn_target(labels)[0])
        if "costs" in given:
            given["costs"] = read_costs(given["costs"], labels)
        return given


#: The growing and reading options of subcommands other than fit.
growth_options = leaving_out(growing_options, "n_jobs", "validation", then=Growth)


@dataclass(frozen=True)
class ReadyRows:
    """A table that is encoded, its target and its weights."""

    table: EncodedTable
    labels: Any
    weights: NDArray[np.float64] | None
    categories: dict[str, list[str]] | None
    file: TableFile


def read_fold_rows(
    path: str,
    target: str,
    growth: Growth,
    regression: bool,
    reading: Reading,
    reporter: Reporter,
    threads: int | None,
) -> ReadyRows:
    """Read and encode a table, by the options."""
    with reporter.reading(path):
        file = TableFile(path, reading)
        roles = growth.roles(file, target, regression)
        na_values = read_na_values(growth.of_columns("missing"))
        rows = read_training(file, roles, na_values)
        with located(file):
            encoded = EncodedTable(rows.attributes, n_jobs=threads)
    rows.remark(reading, reporter)
    categories = roles.categories or None
    return ReadyRows(encoded, rows.labels, rows.weights, categories, file)


@dataclass(frozen=True)
class FoldOptions:
    """The algorithms to compare, and the folds."""

    algorithm: str | None
    regression: bool
    compare: str | None
    cv: int | None
    repeats: int | None
    hold_out: float | None
    seed: int | None

    @property
    def names(self) -> list[str]:
        """The algorithms, in order."""
        if self.compare is None:
            return [chosen_algorithm(self.algorithm, self.regression)]
        return list(dict.fromkeys(name.strip() for name in self.compare.split(",")))

    def check(self) -> None:
        """Reject options that contradict each other."""
        if self.compare is not None and self.algorithm is not None:
            raise ParameterError(
                "--algorithm and --compare both name algorithms. Give one of them."
            )
        if self.hold_out is not None:
            for name, value in (("--cv", self.cv), ("--repeats", self.repeats)):
                if value is not None:
                    raise ParameterError(
                        f"{name} has no effect with --hold-out. Give one of them."
                    )
            if not 0 < self.hold_out < 1:
                raise ParameterError(
                    "--hold-out must be a share between 0 and 1, such as 0.3. Got "
                    f"{self.hold_out:g}."
                )
        if self.compare is not None:
            self._check_names()

    def _check_names(self) -> None:
        trees = ("cart",) if self.regression else ("id3", "c4.5", "cart")
        known = (*trees, "sklearn", "baseline")
        unknown = [name for name in self.names if name not in known]
        if unknown:
            raise ParameterError(
                f"--compare names {quoted(unknown)}. The algorithms are "
                f"{quoted(known)}" + (" with --regression." if self.regression else ".")
            )


def evaluate_table(
    path: str,
    target: str | None,
    growth: Growth,
    folds: FoldOptions,
    reading: Reading,
    jobs: int | None,
    output_format: OutputFormat,
    reporter: Reporter,
) -> None:
    """Cross-validate algorithms on a table, or test them on held-out rows."""
    if target is None:
        raise ParameterError(
            "With a table alone, --target must name the column to predict. (With a "
            "model, give a table after it.)"
        )
    folds.check()
    _check_options(growth, folds)
    rows = read_fold_rows(
        path, target, growth, folds.regression, reading, reporter, jobs
    )
    comparison = _compared(rows, growth, folds, jobs, reporter)
    if folds.compare is None:
        for note in _remarks(comparison):
            reporter.note(note)
    alone = folds.compare is None
    if output_format is OutputFormat.JSON:
        print_json(comparison.document())
    elif alone:
        first, baseline = comparison.evaluations.values()
        score = next(iter(first.scores))
        means = first[score].mean, baseline[score].mean
        print_lines([*first.lines(), "", _beside(score, *means, folds.regression)])
    else:
        print_lines(comparison.lines())


def _beside(score: str, own: float, other: float, regression: bool) -> str:
    baseline = "the mean" if regression else "the most frequent class"
    return f"{score} {own:.4f}; always predicting {baseline}: {other:.4f}."


def _remarks(comparison: Comparison) -> list[str]:
    first = next(iter(comparison.evaluations.values()))
    return [f"the 95 % intervals are {first.interval}."]


def _check_options(growth: Growth, folds: FoldOptions) -> None:
    """Reject options that no algorithm has."""
    algorithms = [name for name in folds.names if name in ALGORITHMS]
    if len(algorithms) == 1:
        growth.check(algorithms[0], folds.regression)
        return
    given = growth.given
    taken = [_taken(full_name(one, folds.regression), given) for one in algorithms]
    for parameter in given:
        if not any(parameter in own for own in taken):
            raise ParameterError(
                f"{option_of(parameter)} has no effect: none of {quoted(folds.names)}"
                " has it. Leave it out, or compare an algorithm that has it."
            )


def _taken(called: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that have an effect on an algorithm."""
    own = {name: value for name, value in given.items() if has_parameter(called, name)}
    values = own | {"pruning": pruning_method(called, own)}
    return {n: v for n, v in own.items() if has_effect(n, values)}


def _compared(
    rows: ReadyRows,
    growth: Growth,
    folds: FoldOptions,
    jobs: int | None,
    reporter: Reporter,
) -> Comparison:
    from branchwise.evaluation import compare

    estimators = {name: _estimator(name, rows, growth, folds) for name in folds.names}
    with reporter.counting("Fitting") as progress, located(rows.file, only_one=False):
        return compare(
            estimators,
            rows.table,
            rows.labels,
            cv=folds.cv or 10,
            repeats=folds.repeats or 1,
            hold_out=folds.hold_out,
            seed=folds.seed or 0,
            sample_weight=rows.weights,
            n_jobs=jobs,
            progress=progress,
        )


def _estimator(name: str, rows: ReadyRows, growth: Growth, folds: FoldOptions) -> Any:
    from branchwise.evaluation import candidate

    if name not in ALGORITHMS:
        return candidate(name, folds.regression)
    called = full_name(name, folds.regression)
    own = growth.parameters(rows.labels, called)
    if folds.compare is not None:
        own = _taken(called, own)
    return candidate(name, folds.regression, categories=rows.categories, **own)
