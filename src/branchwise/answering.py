"""A model as far as it answers: rows in, classes, probabilities or numbers out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Floats, Ints
from branchwise.errors import ParameterError
from branchwise.forks import cached_property
from branchwise.importance import column_importances
from branchwise.missing import refuse_missing
from branchwise.predict import Arrivals, Walker, reasons_of, visited, with_answers
from branchwise.recipes import Recipe
from branchwise.table.encode import encode_columns
from branchwise.table.frames import Frame, open_table
from branchwise.table.labels import learn_numbers
from branchwise.table.schema import Columns, Schema
from branchwise.threads import n_threads
from branchwise.tree import Tree


class Answering:
    """The parts of a model, and the answers they give."""

    def __init__(self, schema: Schema, tree: Tree, recipe: Recipe) -> None:
        self.schema = schema
        # Trees made by hand, and files of earlier versions, may lack predictions.
        self.tree = with_answers(tree, recipe) if tree.answer is None else tree
        self.recipe = recipe

    def __getstate__(self) -> dict[str, object]:
        # What prediction has prepared is made anew where it is needed.
        return {"schema": self.schema, "tree": self.tree, "recipe": self.recipe}

    @cached_property
    def walker(self) -> Walker:
        """Walks encoded rows down the tree."""
        return Walker(self.schema.columns, self.tree, self.recipe)

    @cached_property
    def reasons(self) -> dict[int, str]:
        """By node, what decided where its class is not the usual one, in words."""
        return reasons_of(self.schema.classes, self.tree, self.recipe)

    def _encoded(self, X: object, n_jobs: int | None) -> Columns:
        return self._encoded_frame(open_table(X), n_jobs)

    def _encoded_frame(self, frame: Frame, n_jobs: int | None = None) -> Columns:
        used = self.tree.used_columns
        allow_unseen = self.recipe.unseen != "error"
        threads = n_threads(n_jobs)
        data = encode_columns(frame, self.schema, used, allow_unseen, threads)
        if self.recipe.missing == "error":
            refuse_missing(((j, self.schema.columns[j]) for j in used), data)
        return data

    def arrivals(self, X: object, n_jobs: int | None = None) -> Arrivals:
        """Find the node, or weighted nodes, that each row of a table arrives at.

        ``n_jobs`` threads encode the table; None is one, -1 all cores.
        """
        return self.walker.walk(self._encoded(X, n_jobs))

    def predict(self, X: object, n_jobs: int | None = None) -> NDArray[np.generic]:
        """Return the most probable class, or the expected number, of each row."""
        if self.tree.predicts_numbers:
            return self.walker.numbers(self.arrivals(X, n_jobs))
        return self.schema.class_array.take(self.class_codes(X, n_jobs))

    def class_codes(self, X: object, n_jobs: int | None = None) -> NDArray[Any]:
        """Return, for each row, which of ``schema.classes`` is predicted."""
        return self.walker.classify(self._encoded(X, n_jobs))

    def predict_proba(self, X: object, n_jobs: int | None = None) -> Floats:
        """Return the probability of each class, in the order of ``schema.classes``."""
        if self.tree.predicts_numbers:
            raise ParameterError(
                "predict_proba needs a tree that predicts classes. Got one that "
                "predicts numbers; use predict."
            )
        return self.walker.distribution(self.arrivals(X, n_jobs))

    def score(self, X: object, y: object) -> float:
        """Return the share of rows whose class is predicted right.

        Where numbers are predicted, return the share of their variance that the
        tree explains (R squared): 1 at best, 0 for answering with their mean.
        """
        if self.tree.predicts_numbers:
            got = self.predict(X).astype(np.float64)
            return _explained(learn_numbers(y, len(got)), got)
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def apply(self, X: object, n_jobs: int | None = None) -> Ints:
        """Return the node that each row arrives at (or mostly arrives at)."""
        return self.walker.nodes(self.arrivals(X, n_jobs))

    def visited(self, arrivals: Arrivals) -> tuple[Ints, Ints]:
        """Return every (row, node) pair on the ways of the rows."""
        return visited(arrivals, self.tree)

    @property
    def feature_importances(self) -> Floats:
        """How much each column contributed, as shares of 1."""
        gini = self.recipe.criterion == "gini"
        return column_importances(self.tree, len(self.schema.columns), gini)


def _explained(wanted: Floats, got: Floats) -> float:
    """Return the share of the variance that predictions explain.

    Equal numbers have none: they are explained where they are met exactly.
    """
    left = float(((wanted - got) ** 2).sum())
    whole = float(((wanted - wanted.mean()) ** 2).sum())
    if whole == 0.0:
        return float(left == 0.0)
    return 1.0 - left / whole
