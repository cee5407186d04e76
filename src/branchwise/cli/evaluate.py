"""``branchwise evaluate``: scores of a model, or cross-validation of algorithms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from branchwise.cli import options
from branchwise.cli.options import (
    Page,
    argument,
    check_idle,
    check_share,
    growing,
    takes,
)
from branchwise.cli.options.engine import check_no_address
from branchwise.cli.support import Reporter
from branchwise.cli.support.models import open_any
from branchwise.cli.support.rows import (
    Truth,
    check_two_streams,
    located,
    note_cells,
    print_result,
    read_for_model,
    read_truth,
    true_column,
)
from branchwise.cli.support.training import Growth, TrainingTable, growth_options
from branchwise.errors import ParameterError, quoted
from branchwise.model import Model

if TYPE_CHECKING:
    from branchwise.ensemble.ensemble import Ensemble
    from branchwise.evaluation import Comparison
    from branchwise.evaluation.model_scores import ClassScores, NumberScores

_PAGE = Page("evaluate")
#: Options of columns that a finished model does not have.
_OF_COLUMNS = ("categorical", "numeric", "ignore", "categories", "order", "weight")


@dataclass(frozen=True)
class FoldOptions:
    """The algorithms to compare, and the folds."""

    algorithm: str | None = growing.EVALUATED_ALGORITHM
    regression: bool = growing.EVALUATED_REGRESSION
    compare: str | None = _PAGE.option("--compare")
    cv: int | None = growing.FOLDS
    repeats: int | None = growing.REPEATS
    hold_out: float | None = _PAGE.option("--hold-out")
    seed: int | None = growing.SEED
    jobs: int | None = options.SHARED.option("--jobs")

    @property
    def given(self) -> list[str]:
        """The parameters that were given."""
        unset = (None, False)
        return [n for n, v in vars(self).items() if not any(v is u for u in unset)]

    @property
    def names(self) -> list[str]:
        """The algorithms, in order."""
        if self.compare is None:
            return [growing.chosen_algorithm(self.algorithm, self.regression)]
        return list(dict.fromkeys(name.strip() for name in self.compare.split(",")))

    def check(self) -> None:
        """Reject options that contradict each other."""
        if self.compare is not None and self.algorithm is not None:
            raise ParameterError(
                "--algorithm and --compare both name algorithms. Give one of them."
            )
        if self.hold_out is not None:
            why = "with --hold-out. Give one of them."
            check_idle({"--cv": self.cv, "--repeats": self.repeats}, why)
        check_share("--hold-out", self.hold_out)
        trees = (*growing.ALGORITHMS, *growing.ENSEMBLES)
        if self.regression:
            trees = ("cart", "forest", "gradient")
        known = (*trees, "sklearn", "baseline")
        unknown = [name for name in self.names if name not in known]
        if self.compare is not None and unknown:
            raise ParameterError(
                f"--compare names {quoted(unknown)}. The algorithms are "
                f"{quoted(known, 9)}"
                + (" with --regression." if self.regression else ".")
            )


@takes(folds=FoldOptions, growth=growth_options)
def evaluate(
    first_path: str = argument(
        "MODEL|TABLE",
        "A model file and then a table, or a table alone; - is standard input.",
    ),
    table_path: str | None = argument(
        "TABLE", "The rows to test the model on.", default=None
    ),
    target: str | None = _PAGE.option("--target"),
    output_format: str = options.FORMAT,
    quiet: bool = options.QUIET,
    *,
    folds: FoldOptions,
    growth: Growth,
) -> None:
    """Score a model on labelled rows, or cross-validate an algorithm on a table."""
    reporter = Reporter(quiet)
    if table_path is None:
        found = _evaluate_table(first_path, target, growth, folds, reporter)
    else:
        names = [growing.option_of(name) for name in (*folds.given, *growth.given)]
        names += [f"--{name}" for name in _OF_COLUMNS if growth.options[name]]
        check_idle(
            dict.fromkeys(names, True),
            "on a model that is grown already. Give a table alone to grow trees and "
            "test them, or leave it out.",
        )
        check_two_streams(MODEL=first_path, TABLE=table_path)
        check_no_address("evaluate", [table_path])
        model = open_any(first_path)
        found = _evaluate_model(model, table_path, target, growth, reporter)
    print_result(*found, output_format)


#: A result in plain values, and the lines that print it.
_Result = tuple[dict[str, Any], list[str]]


def _evaluate_model(
    model: Model | Ensemble,
    path: str,
    target: str | None,
    growth: Growth,
    reporter: Reporter,
) -> _Result:
    with reporter.reading(path) as say:
        file = growth.open(path)
        target = true_column(model.schema, target, file)
        truth = read_truth(model, file, target)
        named_model, table = read_for_model(
            model, file, reporter, [target], only_used=True
        )
        say("Predicting")
        with located(file):
            rows = named_model.encoded(table)
        check = named_model.check_table(rows)
        scores = _scores(truth, named_model, rows)
    note_cells(check, reporter)
    for note in _notes(truth, scores, f"column {target!r}", file.label):
        reporter.note(note)
    document = {
        "rows": scores.rows,
        f"rows_without_{truth.noun}": truth.n_without,
        **scores.to_dict(),
        "columns": check.to_dict()["columns"],
    }
    if truth.labels:
        document["unknown_classes"] = list(truth.unknown)
    return document, scores.lines()


def _scores(
    truth: Truth, model: Model | Ensemble, rows: Any
) -> ClassScores | NumberScores:
    """Compare the predictions for the rows whose target is known."""
    from branchwise.evaluation.metrics import class_codes
    from branchwise.evaluation.model_scores import ClassScores, NumberScores
    from branchwise.text.label_words import target_unit

    true, predicted = truth.values[truth.known], model.predict(rows)[truth.known]
    if not truth.labels:
        unit = target_unit(model.schema)
        return NumberScores.compare(true, predicted.astype(np.float64), unit)
    codes = class_codes(predicted, model.schema.classes)
    probabilities = model.predict_proba(rows)[truth.known]
    known = truth.labels, model.schema
    return ClassScores.compare(true, codes, probabilities, *known)


def _notes(
    truth: Truth, scores: ClassScores | NumberScores, column: str, label: str
) -> Iterator[str]:
    """Yield notes about rows that are left out, unknown classes, and a constant."""
    if truth.n_without:
        yield (
            f"rows without a {truth.noun} in {column} are left out: "
            f"{truth.n_without:,} of {len(truth.known):,} in {label}."
        )
    if truth.unknown:
        first = len(truth.labels) - len(truth.unknown)
        yield (
            f"{column} of {label} has classes that the tree does not know and never "
            f"predicts: {quoted(truth.unknown)}. These rows count as errors: "
            f"{int((truth.values >= first).sum()):,}."
        )
    if not truth.labels and scores.to_dict()["r2"] is None:
        yield (
            f"{column} of {label} has the same number everywhere, so that R^2 is not "
            "defined."
        )


def _evaluate_table(
    path: str,
    target: str | None,
    growth: Growth,
    folds: FoldOptions,
    reporter: Reporter,
) -> _Result:
    """Cross-validate algorithms on a table, or test them on held-out rows."""
    check_idle(
        {"--unseen-policy": growth.options["unseen_policy"]},
        "here: the categories of all folds are those of the whole table. Leave it out.",
    )
    if target is None:
        raise ParameterError(
            "With a table alone, --target must name the column to predict. (With a "
            "model, give a table after it.)"
        )
    folds.check()
    _check_options(growth, folds)
    rows = growth.read_encoded(path, target, folds.regression, folds.jobs, reporter)
    comparison = _compared(rows, growth, folds, reporter)
    if folds.compare is not None:
        return comparison.to_dict(), comparison.lines()
    first, baseline = comparison.evaluations.values()
    reporter.note(f"the 95 % intervals are {first.interval}.")
    always = "the mean" if folds.regression else "the most frequent class"
    score = next(iter(first.scores))
    own, other = first[score].mean, baseline[score].mean
    beside = f"{score} {own:.4f}; always predicting {always}: {other:.4f}."
    return comparison.to_dict(), [*first.lines(), "", beside]


def _check_options(growth: Growth, folds: FoldOptions) -> None:
    """Reject options that no algorithm has."""
    ours = (*growing.ALGORITHMS, *growing.ENSEMBLES)
    algorithms = [name for name in folds.names if name in ours]
    if len(algorithms) == 1:
        growth.check(algorithms[0], folds.regression)
        return
    given = growth.given
    taken = [
        growing.effective_parameters(growing.full_name(one, folds.regression), given)
        for one in algorithms
    ]
    for parameter in given:
        if not any(parameter in own for own in taken):
            raise ParameterError(
                f"{growing.option_of(parameter)} has no effect: none of "
                f"{quoted(folds.names)} has it. Leave it out, or "
                "compare an algorithm that has it."
            )


def _compared(
    rows: TrainingTable, growth: Growth, folds: FoldOptions, reporter: Reporter
) -> Comparison:
    from branchwise.evaluation import compare

    several = folds.compare is not None
    estimators = {
        name: growth.estimator(name, folds.regression, rows, only_effective=several)
        for name in folds.names
    }
    with reporter.counting("Fitting") as progress:
        return compare(
            estimators,
            rows.attributes,
            rows.labels,
            cv=folds.cv or 10,
            repeats=folds.repeats or 1,
            hold_out=folds.hold_out,
            seed=folds.seed or 0,
            sample_weight=rows.weights,
            n_jobs=folds.jobs,
            progress=progress,
        )
