"""ID3: one branch per value, chosen by information gain."""

from __future__ import annotations

from dataclasses import dataclass

from branchwise.estimators.base import TreeClassifier, documented
from branchwise.recipe import ID3, CriterionFunction


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class ID3Classifier(TreeClassifier):
    """A decision tree with one branch per value, chosen by information gain.

    Takes tables as they are: text, categories, booleans, numbers, missing cells.
    Number columns are split at exact thresholds by the same gain. The same data
    give the same tree, whatever the order of the rows.

    A criterion of your own is a function of the class weights of k nodes, shape (k,
    classes), and of their branches, shape (k, branches, classes), that returns k
    scores, the higher the better.

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

    _algorithm = ID3
    criterion: str | CriterionFunction = "gain"
