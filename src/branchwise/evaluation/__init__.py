"""How well trees do on rows they have not seen, and which parameters do best."""

from branchwise.evaluation.algorithms import CONTENDERS, contender
from branchwise.evaluation.cross_validate import (
    LearningCurve,
    compare,
    cross_validated,
    learning_curve,
)
from branchwise.evaluation.folds import Deal
from branchwise.evaluation.results import Comparison, Evaluation
from branchwise.evaluation.trials import SearchResults
from branchwise.evaluation.tune import search

__all__ = [
    "CONTENDERS",
    "Comparison",
    "Deal",
    "Evaluation",
    "LearningCurve",
    "SearchResults",
    "compare",
    "contender",
    "cross_validated",
    "learning_curve",
    "search",
]
