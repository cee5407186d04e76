"""What missing and unseen values do: the one place that says so.

Both share a vocabulary:

========== ====================================================================
branch     missing is a value of its own, with its own branch; an unseen value
           is taken for a missing one, whatever those do
split      the case goes down every branch, by the branches' shares of weight
largest    the case follows the branch with the most weight (of equals, the first)
node       the case stops at the node and gets the node's answer
error      not allowed: fitting or predicting raises
learned    missing values only: the case follows the branch where training found
           the missing cases of the node to fit better; where there were none, the
           branch with the most weight
surrogate  missing values only: other columns say which branch the case would have
           followed; where they are missing, too, the branch with the most weight
========== ====================================================================

During growth the policies become two numbers for each node, ``missing_to`` and
``unseen_to``: a branch, :data:`STOP` or :data:`EVERY_BRANCH`. Prediction and
exports read those numbers, and the surrogates of nodes that have some, and need to
know of no policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from branchwise.counts import Floats, Ints
from branchwise.errors import DataError
from branchwise.table.schema import Column, Columns
from branchwise.ties import first_best

Policy = Literal["branch", "split", "largest", "node", "error", "learned", "surrogate"]
#: What a value may do that training did not have.
UNSEEN_POLICIES: tuple[Policy, ...] = ("branch", "split", "largest", "node", "error")
#: What these do is learnt from missing values, and only for two branches.
TWO_WAY_POLICIES: tuple[Policy, ...] = ("learned", "surrogate")
#: What a missing value may do.
POLICIES: tuple[Policy, ...] = UNSEEN_POLICIES + TWO_WAY_POLICIES

#: The case stops here and gets this node's answer.
STOP = -1
#: The case goes down every branch, by weight.
EVERY_BRANCH = -2


def routes(
    missing: Policy, unseen: Policy, sizes: Floats, starts: Ints, missing_branch: Ints
) -> tuple[Ints, Ints]:
    """Return ``missing_to`` and ``unseen_to`` for nodes that are split.

    ``sizes`` are the weights of all branches, node after node, a node's first at
    ``starts``; ``missing_branch`` is the branch of the missing values, be it their
    own or learnt, or STOP.
    """
    largest: Ints = first_best(sizes, starts, np.zeros(len(starts))) - starts
    missing_to = _route(missing, largest, missing_branch)
    if unseen == "branch":
        return missing_to, missing_to
    return missing_to, _route(unseen, largest, missing_branch)


def _route(policy: Policy, largest: Ints, missing_branch: Ints) -> Ints:
    if policy == "branch":
        return missing_branch
    if policy == "learned":
        return np.where(missing_branch == STOP, largest, missing_branch)
    if policy in ("largest", "surrogate"):
        return largest
    return np.full_like(largest, EVERY_BRANCH if policy == "split" else STOP)


def refuse_missing(columns: Iterable[tuple[int, Column]], data: Columns) -> None:
    """Raise for the first missing cell, as the "error" policy asks."""
    for index, column in columns:
        cells = data.data[index]
        gone = np.isnan(cells) if column.is_numeric else cells == column.missing_code
        if gone.any():
            raise DataError(
                f"Column {column.name!r} is missing in row {int(np.argmax(gone))}, and "
                "missing='error' allows no missing values. Fill the gap or choose "
                "another policy: 'branch', 'split', 'largest' or 'node'."
            )
