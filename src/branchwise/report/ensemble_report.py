"""Reports on forests, boosting and rules: predictions, number of trees, columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.ensemble.ensemble import Ensemble
from branchwise.ensemble.reading.best_tree import BestTree
from branchwise.ensemble.reading.forest_page import (
    Section,
    error_section,
    importances_section,
    impurity_chart,
    picture_on_paper,
    rules_section,
    viewer_page,
)
from branchwise.ensemble.reading.forest_rules import ForestRules
from branchwise.ensemble.reading.importances import Importances
from branchwise.ensemble.reading.rules_page import rule_sections
from branchwise.ensemble.reading.voting_rules import VotingRules
from branchwise.errors import BranchwiseError, counted
from branchwise.estimators.boosting import BoostingEstimator
from branchwise.evaluation.cross_validate import fitted_to, predicted_fold
from branchwise.evaluation.metrics import Fold
from branchwise.report.figures import MOST_BARS
from branchwise.report.inputs import Plan, Source, described, warnings_of
from branchwise.report.page import WrittenReport, changed, ensemble_page, reproduction
from branchwise.report.testing import (
    Say,
    evaluation_of,
    explained_rows,
    quiet_splits,
    shap_section,
)
from branchwise.shap.shap_values import ShapValues
from branchwise.text.blocks import Paragraph, Table
from branchwise.text.labels import titles_of


@dataclass(frozen=True, repr=False)
class EnsembleReport(WrittenReport):
    """A report on a table and its forest, its boosted trees, or its rules.

    Attributes
    ----------
    sections : dict
        All findings as plain values, ready for ``json.dumps``: "title", "data",
        "warnings", "model", "evaluation", "error_by_trees", "importances", "rules",
        "best_tree", "shap" and "reproduce".
    model : Ensemble
        The trees, grown from all rows.
    """

    sections: dict[str, Any]
    model: Ensemble
    noun: str
    readings: Readings

    def to_html(self) -> str:
        """Return the report as one HTML page that needs nothing else."""
        best = self.readings.best
        drawn = {}
        if best is not None:
            drawn = {"viewer": viewer_page(best), "picture": picture_on_paper(best)}
        own = list(
            self.readings.own_sections(self.sections["error_by_trees"], self.model)
        )
        schema = self.model.schema
        return ensemble_page(
            self.sections, schema, self.noun, own_sections=own, **drawn
        )


@dataclass(frozen=True)
class Readings:
    """What is read from an ensemble; None where it does not have it.

    ``why_no_shap`` tells why there are no Shapley values.
    """

    importances: Importances | None
    rules: ForestRules | VotingRules | None
    best: BestTree | None
    shap: ShapValues | None
    why_no_shap: str = ""

    @classmethod
    def of(cls, source: Source, ensemble: Ensemble, seed: int, say: Say) -> Readings:
        """Read a forest out of bag, and the Shapley values of some rows."""
        say("Shapley values")
        values, why_not = None, ""
        try:
            values = explained_rows(source, ensemble, seed)
        except BranchwiseError as error:
            why_not = str(error)
        if ensemble.recipe.method == "rules":
            return cls(None, ensemble.voting_rules(), None, values, why_not)
        samples = ensemble.samples
        if ensemble.recipe.method != "forest" or samples is None or samples.takes_all:
            return cls(None, None, None, values, why_not)
        say("Importances")
        importances = ensemble.importances()
        say("Rules, and the best tree")
        return cls(importances, ensemble.rules(), ensemble.best_tree(), values, why_not)

    def own_sections(
        self, errors: dict[str, Any], ensemble: Ensemble
    ) -> Iterator[Section]:
        """Yield the sections of the page that ensembles have alone."""
        if isinstance(self.rules, VotingRules):
            yield from rule_sections(ensemble, self.rules)
            yield _by_impurity(ensemble)
            yield self._shapley()
            return
        yield error_section(
            np.array([np.nan if e is None else e for e in errors["errors"]]),
            ensemble.is_regression,
            errors["rows"],
            errors["of"],
        )
        if self.importances is not None:
            yield importances_section(self.importances)
        else:
            yield _by_impurity(ensemble)
        yield self._shapley()
        if self.rules is not None:
            yield rules_section(self.rules)
        if self.best is not None:
            summary = Paragraph(self.best.summary)
            yield Section("tree", "The tree nearest to it", (), [summary])

    def _shapley(self) -> Section:
        title = "What columns contribute"
        if self.shap is None:
            return Section("shap", title, (), [Paragraph(self.why_no_shap)])
        told = (
            f"The mean size of the Shapley values of {counted(len(self.shap), 'row')}: "
            "how far a column moves the prediction from what it is without it."
        )
        chart = self.shap.figure().to_svg()
        table = [block for block in self.shap.blocks() if isinstance(block, Table)]
        return Section("shap", title, [(chart, told)], (), table)


def _by_impurity(ensemble: Ensemble) -> Section:
    shares = dict(
        zip(ensemble.schema.names, ensemble.feature_importances.tolist(), strict=True)
    )
    names = sorted(shares, key=lambda name: -shares[name])[:MOST_BARS]
    titles = titles_of(ensemble.schema, names)
    chart = impurity_chart(titles, [shares[n] for n in names])
    caption = "On training rows, by impurity."
    return Section("importances", "Which columns matter", [(chart, caption)])


def ensemble_report(
    source: Source,
    plan: Plan,
    seed: int,
    title: str | None,
    made: tuple[list[str], list[dict[str, Any]], tuple[str, str] | None],
    say: Say,
) -> EnsembleReport:
    """Grow an ensemble and report on it; ``made`` is how to make the report again."""
    rows = source.rows
    say("Growing the trees")
    everything = np.arange(len(rows))
    fitted, _ = fitted_to(source.estimator, rows.table, rows, everything)
    ensemble = _named(fitted.model_, source)
    say("Looking at the columns")
    sections: dict[str, Any] = {
        "title": title,
        "data": described(source, ensemble.schema),
        "warnings": warnings_of(source),
        "model": model_section(source, ensemble),
    }
    tests = _tests(source, fitted, plan, say)
    folds = [fold for fold, _ in tests]
    sections["evaluation"] = evaluation_of(source, ensemble, plan, folds)
    sections["error_by_trees"] = _errors(ensemble, [errors for _, errors in tests])
    readings = Readings.of(source, ensemble, seed, say)
    sections |= _read(readings, ensemble)
    commands, files, reads = made
    sections["reproduce"] = reproduction(source, ensemble, seed, commands, files, reads)
    return EnsembleReport(sections, ensemble, source.noun, readings)


def _named(ensemble: Ensemble, source: Source) -> Ensemble:
    """Return the ensemble with the name of what it predicts, and with labels."""
    schema = source.labels.of(replace(ensemble.schema, target=source.target))
    stored = ensemble.stored._replace(schema=schema)
    return Ensemble(*stored, samples=ensemble.samples)


def _tests(
    source: Source, fitted: Any, plan: Plan, say: Say
) -> list[tuple[Fold, Floats | None]]:
    """Test ensembles on rows that they have not seen; of boosting, round by round."""
    rows, found = source.rows, []
    if source.test is not None:
        everything = np.arange(len(source.test))
        return [_tested(fitted, source.test, everything, len(rows))]
    splits = quiet_splits(plan.assignment, rows)
    for at, (training, testing) in enumerate(splits):
        say(f"Testing: {source.noun} {at + 1} of {len(splits)}")
        own, _ = fitted_to(source.estimator, rows.table, rows, training)
        found.append(_tested(own, rows.take(testing), testing, len(training)))
    return found


def _tested(
    fitted: Any, rows: Any, testing: Ints, n_training: int
) -> tuple[Fold, Floats | None]:
    fold = predicted_fold(fitted, rows.table, testing, rows.classes, n_training)
    if not isinstance(fitted, BoostingEstimator):
        return fold, None
    errors = [
        float(np.mean(stage != rows.labels))
        if rows.classes
        else float(np.mean((stage - rows.target) ** 2))
        for stage in fitted.staged_predict(rows.table)
    ]
    return fold, np.array(errors)


def _errors(ensemble: Ensemble, by_fold: Sequence[Floats | None]) -> dict[str, Any]:
    """Return the error by the number of trees out of bag, or of rounds on test rows."""
    samples = ensemble.samples
    found, rows, what = np.array([]), "out of bag", "tree"
    if ensemble.recipe.method == "rules":
        what = "rule"  # they decide together
    elif ensemble.recipe.method != "forest":
        own = [errors for errors in by_fold if errors is not None]
        least = min(map(len, own))
        found = np.mean([errors[:least] for errors in own], axis=0)
        rows, what = "on unseen rows", "round"
    elif samples is not None and not samples.takes_all:
        found = ensemble.out_of_bag().error_by_trees
    return {
        "error": "mean squared error" if ensemble.is_regression else "error rate",
        "rows": rows,
        "of": what,
        "errors": [None if np.isnan(e) else float(e) for e in found],
    }


def model_section(source: Source, ensemble: Ensemble) -> dict[str, Any]:
    """Return the recipe and the size of an ensemble."""
    recipe, trees = ensemble.recipe, ensemble.trees
    leaves = sum(tree.n_leaves for tree in trees)
    n_rules = sum(len(tree) > 1 for tree in trees)
    parameters = {
        one.name: getattr(recipe, one.name)
        for one in fields(recipe)
        if one.name != "tree"
    }
    return {
        "method": recipe.method,
        "algorithm": recipe.tree.algorithm,
        "predicts": "numbers" if source.numbers else "classes",
        "parameters": parameters,
        "chosen": changed(source.estimator),
        "trees": len(ensemble),
        "trees_in_words": ensemble.summary().trees_in_words(),
        "nodes": sum(map(len, trees)),
        "leaves": n_rules if recipe.method == "rules" else leaves,
        "depth": max(tree.max_depth for tree in trees),
        "used_columns": [ensemble.schema.names[at] for at in ensemble.used_columns],
    }


def _read(readings: Readings, ensemble: Ensemble) -> dict[str, Any]:
    """Return what was read, as plain values."""
    best, importances = readings.best, readings.importances
    impurity = zip(ensemble.schema.names, ensemble.feature_importances, strict=True)
    return {
        "importances": {"impurity": {name: float(share) for name, share in impurity}}
        if importances is None
        else importances.to_dict(),
        "rules": None if readings.rules is None else readings.rules.to_dict(),
        "best_tree": None
        if best is None
        else {
            "number": best.number,
            "agreement": best.agreement,
            "out_of_bag_score": best.oob_score,
            "text": str(best),
        },
        "shap": shap_section(readings.shap, readings.why_no_shap),
    }
