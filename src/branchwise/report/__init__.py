"""HTML reports on a table and its tree: data, rules, importances, scores."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from branchwise.data.table_schema import Schema
from branchwise.errors import BranchwiseError, check_seed
from branchwise.estimators import C45Classifier
from branchwise.estimators.ensemble import EnsembleEstimator
from branchwise.estimators.fitted import FittedEstimator
from branchwise.model import Model
from branchwise.render.picture import class_colours
from branchwise.report.ensemble_report import EnsembleReport, ensemble_report
from branchwise.report.inputs import (
    Source,
    described,
    open_source,
    plan_for,
    warnings_of,
)
from branchwise.report.labelled import SchemaLabels
from branchwise.report.page import WrittenReport, changed, page, reproduction
from branchwise.report.testing import (
    evaluation_of,
    explained_rows,
    fold_tests_of,
    importances,
    learning_curve,
    pruning_curve,
    shap_section,
)
from branchwise.steps.result import Steps
from branchwise.text.conditions import phrase
from branchwise.text.labels import read_labels, shown_schema

__all__ = ["EnsembleReport", "Report", "make_report"]


@dataclass(frozen=True, repr=False)
class Report(WrittenReport):
    """A report on a table and its tree.

    Attributes
    ----------
    sections : dict
        All findings as plain values, ready for ``json.dumps``: "title", "data",
        "warnings", "model", "rules", "root_split", "evaluation", "importances",
        "shap", "pruning", "learning" and "reproduce".
    model : Model
        The tree, grown from all rows.
    steps : Steps or None
        How its first split was found.
    """

    sections: dict[str, Any]
    model: Model
    steps: Steps | None

    def to_html(self) -> str:
        """Return the report as one HTML page that needs nothing else."""
        return page(self.sections, self.model, self.steps)


#: The most rules of a report, sorted by coverage.
_TOLD_RULES = 40
#: Values of a list in a rule, before the rest is only counted.
_RULE_VALUES = 12
#: The first split is worked out up to this many rows.
_WORKED_ROWS = 200_000


def make_report(
    X: object,
    y: object,
    estimator: object = None,
    *,
    test: tuple[object, object] | None = None,
    cv: int | None = None,
    hold_out: float | None = None,
    seed: int = 0,
    sample_weight: object = None,
    title: str | None = None,
    target_name: str | None = None,
    validation: tuple[object, object] | None = None,
    test_name: str = "the test table",
    commands: Sequence[str] = (),
    reads: tuple[str, str] | None = None,
    files: Sequence[dict[str, Any]] = (),
    progress: Callable[[str], None] | None = None,
    labels: object = None,
    as_read: Callable[[Schema], Schema] | None = None,
) -> Report | EnsembleReport:
    """Grow a tree, or an ensemble, and report on it, and on the table.

    Parameters
    ----------
    X, y : table and sequence
        The rows, as for ``fit``.
    estimator : estimator or None
        How the tree is grown; None is ``C45Classifier()``. Estimators of forests and of
        boosting have sections of their own.
    test : pair of table and sequence, or None
        Other rows to test the tree with.
    cv : int or None
        In place of other rows: the number of folds.
    hold_out : float or None
        In place of either: the share of the rows to test with. Without any of the
        three there are 10 folds, or for more than 50,000 rows (10,000 where numbers
        are predicted) a part of 30 %.
    seed : int, default=0
        Random seed of the folds: the same seed gives the same report.
    sample_weight : sequence of float or None
        The weights of the rows, for growing; scores count rows.
    title : str or None
        The heading of the page.
    target_name : str or None
        What is predicted; by default the name of the series y.
    validation : pair of table and sequence, or None
        The rows of ``pruning="reduced-error"``.
    test_name : str
        What to call the rows of ``test``.
    commands : sequence of str
        Commands that make the report again.
    reads : pair of str or None
        How the table is read in Python, ``read_table(...)``, and what ``fit`` is then
        given, in which it is called ``table``.
    files : sequence of dict
        Names, sizes and hashes of the files that the rows came from:
        ``branchwise.report.page.file_mark``.
    progress : callable or None
        Called with a description of the current step.
    labels : dict, path or None
        Titles, units and words for values on the page, as ``Model.with_labels`` takes
        them. An ``order`` of values is that of ``order`` of the estimator. ``sections``
        keep the names and values of the table.
    as_read : callable or None
        Adds to a schema what the file of the table tells: titles and units, and how
        numbers are written.

    Returns
    -------
    Report or EnsembleReport
        ``save("report.html")`` writes the page; ``sections`` has the findings.

    Examples
    --------
    >>> from branchwise import datasets
    >>> from branchwise.report import make_report
    >>> iris = datasets.load("iris")
    >>> report = make_report(iris.X, iris.y, cv=5)
    >>> round(report.sections["evaluation"]["scores"]["accuracy"]["mean"], 3)
    0.927
    """
    say = progress or (lambda _: None)
    chosen = C45Classifier() if estimator is None else estimator
    given = None if labels is None else read_labels(labels)
    if given is not None:
        chosen = _with_orders(chosen, given)
    source = open_source(chosen, X, y, test, sample_weight, target_name, validation)
    source = replace(
        source, labels=SchemaLabels(given, _named_in_python(labels), as_read)
    )
    seed = check_seed(seed)
    plan = plan_for(source, cv, hold_out, seed, test_name)
    if isinstance(chosen, EnsembleEstimator):
        made = (list(commands), list(files), reads)
        return ensemble_report(source, plan, seed, title, made, say)
    say("Growing the tree")
    model = source.grown()
    model = model.with_schema(source.labels.of(model.schema))
    steps, why_not = _worked(source, model)
    say("Looking at the columns")
    sections: dict[str, Any] = {
        "title": title,
        "data": described(source, model.schema),
        "warnings": warnings_of(source),
        "model": model_section(source, model),
        "rules": rules_section(model),
        "root_split": {"left_out": why_not} | root_section(steps, model.schema),
    }
    fold_tests = fold_tests_of(source, model, plan, say)
    folds = [fold_test.tested() for fold_test in fold_tests]
    sections["evaluation"] = evaluation_of(source, model, plan, folds)
    sections["importances"] = importances(source, model, fold_tests, seed, say)
    say("Shapley values")
    sections["shap"] = shap_section(explained_rows(source, model, seed))
    sections["pruning"] = pruning_curve(source, model, fold_tests)
    sections["learning"] = learning_curve(source, model, seed, say)
    sections["reproduce"] = reproduction(
        source, model, seed, list(commands), list(files), reads
    )
    return Report(sections, model, steps)


def _with_orders(estimator: object, labels: Mapping[str, Mapping[str, Any]]) -> object:
    """Return an estimator that has the orders of values of the labels, too."""
    orders = {
        name: label["order"] for name, label in labels.items() if "order" in label
    }
    if not orders or not isinstance(estimator, FittedEstimator):
        return estimator
    given = estimator.get_params(deep=False)
    given["order"] = {**orders, **(given["order"] or {})}
    return type(estimator)(**given)


def _named_in_python(labels: object) -> str:
    """Return how Python names the file that labels are in; nothing for a dictionary."""
    is_path = isinstance(labels, (str, os.PathLike))
    return repr(Path(labels).name) if is_path else ""  # type: ignore[arg-type]


def _worked(source: Source, model: Model) -> tuple[Steps | None, str]:
    """Work out the split of the root, or say why it is left out."""
    rows = source.rows
    if not model.tree.n_children[0]:
        return None, "The tree is a single leaf: every row gets the same prediction."
    if len(rows) > _WORKED_ROWS:
        return None, (
            f"With more than {_WORKED_ROWS:,} rows it is left out; branchwise steps "
            "works it out."
        )
    if source.estimator.validation_fraction is not None:
        return None, (
            "Some rows were held out for pruning, so that the tree was grown "
            "from the others only; branchwise steps needs just those."
        )
    try:
        return model.steps(rows.table, rows.labels, 0, source.weights_of()), ""
    except BranchwiseError as error:
        return None, str(error)


def root_section(steps: Steps | None, schema: Schema) -> dict[str, Any]:
    """Return the best split of every column at the root, the best first."""
    if steps is None:
        return {}
    # The worked solution has the titles of columns, the findings their names.
    pairs = zip(shown_schema(schema).names, schema.names, strict=True)
    name_of: dict[str | None, str] = dict(pairs)
    root = steps.nodes[0]
    able = [one for one in root.candidates if one.score is not None]
    able.sort(key=lambda one: (one.column != root.column, -(one.score or 0.0)))
    return {
        "criterion": steps.bars.criterion,
        "column": name_of.get(root.column),
        "as_chosen": root.as_chosen,
        "candidates": [
            {
                "column": name_of[one.column],
                "score": one.score,
                "gain": one.gain,
                "out": None if one.out is None else str(one.out),
            }
            for one in able
        ],
    }


def model_section(source: Source, model: Model) -> dict[str, Any]:
    """Return the recipe and the size of a tree."""
    tree, recipe = model.tree, model.recipe
    parameters = {}
    for one in fields(recipe):
        value = getattr(recipe, one.name)
        if one.init and one.name not in ("algorithm", "costs"):
            parameters[one.name] = value if not callable(value) else value.__name__
    return {
        "algorithm": recipe.algorithm,
        "predicts": "numbers" if source.numbers else "classes",
        "parameters": parameters,
        "chosen": changed(source.estimator),
        "costs": None if recipe.costs is None else [list(row) for row in recipe.costs],
        "nodes": len(tree),
        "leaves": tree.n_leaves,
        "depth": tree.max_depth,
        "used_columns": [model.schema.columns[at].name for at in tree.used_columns],
        "text": str(model),
    }


def rules_section(model: Model) -> dict[str, Any]:
    """Return the rules of a tree in words, sorted by coverage."""
    rules = model.rules(simplify=True).sort_by("coverage")
    shown = rules[:_TOLD_RULES]
    classes = model.schema.classes
    colours = class_colours(model.tree.weights[0].tolist()) if classes else []
    colour_of = dict(zip(classes, colours, strict=True))
    return {
        "rules": [
            {
                "sentence": rule.sentence(),
                "conditions": [
                    phrase(c, _RULE_VALUES, typeset=True) for c in rule.conditions
                ],
                "prediction": rule.label,
                "deviation": rule.deviation,
                "reason": rule.reason,
                "cases": rule.n,
                "coverage": rule.coverage,
                "confidence": rule.confidence,
                "low": rule.low,
                "high": rule.high,
                "colour": colour_of.get(rule.label),
                "node": rule.node,
            }
            for rule in shown
        ],
        "weighted": model.tree.is_weighted,
        "of": len(rules),
        "covered": sum(rule.coverage or 0.0 for rule in shown),
        "note": rules.note,
    }
