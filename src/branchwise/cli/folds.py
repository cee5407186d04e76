"""The options of verbs that fit and test, fold by fold."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from branchwise.cli.growing import Algorithm
from branchwise.errors import MOST_SEED

DEALING = "Fitting and testing"


def seed_option(panel: str) -> Any:
    """Return ``--seed``, listed under a heading."""
    return typer.Option(
        "--seed",
        min=0,
        max=MOST_SEED,
        metavar="N",
        help="Another number deals the rows in another way.",
        show_default="0",
        rich_help_panel=panel,
    )


AlgorithmOf = Annotated[
    Algorithm | None,
    typer.Option(
        "--algorithm",
        "-a",
        help="How trees are grown, as for branchwise fit.",
        show_default="id3; with --regression cart",
        rich_help_panel=DEALING,
    ),
]
Regression = Annotated[
    bool,
    typer.Option(
        "--regression",
        help="cart: predict the numbers of the target, not classes.",
        rich_help_panel=DEALING,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--cv",
        min=2,
        metavar="N",
        help="The number of folds, each with its share of every class.",
        show_default="10",
        rich_help_panel=DEALING,
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats",
        min=1,
        metavar="N",
        help="How many times the folds are dealt anew.",
        show_default="1",
        rich_help_panel=DEALING,
    ),
]
Seed = Annotated[int | None, seed_option(DEALING)]
FitsAtOnce = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        help="How many fits go side by side, -1 is one for each core; the result is "
        "the same.",
        show_default="1",
        rich_help_panel=DEALING,
    ),
]


def chosen_algorithm(given: Algorithm | None, regression: bool) -> Algorithm:
    """Return the algorithm: the one given, or the one that can do it."""
    if given is not None:
        return given
    return Algorithm.CART if regression else Algorithm.ID3
