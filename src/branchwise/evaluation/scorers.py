"""Which of scikit-learn's scorers fit what is predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sklearn.metrics import get_scorer_names

from branchwise.errors import ParameterError, quoted
from branchwise.table.schema import Value

#: Scores of numbers, the usual ones first; every other scorer compares classes.
_OF_NUMBERS = (
    "r2",
    "neg_mean_absolute_error",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_median_absolute_error",
    "neg_max_error",
    "explained_variance",
    "max_error",
    "d2_absolute_error_score",
    "neg_mean_absolute_percentage_error",
    "neg_mean_gamma_deviance",
    "neg_mean_poisson_deviance",
    "neg_mean_squared_log_error",
    "neg_root_mean_squared_log_error",
)
#: Scores of classes that fit however many there are, and whatever they are called.
_OF_ANY_CLASSES = (
    "accuracy",
    "balanced_accuracy",
    "f1_macro",
    "f1_weighted",
    "matthews_corrcoef",
    "neg_log_loss",
    "roc_auc_ovr",
)
_SHOWN = 7


@dataclass(frozen=True)
class _Demand:
    """What a scorer asks of the classes, in words, and what to take in its place."""

    words: str
    fits: Callable[[Sequence[Value]], bool]
    instead: tuple[str, ...]


def _averaged(score: str) -> _Demand:
    # The class that counts is 1 for scikit-learn, and cannot be told otherwise here.
    return _Demand(
        "two classes, one of them the number 1",
        lambda classes: len(classes) == 2 and 1 in classes,
        (f"{score}_macro", f"{score}_weighted"),
    )


def _of_two(*instead: str) -> _Demand:
    return _Demand("two classes", lambda classes: len(classes) == 2, instead)


def _of_numbered(*instead: str) -> _Demand:
    return _Demand(
        "numbers as names if there are two classes",
        lambda classes: len(classes) != 2 or not isinstance(classes[0], str),
        instead,
    )


_DEMANDS = {
    **{score: _averaged(score) for score in ("f1", "precision", "recall", "jaccard")},
    "roc_auc": _of_two("roc_auc_ovr", "roc_auc_ovo"),
    "positive_likelihood_ratio": _of_two("balanced_accuracy"),
    "neg_negative_likelihood_ratio": _of_two("balanced_accuracy"),
    "average_precision": _Demand(
        "1 as one of the names if there are two classes",
        lambda classes: len(classes) != 2 or 1 in classes,
        ("roc_auc", "f1_macro", "f1_weighted"),
    ),
    "neg_brier_score": _of_numbered("neg_log_loss"),
    "d2_brier_score": _of_numbered("neg_log_loss"),
}


def check_scoring(scoring: str | None, classes: Sequence[Value]) -> None:
    """Refuse a scorer that does not fit what is predicted.

    Parameters
    ----------
    scoring : str or None
        The name of a scorer; None is the usual score, which fits.
    classes : sequence
        The classes; none where numbers are predicted.
    """
    if scoring is None:
        return
    if scoring not in get_scorer_names():
        raise ParameterError(
            "scoring must be one of scikit-learn's scorers, such as "
            f"{quoted(_fitting(classes), _SHOWN)}. Got {scoring!r}."
        )
    of_numbers = scoring in _OF_NUMBERS
    # "samples" averages over several answers for each row.
    if of_numbers is bool(classes) or scoring.endswith("_samples"):
        predicted = "classes" if classes else "numbers"
        raise ParameterError(
            f"scoring must be a score of {predicted}, which are predicted here, such "
            f"as {quoted(_fitting(classes), _SHOWN)}. Got {scoring!r}."
        )
    demand = _DEMANDS.get(scoring)
    if demand is not None and not demand.fits(classes):
        raise ParameterError(
            f"scoring {scoring!r} takes {demand.words}. Got {len(classes):,}: "
            f"{quoted(classes)}. Choose {' or '.join(map(repr, demand.instead))}."
        )


def _fitting(classes: Sequence[Value]) -> list[str]:
    known = get_scorer_names()
    wanted = _OF_ANY_CLASSES if classes else _OF_NUMBERS
    return [name for name in wanted if name in known]
