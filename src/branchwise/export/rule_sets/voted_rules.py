"""Rules that vote, as the plan of their ensemble has them."""

from __future__ import annotations

from dataclasses import dataclass

from branchwise.data.arrays import TIE
from branchwise.errors import ExportError
from branchwise.export.plan import Plan, PlanSplit


@dataclass(frozen=True)
class VotedRule:
    """A rule: the class that it votes for, its vote, and the branches that it takes."""

    label: int
    vote: float
    path: tuple[tuple[PlanSplit, int], ...]


def check_rules(plan: Plan, called: str) -> None:
    """Refuse trees and ensembles of trees; ``called`` names the export."""
    if not plan.is_rule_set:
        raise ExportError(
            f"{called} takes rules that vote, those of RuleClassifier. Got: "
            f"{plan.about}. Fit RuleClassifier (branchwise fit --algorithm rules), or "
            "export to another target."
        )


def voted_rules(plan: Plan) -> list[VotedRule]:
    """Return the rules in the order of the plan."""
    found = []
    for at, tree in enumerate(plan.trees):
        for position, node in enumerate(tree.nodes):
            if node.number:
                label = at % plan.n_sums
                if len(plan.classes) == 2:  # the log odds of the second class
                    label = int(node.number > 0)
                path = _path(tree, position)
                found.append(VotedRule(label, abs(node.number), path))
    return found


def _path(tree: Plan, position: int) -> tuple[tuple[PlanSplit, int], ...]:
    path = []
    while (parent := tree.parents[position]) >= 0:
        branch = position - tree.nodes[parent].first_child
        path.append((tree.split_of(parent), branch))
        position = parent
    return tuple(reversed(path))


def first_scores(plan: Plan) -> list[float]:
    """Return the scores before any vote, of which the smallest is 0.

    Those of earlier classes are larger by less than the difference that counts as a
    tie: of equal classes the first is predicted.
    """
    scores = [0.0, *plan.initial] if len(plan.classes) == 2 else list(plan.initial)
    least, n = min(scores), len(scores)
    return [score - least + TIE * (n - 1 - at) / n for at, score in enumerate(scores)]
