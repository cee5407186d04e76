"""Base classes of the estimators: fitting, prediction, scikit-learn interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Self,
)

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from branchwise.data.table_schema import Schema
from branchwise.data.target import learn_target
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.estimators.fitted import (
    FINGERPRINTS,
    FittedEstimator,
    ProbabilityEstimator,
    of_model,
    one_dimensional,
)
from branchwise.fit import fit_tree, not_wanted, warn_of
from branchwise.model import Model
from branchwise.recipe import FIELDS, Recipe, pruning_of, unpruned
from branchwise.recipe.parameters import (
    BUILT_IN,
    FOR_NUMBERS,
    Policy,
    Probabilities,
    Pruning,
    Risk,
    canonical,
    named,
)
from branchwise.tree.tree import Tree

if TYPE_CHECKING:
    from branchwise.train.fit_findings import FitFinding

#: Types whose equal values are the same value.
_PLAIN = frozenset({str, int, float, bool, type(None)})


@lru_cache(maxsize=512, typed=True)
def _known_recipe(recipe: Recipe, **values: Any) -> Recipe:
    """Fill in a recipe, cached: a search needs the same one in every fold."""
    return replace(recipe, **values)


@dataclass(kw_only=True, eq=False, repr=False)
class TreeEstimator(FittedEstimator):
    """Base class of estimators around :func:`~branchwise.fit.fit_tree`.

    The fields are parameters, which ``recipe/parameters.toml`` declares; the ones of
    other kinds of estimators and other defaults are fields of the subclasses.
    """

    _algorithm: ClassVar[Recipe]
    model_: Model = field(init=False)
    max_depth: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    min_weight_fraction_leaf: float = 0.0
    min_gain: float = 0.0
    categorical_features: object = "from_dtype"
    categories: Mapping[Any, Sequence[Any]] | None = None
    order: Mapping[Any, Sequence[Any]] | None = None
    missing: Policy = "branch"
    unseen: Policy = "node"
    threshold: str = "readable"
    max_bins: int | None = None
    max_leaf_nodes: int | None = None
    max_p_value: float | None = None
    pruning: Pruning | None = None
    tolerance: float = 0.0
    validation_fraction: float | None = None
    ccp_alpha: float | str = 0.0
    n_jobs: int | None = None

    # Not steps: an estimator that has them is taken for a pipeline.
    rules = of_model(Model.rules)
    generalised_rules = of_model(Model.generalised_rules)
    explain = of_model(Model.explain)
    what_if = of_model(Model.what_if)
    shap = of_model(Model.shap)
    to_text = of_model(Model.to_text)
    to_html = of_model(Model.to_html)
    to_svg = of_model(Model.to_svg)
    to_dot = of_model(Model.to_dot)
    to_mermaid = of_model(Model.to_mermaid)
    export = of_model(Model.export)  # type: ignore[arg-type]
    to_bytes = of_model(Model.to_bytes)
    save = of_model(Model.save)

    @property
    def recipe(self) -> Recipe:
        """The algorithm and its limits, as the parameters have it."""
        return self._filled()

    def _filled(self, **others: object) -> Recipe:
        """Fill in the parameters that the estimator and the recipe share."""
        recipe, given = self._algorithm, vars(self)
        values = {name: given[name] for name in FIELDS if name in given} | others
        values["pruning"] = pruning_of(recipe, given)
        if isinstance(values.get("costs"), Mapping):
            del values["costs"]  # known when the classes are
        self._check_criterion(canonical(values.get("criterion", recipe.criterion)))
        if _PLAIN.issuperset(map(type, values.values())):
            return _known_recipe(recipe, **values)
        return replace(recipe, **values)

    def _check_criterion(self, criterion: object) -> None:
        """Refuse criteria for the other kind of target."""

    def _labels(self, y: object) -> object:
        return one_dimensional(y)

    def fit(
        self,
        X: object,
        y: object,
        sample_weight: object = None,
        *,
        validation: tuple[object, object] | None = None,
    ) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : table, or a source that :func:`~branchwise.fit_tree` takes
            A pandas, polars or pyarrow table, a numpy array, a dict of columns or a
            list of dicts. With the name of a column as y also files, a table of a
            database, a DataFrame of Dask or Spark: see ``docs/scale.md``.
        y : sequence or str
            The label of each row (text, whole numbers, booleans or categories), or
            the number that is to be predicted; or the name of the column of X that
            has it.
        sample_weight : sequence of float, str or None
            The weight of each row, or the name of the column that has it; rows of
            weight 0 are left out.
        validation : pair of table and sequence, or None
            Rows to prune with that the tree is not grown from, for
            ``pruning="reduced-error"``; by default ``validation_fraction`` of X.

        Returns
        -------
        self
            The fitted estimator.
        """
        # Clones are fitted many times, in folds and searches: they do not warn.
        warns = not getattr(self, "_is_clone", False)
        found: list[FitFinding] = []
        self.model_ = self._grown(
            X,
            y,
            sample_weight,
            self.recipe,
            validation=validation,
            validation_fraction=self.validation_fraction,
            on_finding=found.append if warns else not_wanted,
        )
        set_seen_columns(self, self.model_.schema)
        warn_of(found, stacklevel=3)
        return self

    def __sklearn_clone__(self) -> Self:
        from branchwise.estimators.clone import plain_clone  # noqa: PLC0415  (rare)

        new: Self = plain_clone(self) or super().__sklearn_clone__()
        new._is_clone = True
        return new

    def _grown(
        self,
        X: object,
        y: object,
        sample_weight: object,
        recipe: Recipe,
        **others: Any,
    ) -> Model:
        # A name is a column of X, which may be in files or a database.
        named = isinstance(y, str)
        return fit_tree(
            X if named else FINGERPRINTS.known_table(X),
            y if named else self._labels(y),
            recipe,
            sample_weight=sample_weight,
            class_weight=getattr(self, "class_weight", None),
            priors=getattr(self, "priors", None),
            costs=named_costs(self),
            categorical_features=self.categorical_features,
            categories=self.categories,
            order=self.order,
            n_jobs=self.n_jobs,
            **others,
        )

    def cost_complexity_pruning_path(
        self, X: object, y: object, sample_weight: object = None
    ) -> Bunch:
        """Return the complexity parameters at which a full tree loses its subtrees.

        The tree is grown by the parameters of this estimator, but not pruned; the
        estimator itself stays as it is.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        Bunch
            ``ccp_alphas``, the complexity parameter at which each subtree is pruned,
            and ``impurities``, the sum of the leaves' impurities (by weight), or of
            their errors with ``risk="errors"``, from then on; both begin with the full
            tree. Subtrees pruned at the same one have an entry each.
        """
        recipe = unpruned(self.recipe)
        if recipe.costs_in == "growth":
            raise ParameterError(
                "cost_complexity_pruning_path has impurities of cases, and "
                "costs_in='growth' prunes by those of costs. Choose "
                "costs_in='prediction', or ccp_alpha='best'."
            )
        grown = self._grown(X, y, sample_weight, recipe, on_finding=not_wanted)
        tree = grown.tree
        from branchwise.prune import subtrees  # noqa: PLC0415  (rare)
        from branchwise.prune.risk import measure_of  # noqa: PLC0415

        # A number as ccp_alpha, as these are: impurity, unless errors are chosen.
        of_number = replace(self.recipe, ccp_alpha=0.0)
        path = subtrees.pruning_path(tree, measure_of(of_number))
        return Bunch(ccp_alphas=path.pruned_alphas, impurities=path.pruned_risks)

    @property
    def tree_(self) -> Tree:
        """The arrays of the tree."""
        check_is_fitted(self)
        return self.model_.tree

    def decision_path(self, X: object) -> csr_matrix:
        """Return which nodes each row visits, as a sparse rows x nodes matrix.

        Parameters
        ----------
        X : table
            The rows whose paths are wanted.

        Returns
        -------
        csr_matrix of shape (rows, nodes)
            1 where the row visits the node.
        """
        check_is_fitted(self)
        arrivals = self.model_.arrivals(X, self.n_jobs)
        rows, nodes = self.model_.visited(arrivals)
        shape = (arrivals.n_rows, len(self.model_.tree))
        ones = np.ones(len(rows), dtype=np.int64)
        return csr_matrix((ones, (rows, nodes)), shape=shape)

    def get_depth(self) -> int:
        """Return the largest number of splits on any path."""
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        return self.tree_.n_leaves

    def _repr_html_inner(self) -> str:
        """Show what scikit-learn shows, and below it the tree if there is one."""
        return str(super()._repr_html_inner()) + self._tree_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:  # not where the user has chosen text
            bundle["text/html"] += self._tree_html()
        return bundle

    def _tree_html(self) -> str:
        return self.model_._repr_html_() if hasattr(self, "model_") else ""


@dataclass(kw_only=True, eq=False, repr=False)
class TreeClassifier(ProbabilityEstimator, TreeEstimator):
    """A tree estimator that predicts classes."""

    confidence: float = 0.25
    raise_subtrees: bool = True
    risk: Risk = "auto"
    class_weight: Mapping[Any, float] | str | None = None
    priors: Mapping[Any, float] | None = None
    costs: Sequence[Sequence[float]] | Mapping[Any, Any] | None = None
    costs_in: str = "prediction"
    probabilities: Probabilities = "frequencies"
    m: float = 2.0
    shrinkage: float = 20.0

    def _check_criterion(self, criterion: object) -> None:
        check_classes_criterion(criterion, "CARTRegressor")

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Return the share of rows, by weight, whose class is predicted right.

        This is scikit-learn's ``accuracy_score``, from the codes of the classes.

        Parameters
        ----------
        X : table
            The rows to predict, with the columns of the training rows.
        y : sequence
            The true classes, or numbers, of the rows.
        sample_weight : sequence of float or None
            The weights of the rows; by default each is 1.

        Returns
        -------
        float
            Between 0 and 1.
        """
        if not hasattr(self, "model_"):  # the check reads all tags, which takes time
            check_is_fitted(self)
        right = self._true_targets(X, y) if sample_weight is None else None
        if right is None or not len(right):
            return float(super().score(X, y, sample_weight))
        return int(np.count_nonzero(right)) / len(right)

    def _true_targets(self, X: object, y: object) -> NDArray[np.bool_] | None:
        """Tell where classes are predicted right; None where codes do not tell."""
        try:
            found, labels = learn_target(FINGERPRINTS.known_labels(y))
        except DataError:
            return None
        known = FINGERPRINTS.known_table(X)
        predicted = self.model_.class_codes(known, self.n_jobs)
        classes = self.model_.schema.classes
        if len(labels) != len(predicted) or not set(classes) >= set(found):
            return None
        if found != classes:  # the rows need not have every class
            position = {label: at for at, label in enumerate(classes)}
            labels = np.array([position[label] for label in found])[labels]
        right: NDArray[np.bool_] = labels == predicted
        return right


def named_costs(estimator: Any) -> Mapping[Any, Any] | None:
    """Return the costs of an estimator if they are given by the names of classes."""
    costs = getattr(estimator, "costs", None)
    return costs if isinstance(costs, Mapping) else None


def set_seen_columns(estimator: Any, schema: Schema) -> None:
    """Set what scikit-learn expects of a fitted estimator: columns and classes."""
    if schema.classes:
        # Models of the same rows have one schema: users may change what they get.
        estimator.classes_ = schema.class_array.copy()
    estimator.n_features_in_ = len(schema.columns)
    if schema.named:
        estimator.feature_names_in_ = np.array(schema.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def check_classes_criterion(criterion: object, regressor: str) -> None:
    """Refuse criteria for numbers."""
    if isinstance(criterion, str) and criterion in FOR_NUMBERS:
        raise ParameterError(
            f"criterion {criterion!r} is for numbers, and this estimator predicts "
            f"classes. Use {regressor}, or {quoted(named(BUILT_IN))}."
        )


#: Why the criterion of absolute error is not offered.
_NO_MEDIANS = (
    " Absolute error needs medians, which are not sums over rows, so that counts "
    "cannot carry them."
)


def check_numbers_criterion(criterion: object) -> None:
    """Refuse criteria that are not for numbers."""
    if not isinstance(criterion, str) or criterion not in FOR_NUMBERS:
        names = " or ".join(map(repr, named(FOR_NUMBERS)))
        raise ParameterError(
            f"criterion must be {names} to predict numbers. Got {criterion!r} instead."
            + (_NO_MEDIANS if criterion == "absolute_error" else "")
        )
