"""Cross-validation, comparison and parameter search."""

from branchwise.evaluation.algorithms import CANDIDATES, candidate
from branchwise.evaluation.cross_validate import compare, cross_validated
from branchwise.evaluation.folds import FoldAssignment
from branchwise.evaluation.learning_curves import LearningCurve, learning_curve
from branchwise.evaluation.results import Comparison, Evaluation
from branchwise.evaluation.trials import SearchResults
from branchwise.evaluation.tune import search

__all__ = [
    "CANDIDATES",
    "Comparison",
    "Evaluation",
    "FoldAssignment",
    "LearningCurve",
    "SearchResults",
    "candidate",
    "compare",
    "cross_validated",
    "learning_curve",
    "search",
]
