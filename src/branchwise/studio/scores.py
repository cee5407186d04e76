"""Scores of the tree of a session, beside the tree that its recipe grows by itself.

On held-out rows both trees are as they are. In cross-validation the session is replayed
on each training part, and the recipe grows its tree from the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.one_row import Framed
from branchwise.data.table_schema import Schema
from branchwise.engines.memory import Training
from branchwise.errors import ParameterError, counted
from branchwise.evaluation.folds import FoldAssignment
from branchwise.evaluation.metrics import Score, over_folds, over_rows, wilson
from branchwise.recipe import Recipe
from branchwise.studio.actions import Action, Grow
from branchwise.studio.edits import Editor, finished_tree
from branchwise.studio.nodes.node_paths import ROOT
from branchwise.studio.replay import replayed
from branchwise.studio.session_state import State
from branchwise.text.blocks import Block, Items, Paragraph, Table
from branchwise.text.document import Document
from branchwise.text.words import percent, rounded
from branchwise.tree.apply import Walker
from branchwise.tree.tree import Tree

METHODS = ("hold-out", "cross-validation")
_TREES = ("edited", "automatic")


@dataclass(frozen=True)
class SessionScore(Framed, Document):
    """The scores of the edited tree and of the automatic one, and their difference.

    The accuracy of classes, or the mean absolute error of numbers, which is better the
    smaller it is; intervals are of 95 %.
    """

    method: str
    metric: str
    rows: str
    edited: Score
    automatic: Score
    difference: Score
    misfits: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<SessionScore: {self.metric} {self._told(self.edited)} edited, "
            f"{self._told(self.automatic)} automatic>"
        )

    def _told(self, score: Score) -> str:
        if np.isnan(score.mean):
            return "not known"
        is_share = self.metric == "accuracy"
        return percent(score.mean) if is_share else rounded(score.mean, 4)

    def _interval(self, score: Score) -> str:
        if np.isnan(score.low):
            return ""
        low, high = (self._told(Score(bound)) for bound in (score.low, score.high))
        return f"{low} to {high}"

    def _scores(self) -> dict[str, Score]:
        names = (*_TREES, "difference")
        return {name: getattr(self, name) for name in names}

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the scores as lists, one for each column of the table."""
        scores = self._scores()
        bounds = ("mean", "low", "high")
        figures = {b: [getattr(s, b) for s in scores.values()] for b in bounds}
        return {"tree": list(scores), **figures}

    def blocks(self) -> Iterator[Block]:
        """Yield the scores, and what could not be replayed."""
        head = ["", self.metric, "interval"]
        rows = [
            [name, self._told(score), self._interval(score)]
            for name, score in self._scores().items()
        ]
        yield Paragraph(f"By {self.rows}.")
        yield Table(head, rows)
        if self.misfits:
            yield Paragraph("What could not be replayed:")
            yield Items(self.misfits)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        scores = {
            name: {
                "words": self._told(score),
                "value": _known(score.mean),
                "low": _known(score.low),
                "high": _known(score.high),
            }
            for name, score in self._scores().items()
        }
        return {
            "method": self.method,
            "metric": self.metric,
            "rows": self.rows,
            **scores,
            "misfits": list(self.misfits),
        }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


@dataclass(frozen=True)
class Scoring:
    """What is needed to score a session, so that it can be edited meanwhile.

    ``pause`` is called between steps; it may wait, or end the work by an error.
    """

    rows: Training
    held_out: Training | None
    schema: Schema
    recipe: Recipe
    first_recipe: Recipe
    actions: Sequence[tuple[Action, Sequence[str] | None]]
    tree: Tree
    seed: int
    threads: int
    pause: Callable[[], object] = bool

    def on_held_out(self) -> SessionScore:
        """Score both trees on the rows that were set aside."""
        if self.held_out is None:
            raise ParameterError(
                "method='hold-out' needs rows that were set aside: start the session "
                "with validation_fraction=0.3, or use method='cross-validation'."
            )
        editor = Editor(self.rows, self.schema, self.threads)
        automatic = self._automatic(editor)
        aside = self.held_out.take(np.flatnonzero(self.held_out.counted))
        scored = [self._scored(tree, aside) for tree in (self.tree, automatic)]
        told = f"a hold-out of {counted(aside.data.n_rows, 'row')}"
        difference = over_rows(scored[0] - scored[1])
        return self._result("hold-out", told, *map(self._of_rows, scored), difference)

    def _of_rows(self, values: Floats) -> Score:
        if self.recipe.is_regression:
            return over_rows(values)
        return wilson(float(values.sum()), len(values))

    def by_folds(self, folds: int, repeats: int) -> SessionScore:
        """Replay the session on training rows, and score both trees on the others."""
        rows = self.rows.take(np.flatnonzero(self.rows.counted))
        assignment = FoldAssignment(folds, repeats, seed=self.seed)
        means: list[list[float]] = []
        misfits: dict[str, int] = {}
        for kept, aside in assignment.splits(rows.target, rows.n_classes > 0):
            editor = Editor(rows.take(kept), self.schema, self.threads)
            given = editor, self.first_recipe, self.actions
            state, unfit = replayed(*given, self.pause)
            for each in unfit:
                misfits[each] = misfits.get(each, 0) + 1
            trees = finished_tree(editor, state), self._automatic(editor)
            test = rows.take(aside)
            means.append([float(self._scored(tree, test).mean()) for tree in trees])
        edited, automatic = np.array(means).T
        told = [f"{text} ({counted(n, 'fold')})" for text, n in misfits.items()]
        ratio = assignment.ratio
        scores = [over_folds(v, ratio) for v in (edited, automatic, edited - automatic)]
        return self._result(
            "cross-validation", assignment.described(), *scores, misfits=tuple(told)
        )

    def _result(
        self, method: str, rows: str, *scores: Score, **more: Any
    ) -> SessionScore:
        metric = "mean absolute error" if self.recipe.is_regression else "accuracy"
        most = np.inf if self.recipe.is_regression else 1.0
        edited, automatic = (score.clipped(0.0, most) for score in scores[:2])
        return SessionScore(method, metric, rows, edited, automatic, scores[2], **more)

    def _automatic(self, editor: Editor) -> Tree:
        """Return the tree that the recipe grows."""
        self.pause()
        state: State = editor.apply(editor.start(self.recipe), Grow(ROOT))
        return finished_tree(editor, state)

    def _scored(self, tree: Tree, test: Training) -> Floats:
        """Return whether each row is right, or by how much its number is off."""
        walker = Walker(test.columns, tree, self.recipe)
        if self.recipe.is_regression:
            off: Floats = np.abs(walker.quantities(test.data) - test.target)
            return off
        right: Floats = (walker.classify(test.data) == test.target).astype(np.float64)
        return right


def check_method(method: object, held_out: bool) -> str:
    """Return the method of scoring; by default the rows set aside, if there are any."""
    if method is None:
        return METHODS[0] if held_out else METHODS[1]
    if method not in METHODS:
        raise ParameterError(
            f"method must be 'hold-out' or 'cross-validation'. Got {method!r}."
        )
    return str(method)
