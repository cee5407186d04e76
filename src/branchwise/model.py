"""A model: schema, tree and recipe; everything that reads, shows and saves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from branchwise import persist
from branchwise.counts import Floats, Ints
from branchwise.importance import column_importances
from branchwise.missing import refuse_missing
from branchwise.predict import Arrivals, Walker, visited
from branchwise.recipes import Recipe
from branchwise.render.text import text_lines
from branchwise.rules import Rule, tree_rules
from branchwise.table.encode import encode_columns
from branchwise.table.frames import open_table
from branchwise.table.schema import Columns, Schema
from branchwise.threads import n_threads
from branchwise.tree import Tree
from branchwise.words import SHOWN_VALUES

#: ``print(model)`` stops here; ``to_text()`` never does.
_PRINTED_LINES = 1000


class Model:
    """A fitted tree with the words to speak of it.

    Parameters
    ----------
    schema : Schema
        Columns, their kinds and possible values, and the classes.
    tree : Tree
        The arrays of the tree.
    recipe : Recipe
        How it was grown.
    """

    def __init__(self, schema: Schema, tree: Tree, recipe: Recipe) -> None:
        self.schema = schema
        self.tree = tree
        self.recipe = recipe

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, object]:
        # What prediction has prepared is made anew where it is needed.
        return {"schema": self.schema, "tree": self.tree, "recipe": self.recipe}

    @cached_property
    def walker(self) -> Walker:
        """Walks encoded rows down the tree."""
        return Walker(self.schema.columns, self.tree)

    def _encoded(self, X: object, n_jobs: int | None) -> Columns:
        used = self.tree.used_columns
        allow_unseen = self.recipe.unseen != "error"
        threads = n_threads(n_jobs)
        data = encode_columns(open_table(X), self.schema, used, allow_unseen, threads)
        if self.recipe.missing == "error":
            refuse_missing(((j, self.schema.columns[j]) for j in used), data)
        return data

    def arrivals(self, X: object, n_jobs: int | None = None) -> Arrivals:
        """Find the node, or weighted nodes, that each row of a table arrives at.

        ``n_jobs`` threads encode the table; None is one, -1 all cores.
        """
        return self.walker.walk(self._encoded(X, n_jobs))

    def predict(self, X: object, n_jobs: int | None = None) -> NDArray[np.generic]:
        """Return the most probable class of each row."""
        codes = self.walker.classify(self._encoded(X, n_jobs))
        return self.schema.class_array.take(codes)

    def predict_proba(self, X: object, n_jobs: int | None = None) -> Floats:
        """Return the probability of each class, in the order of ``schema.classes``."""
        return self.walker.distribution(self.arrivals(X, n_jobs))

    def score(self, X: object, y: object) -> float:
        """Return the share of rows whose class is predicted right."""
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

    def rules(self) -> list[Rule]:
        """Return one rule for each leaf."""
        return tree_rules(self.schema, self.tree)

    def to_text(
        self,
        max_depth: int | None = None,
        max_values: int = SHOWN_VALUES,
        empty_branches: bool = False,
    ) -> str:
        """Return the whole tree as text, in Quinlan's form.

        Parameters
        ----------
        max_depth : int or None
            How many levels of questions to show.
        max_values : int
            How many values of a list to show before the rest is only counted.
        empty_branches : bool
            Whether to show possible values that had no training case at a node.
        """
        return "\n".join(self._lines(max_depth, max_values, empty_branches))

    def _lines(self, *options: object) -> Iterator[str]:
        return text_lines(self.schema, self.tree, *options)  # type: ignore[arg-type]

    def __str__(self) -> str:
        lines = list(islice(self._lines(), _PRINTED_LINES + 1))
        if len(lines) > _PRINTED_LINES:
            lines[_PRINTED_LINES:] = [
                f"... (a tree of {len(self.tree):,} nodes; to_text() has all of it)"
            ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<branchwise {self.recipe.algorithm} model: {len(self.tree):,} nodes, "
            f"{self.tree.n_leaves:,} leaves, depth {self.tree.max_depth:,}, "
            f"{len(self.schema.columns):,} columns, "
            f"{len(self.schema.classes):,} classes>"
        )

    def to_bytes(self) -> bytes:
        """Return the content of the model file."""
        return persist.to_bytes(self.schema, self.tree, self.recipe)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, whole or not at all."""
        persist.save(path, self.schema, self.tree, self.recipe)


def load(path: str | os.PathLike[str]) -> Model:
    """Open a model file. This never runs code from the file.

    Parameters
    ----------
    path : str or path
        A file written by :meth:`Model.save` or by ``branchwise fit``.

    Returns
    -------
    Model
        The model, which predicts exactly as the one that was saved.
    """
    return Model(*persist.load(path))
