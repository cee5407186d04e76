"""A fitted tree with its schema and recipe: its predictions and its prunings.

Modules that fitting and prediction do not need are imported by the methods that use
them, to start fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.encode import encode_columns
from branchwise.data.encoded_table import EncodedTable
from branchwise.data.frames import open_table
from branchwise.data.one_row import Cells, RowEncoder, as_table, open_rows
from branchwise.data.table_schema import Columns, Schema
from branchwise.data.target import learn_numbers
from branchwise.errors import ParameterError
from branchwise.recipe import Recipe
from branchwise.recipe.parameters import Pruning, Risk
from branchwise.threads import cached_property, n_threads
from branchwise.train.described_model import DescribedModel
from branchwise.tree.apply import Arrivals, Walker, visited, with_predictions
from branchwise.tree.tree import Tree

if TYPE_CHECKING:
    from branchwise.train.prune_model import PruningTable


class FittedTree(DescribedModel):
    """Schema, tree and recipe of a model: its predictions and prunings."""

    def __init__(self, schema: Schema, tree: Tree, recipe: Recipe) -> None:
        self.schema = schema
        # Trees made by hand, and files of earlier versions, may lack predictions.
        self.tree = with_predictions(tree, recipe) if tree.prediction is None else tree
        self.recipe = recipe

    def __getstate__(self) -> dict[str, object]:
        # What prediction has prepared is made anew where it is needed.
        return {"schema": self.schema, "tree": self.tree, "recipe": self.recipe}

    @property
    def used_columns(self) -> list[int]:
        """The columns that the tree splits on."""
        return [int(column) for column in self.tree.used_columns]

    def _move_columns(self, position: Ints) -> None:
        self.tree = self.tree.with_columns(position)

    @cached_property
    def walker(self) -> Walker:
        """Walks encoded rows down the tree."""
        return Walker(self.schema.columns, self.tree, self.recipe)

    @cached_property
    def reasons(self) -> dict[int, str]:
        """By node, what decided where its class is not the usual one, in words."""
        from branchwise.text.predictions import reasons_of

        return reasons_of(self.shown_schema.classes, self.tree, self.recipe)

    @cached_property
    def _row_encoder(self) -> RowEncoder:
        return RowEncoder(
            self.schema,
            self.tree.used_columns,
            allow_missing=self.recipe.missing != "error",
            allow_unseen=self.recipe.unseen != "error",
        )

    def _node_of_row(self, X: object, n_jobs: int | None) -> int | None:
        """Return where X arrives if it is one row that arrives at one node."""
        n_threads(n_jobs)  # raises for a wrong number
        cells = self._row_encoder.cells(X)
        return None if cells is None else self.walker.node_of_row(cells)

    def encoded(self, X: object, n_jobs: int | None = None) -> Columns:
        """Encode the columns that the tree splits on, unless X is encoded already.

        Parameters
        ----------
        X : table or row
            The rows to encode.
        n_jobs : int or None
            Threads; None is one, -1 all cores.

        Returns
        -------
        Columns
            The cells as codes and numbers.
        """
        if isinstance(X, Columns):
            return X
        recipe = self.recipe
        if isinstance(X, EncodedTable) and "error" not in (
            recipe.missing,
            recipe.unseen,
        ):
            from branchwise.data.encode_known import encode_known

            return encode_known(X, self.schema, self.tree.used_columns)
        cells = self._row_encoder.cells(X)
        if cells is not None:
            return self._row_encoder.columns(cells)
        return encode_columns(
            open_table(as_table(X)),
            self.schema,
            self.tree.used_columns,
            allow_missing=self.recipe.missing != "error",
            allow_unseen=self.recipe.unseen != "error",
            threads=n_threads(n_jobs),
        )

    def encoded_rows(self, X: object) -> tuple[Columns, Cells]:
        """Encode a table or a single row; also return its cells as plain values.

        Parameters
        ----------
        X : table or row
            What to encode; one row is a dict or a series.

        Returns
        -------
        Columns and Cells
            Codes and numbers, and the cells as they were given.
        """
        frame = open_rows(X)
        return self.encoded(frame), Cells(frame, self.schema)

    def arrivals(self, X: object, n_jobs: int | None = None) -> Arrivals:
        """Find the node, or weighted nodes, that each row of a table arrives at.

        ``n_jobs`` threads encode the table; None is one, -1 all cores.

        Parameters
        ----------
        X : table or row
            Rows, also such with missing values.
        n_jobs : int or None
            Threads; None is one, -1 all cores.

        Returns
        -------
        Arrivals
            Nodes of rows, with the weights of fractional cases.
        """
        return self.walker.walk(self.encoded(X, n_jobs))

    def predict(self, X: object, n_jobs: int | None = None) -> NDArray[np.generic]:
        """Return the most probable class, or the expected number, of each row.

        ``X`` is a table, or one row: a dict of cells or a series of pandas, by name.

        Parameters
        ----------
        X : table or row
            The rows: a dataframe, an Arrow table, a dict of columns or a list of rows.
            One row is a dict or a series, by name.
        n_jobs : int or None
            The number of threads; None is one, -1 all cores.

        Returns
        -------
        array
            One prediction for each row.

        Examples
        --------
        >>> from branchwise import datasets, fit_tree
        >>> tennis = datasets.load("tennis")
        >>> model = fit_tree(tennis.X, tennis.y)
        >>> model.predict({"outlook": "sunny", "humidity": "high", "wind": "weak"})
        array(['no'], dtype='<U3')
        """
        node = self._node_of_row(X, n_jobs)
        if node is not None:
            if self.tree.mean is not None:
                return self.tree.mean[node : node + 1].copy()
            return self.schema.class_array.take(self.tree.label[node : node + 1])
        if self.tree.is_regression:
            return self.walker.quantities(self.encoded(X, n_jobs))
        return self.schema.class_array.take(self.class_codes(X, n_jobs))

    def class_codes(self, X: object, n_jobs: int | None = None) -> NDArray[Any]:
        """Return, for each row, which of ``schema.classes`` is predicted.

        Parameters
        ----------
        X : table or row
            Rows, as :meth:`predict` takes them.
        n_jobs : int or None
            Threads; None is one, -1 all cores.

        Returns
        -------
        array of int
            A position in ``schema.classes`` for each row.
        """
        return self.walker.classify(self.encoded(X, n_jobs))

    def predict_proba(self, X: object, n_jobs: int | None = None) -> Floats:
        """Return the probability of each class, in the order of ``schema.classes``.

        Parameters
        ----------
        X : table or row
            The rows whose probabilities are wanted.
        n_jobs : int or None
            Threads; None is one, -1 all cores.

        Returns
        -------
        array of float, of shape (rows, classes)
            The probabilities; each row adds up to 1.
        """
        if self.tree.is_regression:
            raise ParameterError(
                "predict_proba needs a tree that predicts classes. Got one that "
                "predicts numbers; use predict."
            )
        node = self._node_of_row(X, n_jobs)
        if node is not None:
            return self.walker.probabilities_of_node(node)
        return self.walker.probabilities(self.encoded(X, n_jobs))

    def score(self, X: object, y: object) -> float:
        """Return the share of rows whose class is predicted right.

        Where numbers are predicted, return the share of their variance that the
        tree explains (R squared): 1 at best, 0 for predicting their mean.

        Parameters
        ----------
        X, y : table and sequence
            Rows, and what they should be predicted as.

        Returns
        -------
        float
            1 at best.
        """
        if self.tree.is_regression:
            got = self.predict(X).astype(np.float64)
            return _explained(learn_numbers(y, len(got)), got)
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def apply(self, X: object, n_jobs: int | None = None) -> Ints:
        """Return the node that each row arrives at (or mostly arrives at).

        Parameters
        ----------
        X : table or row
            The rows to send down the tree.
        n_jobs : int or None
            Threads; None is one, -1 all cores.

        Returns
        -------
        array of int
            The number of a node for each row; the root is 0.

        Examples
        --------
        >>> from branchwise import datasets, fit_tree
        >>> tennis = datasets.load("tennis")
        >>> fit_tree(tennis.X, tennis.y).apply(tennis.X)[:5]
        array([6, 6, 1, 5, 5])
        """
        return self.walker.nodes(self.arrivals(X, n_jobs))

    def visited(self, arrivals: Arrivals) -> tuple[Ints, Ints]:
        """Return every (row, node) pair on the ways of the rows.

        Parameters
        ----------
        arrivals : Arrivals
            Where rows arrive, from :meth:`arrivals`.

        Returns
        -------
        two arrays of int
            Positions of rows, and numbers of nodes.
        """
        return visited(arrivals, self.tree)

    @property
    def feature_importances(self) -> Floats:
        """How much each column contributed, as shares of 1."""
        from branchwise.grow.criteria import column_importances

        gini = self.recipe.criterion == "gini"
        return column_importances(self.tree, len(self.schema.columns), gini)

    def prune(
        self,
        method: Pruning,
        X: object = None,
        y: object = None,
        *,
        confidence: float = 0.25,
        raise_subtrees: bool | None = None,
        tolerance: float = 0.0,
        ccp_alpha: float | str = 0.0,
        risk: Risk = "auto",
        sample_weight: object = None,
    ) -> Self:
        """Return a smaller model, without growing the tree again.

        The new model's recipe has this way of pruning in place of the one it had.

        Parameters
        ----------
        method : {"error-based", "reduced-error", "cost-complexity"}
            How subtrees are pruned: by pessimistic estimates of their errors in
            training, by their errors on other rows, or by what their leaves cost.
        X, y : table and sequence, or None
            "reduced-error": rows that the tree was not grown from. "error-based": the
            rows that it was grown from, which are counted again where a branch
            takes the place of its parent; without them no branch does.
            "cost-complexity": rows for choosing ``ccp_alpha``.
        confidence : float, default=0.25
            "error-based": the lower, the smaller the tree.
        raise_subtrees : bool or None, default=None
            "error-based": whether a branch may take the place of its parent; None is
            wherever X and y are given.
        tolerance : float, default=0.0
            "reduced-error": by how much the accuracy on X may suffer with each subtree
            that goes.
        ccp_alpha : float, "best" or "1-se", default=0.0
            "cost-complexity": the complexity parameter; or the one whose tree has the
            least error on X, or the largest within one standard error of that.
        risk : {"auto", "impurity", "errors"}, default="auto"
            "cost-complexity": what leaves are measured by; auto is impurity, unless the
            model was pruned by errors before, as in :meth:`pruning_path`.
        sample_weight : sequence of float or None
            The weights of the rows of X.

        Returns
        -------
        Model
            A new model; this one does not change.
        """
        from branchwise.train import prune_model as pruning

        rows = pruning.Rows.of(X, y, sample_weight)
        recipe = pruning.pruning_recipe(
            self.recipe,
            method,
            confidence,
            raise_subtrees,
            tolerance,
            ccp_alpha,
            risk,
            rows,
        )
        tree, recipe = pruning.pruned(self.schema, self.tree, recipe, rows, self.recipe)
        return type(self)(self.schema, tree, recipe)

    def collapse_nodes(self, *nodes: int) -> Self:
        """Return a new model in which some nodes are leaves.

        Nodes are numbered level by level from the root, 0; those of the new model are
        numbered anew. Its recipe stays: it tells how the tree was grown, not what was
        collapsed by hand.

        Parameters
        ----------
        *nodes : int
            The numbers of the nodes.

        Returns
        -------
        Model
            A smaller tree; this model stays as it is.
        """
        from branchwise.train import prune_model as pruning

        tree = pruning.collapse_nodes(self.tree, nodes)
        return type(self)(self.schema, tree, self.recipe)

    def merge_same_leaves(self, change_probabilities: bool = False) -> Self:
        """Return a new model in which leaves that say the same are one.

        A node whose branches are all leaves that say what the node says becomes a
        leaf; leaves of a node that say the same share a branch. By default nodes say
        the same if they, and what they are together, give every class the same
        probability, so nothing but the length of the tree changes. With
        ``change_probabilities`` the same prediction will do: predictions stay,
        except those of fractional cases, and probabilities may change. Numbers must be
        equal in any case.

        Parameters
        ----------
        change_probabilities : bool, default=False
            Whether leaves of the same prediction are merged, too.

        Returns
        -------
        Model
            A smaller tree; this model stays as it is.
        """
        from branchwise.train import prune_model as pruning

        tree = pruning.merged(self.tree, self.recipe, change_probabilities)
        return type(self)(self.schema, tree, self.recipe)

    def pruning_path(self, X: object = None, y: object = None) -> PruningTable:
        """Return sizes and errors of the trees of cost-complexity pruning.

        Parameters
        ----------
        X, y : table and sequence, or None
            Rows to validate with.

        Returns
        -------
        PruningTable
            From the tree itself (without splits that gain nothing) to its root.
        """
        from branchwise.train import prune_model as pruning

        rows = pruning.Rows.of(X, y)
        return pruning.pruning_table(self.schema, self.tree, self.recipe, rows)


def _explained(wanted: Floats, got: Floats) -> float:
    """Return the share of the variance that predictions explain.

    Equal numbers have none: they are explained where they are met exactly.
    """
    left = float(((wanted - got) ** 2).sum())
    whole = float(((wanted - wanted.mean()) ** 2).sum())
    if whole == 0.0:
        return float(left == 0.0)
    return 1.0 - left / whole
