"""How well trees do on rows they have not seen, and which parameters do best."""

from branchwise.evaluation.contenders import CONTENDERS, contender
from branchwise.evaluation.curves import LearningCurve, learning_curve
from branchwise.evaluation.deals import Deal
from branchwise.evaluation.reports import Comparison, Evaluation
from branchwise.evaluation.run import compare, cross_validated
from branchwise.evaluation.searched import SearchResults
from branchwise.evaluation.searching import search

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
