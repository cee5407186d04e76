"""scikit-learn estimators: thin shells that turn parameters into a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.validation import check_is_fitted

from branchwise.counts import Floats, Ints
from branchwise.criteria import CriterionFunction
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.fitting import fit_tree
from branchwise.missing import Policy
from branchwise.recipes import Recipe
from branchwise.table.encode import learn_target
from branchwise.table.schema import Value
from branchwise.table.weights import check_weights
from branchwise.tree import Tree


class ID3Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A decision tree with one branch per value, chosen by information gain.

    Takes tables as they are: text, categories, booleans, numbers, missing cells.
    Number columns are split at exact thresholds by the same gain. The same data
    give the same tree, whatever the order of the rows.

    Parameters
    ----------
    criterion : {"gain", "gain_ratio", "gini"} or callable, default="gain"
        What makes a split good. A callable gets the class weights of k nodes,
        shape (k, classes), and of their branches, shape (k, branches, classes),
        and returns k scores, the higher the better.
    max_depth : int or None, default=None
        The largest number of questions from the root to a leaf; 0 is the root alone.
    min_samples_split : int or float, default=2
        The fewest cases a node needs to be split; a float is a share.
    min_samples_leaf : int or float, default=1
        The fewest cases that every branch of a split must get; a float is a share.
    min_gain : float, default=0.0
        The least gain, at the node and in bits, that a split must bring.
    categorical_features : "from_dtype", "all", mask, indices or names
        Number columns whose values are names. Text, categories and booleans always
        are.
    categories : dict or None, default=None
        The possible values of columns, by name or index, in order. They may name
        values that never occur; a value that is not among them is an error.
    missing : {"branch", "split", "largest", "node", "error"}, default="branch"
        What a missing value does: has a branch of its own, goes down every branch by
        weight, follows the largest branch, stops at the node, or is an error.
    unseen : {"branch", "split", "largest", "node", "error"}, default="node"
        What a value does at prediction that training did not have; "branch" takes
        it for a missing one.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with ``sample_weight``.
    max_bins : int or None, default=None
        At most so many ranges of about equal size that a number column is cut
        between; None tries every exact threshold.
    n_jobs : int or None, default=None
        Threads to read the table and to grow with; None is one, -1 all cores. The
        tree is the same.

    Attributes
    ----------
    model_ : Model
        Schema and tree: everything that reads, shows and saves.
    tree_ : Tree
        The arrays of the tree.
    classes_ : ndarray
        The classes in sorted order.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, where the table had names.
    feature_importances_ : ndarray
        How much each column contributed, as shares of 1.

    Examples
    --------
    >>> from branchwise import ID3Classifier, datasets
    >>> tennis = datasets.load("tennis")
    >>> tree = ID3Classifier().fit(tennis.X, tennis.y)
    >>> print(tree.model_)
    outlook = cloudy: yes (4)
    outlook = rainy:
    |   wind = strong: no (2)
    |   wind = weak: yes (3)
    outlook = sunny:
    |   humidity = high: no (3)
    |   humidity = normal: yes (2)
    """

    def __init__(
        self,
        criterion: str | CriterionFunction = "gain",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_gain: float = 0.0,
        categorical_features: object = "from_dtype",
        categories: Mapping[Any, Sequence[Any]] | None = None,
        missing: Policy = "branch",
        unseen: Policy = "node",
        class_weight: Mapping[Any, float] | str | None = None,
        max_bins: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.categorical_features = categorical_features
        self.categories = categories
        self.missing = missing
        self.unseen = unseen
        self.class_weight = class_weight
        self.max_bins = max_bins
        self.n_jobs = n_jobs

    def fit(self, X: object, y: object, sample_weight: object = None) -> ID3Classifier:
        """Grow the tree.

        Parameters
        ----------
        X : table
            A pandas, polars or pyarrow table, a numpy array, a dict of columns or a
            list of dicts.
        y : sequence
            The label of each row: text, whole numbers, booleans or categories.
        sample_weight : sequence of float or None
            The weight of each row; rows of weight 0 are left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        recipe = self._recipe()
        labels = _one_dimensional(y)
        self.model_ = fit_tree(
            X,
            labels,
            recipe,
            sample_weight=self._weights(labels, sample_weight),
            categorical_features=self.categorical_features,
            categories=self.categories,
            n_jobs=self.n_jobs,
        )
        schema = self.model_.schema
        self.classes_ = schema.class_array
        self.n_features_in_ = len(schema.columns)
        if schema.named:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _recipe(self) -> Recipe:
        return Recipe(
            "ID3",
            self.criterion,
            self.max_depth,
            self.min_samples_split,
            self.min_samples_leaf,
            self.min_gain,
            self.missing,
            self.unseen,
            self.max_bins,
        )

    def _weights(self, y: object, sample_weight: object) -> object:
        if self.class_weight is None or y is None:
            return sample_weight
        classes, labels = learn_target(y)
        by_row = _class_weights(self.class_weight, classes, labels)[labels]
        if sample_weight is None:
            return by_row
        return check_weights(sample_weight, len(labels)) * by_row

    @property
    def tree_(self) -> Tree:
        """The arrays of the tree."""
        check_is_fitted(self)
        return self.model_.tree

    @property
    def feature_importances_(self) -> Floats:
        """How much each column contributed, as shares of 1."""
        check_is_fitted(self)
        return self.model_.feature_importances

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the most probable class of each row."""
        check_is_fitted(self)
        return self.model_.predict(X, self.n_jobs)

    def predict_proba(self, X: object) -> Floats:
        """Return the probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        return self.model_.predict_proba(X, self.n_jobs)

    def apply(self, X: object) -> Ints:
        """Return the node that each row arrives at (or mostly arrives at)."""
        check_is_fitted(self)
        return self.model_.apply(X, self.n_jobs)

    def decision_path(self, X: object) -> csr_matrix:
        """Return which nodes each row visits, as a sparse rows x nodes matrix."""
        check_is_fitted(self)
        arrivals = self.model_.arrivals(X, self.n_jobs)
        rows, nodes = self.model_.visited(arrivals)
        shape = (arrivals.n_rows, len(self.model_.tree))
        ones = np.ones(len(rows), dtype=np.int64)
        return csr_matrix((ones, (rows, nodes)), shape=shape)

    def get_depth(self) -> int:
        """Return the largest number of questions on any path."""
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        return self.tree_.n_leaves

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _one_dimensional(y: object) -> object:
    """Turn a column vector into a row, with scikit-learn's own warning."""
    if getattr(y, "ndim", 1) == 1 or not hasattr(y, "shape"):
        return y
    try:
        return column_or_1d(y, warn=True)
    except ValueError as error:
        raise DataError(f"y must have one label for each row. {error}") from None


def _class_weights(given: object, classes: tuple[Value, ...], labels: Ints) -> Floats:
    """Return the weight of each class."""
    if isinstance(given, str) and given == "balanced":
        balanced: Floats = compute_class_weight(
            given, classes=np.arange(len(classes)), y=labels
        )
        return balanced
    if not isinstance(given, Mapping):
        raise ParameterError(
            "class_weight must be None, 'balanced' or a dict of class to weight. Got "
            f"{given!r} instead."
        )
    unknown = [label for label in given if label not in classes]
    if unknown and len(unknown) > len(given) - len(classes):
        # With every class there, others may be of another part of the data.
        raise ParameterError(
            f"class_weight names {quoted(unknown)}, but the classes of y are "
            f"{quoted(classes)}. Give weights to these."
        )
    for label, weight in given.items():
        if not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
            raise ParameterError(
                "class_weight must have finite weights that are not negative. Got "
                f"{weight!r} for the class {label!r}."
            )
    weights = np.array([float(given.get(label, 1.0)) for label in classes])
    if not weights.any():
        raise ParameterError(
            "class_weight must give a class of y a weight above 0. Got 0 for all of "
            f"{quoted(classes)}."
        )
    return weights
