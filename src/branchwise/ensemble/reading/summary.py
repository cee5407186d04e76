"""A summary of an ensemble in words: trees, how they are combined, importances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from branchwise.data.table_schema import Schema, Value
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.ensemble.out_of_bag import OutOfBag, has_out_of_bag
from branchwise.errors import counted, quoted
from branchwise.text.blocks import Block, Paragraph, Table
from branchwise.text.document import Document
from branchwise.text.labels import class_called, target_title, titles_of
from branchwise.text.words import number, rounded, share, word

#: Columns that are listed; to_dict() has all of them.
_SHOWN_COLUMNS = 20
#: Classes that are named.
_SHOWN_CLASSES = 6
_KINDS = {
    "forest": "A forest of",
    "boosted": "Boosting of",
    "gradient": "Gradient boosting of",
}
#: What the numbers of the trees of gradient boosting add up to.
_SUMS = {
    "squared_error": "the prediction",
    "poisson": "the logarithm of the prediction",
    "log_loss": "a margin of each class, from which probabilities follow",
}


@dataclass(frozen=True, repr=False)
class EnsembleSummary(Document):
    """What there is to say of an ensemble as a whole.

    ``leaves`` and ``depths`` are those of each tree; ``oob_score`` is None where rows
    out of bag are not known; ``columns_drawn`` is how many columns are candidates at a
    node; ``importances`` are shares of the decrease in impurity,
    the largest first.
    """

    method: str
    algorithm: str
    voting: str
    loss: str
    n_rounds: int
    target: str | None
    classes: tuple[Value, ...]
    n_nodes: int
    leaves: tuple[int, ...]
    depths: tuple[int, ...]
    tree_weights: tuple[float, ...]
    oob_score: float | None
    columns_drawn: int
    importances: dict[str, float]
    has_rows: bool
    schema: Schema | None = None

    def __repr__(self) -> str:
        return f"<summary of {counted(len(self.leaves), 'tree')}>"

    def blocks(self) -> Iterator[Block]:
        """Yield what there is to say."""
        for sentence in self.sentences():
            yield Paragraph(sentence)
        yield Paragraph("Importances, as shares of the decrease in impurity:")
        titles = self.titles()[:_SHOWN_COLUMNS]
        shares = [share(value, 1) for value in self.importances.values()]
        yield Table(
            ["column", "share"],
            [[*pair] for pair in zip(titles, shares, strict=False)],
            words=(0,),
        )
        rest = len(self.importances) - len(titles)
        if rest:
            yield Paragraph(f"... and {counted(rest, 'more column')}.")

    def titles(self) -> list[str]:
        """Write what the columns are called, the most important first."""
        return titles_of(self.schema, self.importances)

    def target_in_words(self) -> str | None:
        """Write what is predicted; None where it has no name."""
        title = self.target if self.schema is None else target_title(self.schema)
        return None if title is None else word(title)

    def sentences(self) -> Iterator[str]:
        """Yield what the trees are, how they are combined, and their score."""
        if self.method == "rules":
            yield from self._of_rules()
            return
        yield f"{self.trees_in_words()} predicts {self._predicted()}."
        leaves = "leaf" if max(self.leaves) == 1 else "leaves"
        yield (
            f"A tree has {_range(self.leaves)} {leaves}{_average(self.leaves)}, and a "
            f"depth of {_range(self.depths)}."
        )
        if self.columns_drawn < len(self.importances):
            columns = f"{self.columns_drawn:,} of {len(self.importances):,} columns"
            yield f"Each node has {columns} as candidates, drawn at random."
        yield self._combined()
        if self.oob_score is not None:
            yield (
                f"Out of bag, {share(self.oob_score, 1)} of the rows are right."
                if self.classes
                else f"Out of bag, R squared is {rounded(self.oob_score, 3)}."
            )
        elif self.method == "forest" and not self.has_rows:
            yield (
                "What is out of bag needs the training rows, which a model file does "
                "not hold."
            )

    def _of_rules(self) -> Iterator[str]:
        conditions = [depth for depth in self.depths if depth]
        yield f"{self.trees_in_words()} predicts {self._predicted()}."
        if conditions:
            numbers = _range(tuple(conditions))
            yield f"A rule has {numbers} conditions{_average(tuple(conditions))}."
        yield "The votes of the rules that hold add up to a score of each class."

    def trees_in_words(self) -> str:
        """Write how many trees there are, and how they were grown; or rules."""
        if self.method == "rules":
            rules = counted(sum(depth > 0 for depth in self.depths), "rule")
            return f"A set of {rules}"
        trees = counted(len(self.leaves), f"{self.algorithm} tree")
        rounds = ""
        if self.n_rounds != len(self.leaves):
            rounds = f" in {counted(self.n_rounds, 'round')}"
        return f"{_KINDS[self.method]} {trees}{rounds}"

    def _predicted(self) -> str:
        unnamed = "classes" if self.classes else "numbers"
        target = self.target_in_words() or unnamed
        columns = counted(len(self.importances), "column")
        if not self.classes:
            return f"{target} from {columns}"
        classes = self.classes
        if self.schema is not None:
            classes = tuple(class_called(self.schema, label) for label in classes)
        listed = quoted(classes, _SHOWN_CLASSES)
        return f"{target} ({listed}) from {columns}"

    def _combined(self) -> str:
        if self.method == "gradient":
            return f"The numbers of all trees add up to {_SUMS[self.loss]}."
        if self.method == "boosted":
            ends = min(self.tree_weights), max(self.tree_weights)
            low, high = (number(round(end, 3)) for end in ends)
            weight = low if low == high else f"{low} to {high}"
            return f"Each tree votes for a class, with a weight of {weight}."
        if not self.classes:
            return "A prediction is the average of the trees."
        if self.voting == "hard":
            return "Each tree votes for a class; the most frequent is predicted."
        return "Probabilities are the averages of those of the trees."

    def to_dict(self) -> dict[str, Any]:
        """Return the summary in plain values."""
        return {
            "method": self.method,
            "algorithm": self.algorithm,
            "voting": self.voting,
            "trees": len(self.leaves),
            "rounds": self.n_rounds,
            "target": self.target,
            "classes": list(self.classes),
            "nodes": self.n_nodes,
            "leaves": list(self.leaves),
            "depths": list(self.depths),
            "tree_weights": list(self.tree_weights),
            "out_of_bag_score": self.oob_score,
            "columns_drawn": self.columns_drawn,
            "importances": self.importances,
        }


def _range(values: tuple[int, ...]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _average(values: tuple[int, ...]) -> str:
    if min(values) == max(values):
        return ""
    return f" ({sum(values) / len(values):,.1f} on average)"


def summary_of(ensemble: FittedTrees, n_jobs: int | None = None) -> EnsembleSummary:
    """Return the summary of an ensemble."""
    schema, recipe, samples = ensemble.schema, ensemble.recipe, ensemble.samples
    importances = zip(schema.names, ensemble.feature_importances.tolist(), strict=True)
    score = None
    if has_out_of_bag(ensemble):
        score = OutOfBag.of(ensemble, n_jobs).score
    weights = ensemble.tree_weights
    a_round = ensemble.n_outputs if recipe.adds_margins else 1
    return EnsembleSummary(
        recipe.method,
        recipe.tree.algorithm,
        recipe.voting,
        recipe.loss or "",
        len(ensemble) // a_round,
        schema.target,
        schema.classes,
        sum(map(len, ensemble.trees)),
        tuple(tree.n_leaves for tree in ensemble.trees),
        tuple(tree.max_depth for tree in ensemble.trees),
        () if weights is None else tuple(weights.tolist()),
        score,
        recipe.columns_drawn(len(schema.columns)),
        dict(sorted(importances, key=lambda pair: -pair[1])),
        samples is not None,
        schema,
    )
