"""``branchwise evaluate`` with a table alone: grow, test, compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from branchwise.cli.algorithms import ONLY_WITH, knows, option_of, pruning_method
from branchwise.cli.fold_rows import ReadyRows, read_fold_rows
from branchwise.cli.folds import chosen_algorithm
from branchwise.cli.growing import Algorithm
from branchwise.cli.growth import Growth
from branchwise.cli.models import located
from branchwise.cli.options import Form
from branchwise.cli.streams import Reporter, print_json, print_lines
from branchwise.errors import ParameterError, quoted
from branchwise.table.reading import Reading

if TYPE_CHECKING:
    from branchwise.evaluation import Comparison


@dataclass(frozen=True)
class Dealing:
    """What is compared, and how the rows are dealt."""

    algorithm: Algorithm | None
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
            return [chosen_algorithm(self.algorithm, self.regression).value]
        return list(dict.fromkeys(name.strip() for name in self.compare.split(",")))

    def check(self) -> None:
        """Refuse options that contradict each other."""
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
    dealing: Dealing,
    reading: Reading,
    jobs: int | None,
    form: Form,
    reporter: Reporter,
) -> None:
    """Grow trees from one part of a table, and test them on the other."""
    if target is None:
        raise ParameterError(
            "With a table alone, --target must name the column to predict. (With a "
            "model, give a table after it.)"
        )
    dealing.check()
    _check_options(growth, dealing)
    rows = read_fold_rows(
        path, target, growth, dealing.regression, reading, reporter, jobs
    )
    comparison = _compared(rows, growth, dealing, jobs, reporter)
    if dealing.compare is None:
        for note in _remarks(comparison):
            reporter.note(note)
    alone = dealing.compare is None
    if form is Form.JSON:
        print_json(comparison.document())
    elif alone:
        first, baseline = comparison.evaluations.values()
        score = next(iter(first.scores))
        means = first[score].mean, baseline[score].mean
        print_lines([*first.lines(), "", _beside(score, *means, dealing.regression)])
    else:
        print_lines(comparison.lines())


def _beside(score: str, own: float, other: float, regression: bool) -> str:
    who = "the mean" if regression else "the most frequent class"
    return f"{score} {own:.4f}; that of answering with {who} everywhere is {other:.4f}."


def _remarks(comparison: Comparison) -> list[str]:
    first = next(iter(comparison.evaluations.values()))
    return [f"the 95 % intervals are {first.interval}."]


def _check_options(growth: Growth, dealing: Dealing) -> None:
    """Refuse options that no algorithm knows."""
    algorithms = [Algorithm(n) for n in dealing.names if n in set(Algorithm)]
    if len(algorithms) == 1:
        growth.check(algorithms[0], dealing.regression)
        return
    given = growth.given
    taken = [_taken(_called(one, dealing), given) for one in algorithms]
    for parameter in given:
        if not any(parameter in own for own in taken):
            raise ParameterError(
                f"{option_of(parameter)} has no effect: none of {quoted(dealing.names)}"
                " knows it. Leave it out, or compare an algorithm that does."
            )


def _taken(called: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that have an effect on an algorithm."""
    own = {name: value for name, value in given.items() if knows(called, name)}
    method = pruning_method(called, own)
    return {n: v for n, v in own.items() if ONLY_WITH.get(n, method) is method}


def _called(algorithm: Algorithm, dealing: Dealing) -> str:
    return "cart --regression" if dealing.regression else algorithm.value


def _compared(
    rows: ReadyRows,
    growth: Growth,
    dealing: Dealing,
    jobs: int | None,
    reporter: Reporter,
) -> Comparison:
    from branchwise.evaluation import compare

    estimators = {
        name: _estimator(name, rows, growth, dealing) for name in dealing.names
    }
    with reporter.counting("Fitting") as progress, located(rows.file, only_one=False):
        return compare(
            estimators,
            rows.table,
            rows.labels,
            cv=dealing.cv or 10,
            repeats=dealing.repeats or 1,
            hold_out=dealing.hold_out,
            seed=dealing.seed or 0,
            sample_weight=rows.weights,
            n_jobs=jobs,
            progress=progress,
        )


def _estimator(name: str, rows: ReadyRows, growth: Growth, dealing: Dealing) -> Any:
    from branchwise.evaluation import contender

    if name not in set(Algorithm):
        return contender(name, dealing.regression)
    own = growth.parameters(rows.labels)
    if dealing.compare is not None:
        own = _taken(_called(Algorithm(name), dealing), own)
    return contender(name, dealing.regression, categories=rows.categories, **own)
