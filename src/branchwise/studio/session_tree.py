"""The tree of a session as it is now: its model, its nodes, and candidates for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Schema, Value
from branchwise.engines.memory import Training
from branchwise.errors import ParameterError, counted
from branchwise.fit import labelled, named_schema
from branchwise.model import Model
from branchwise.recipe import Recipe
from branchwise.studio.actions import Split, read_action
from branchwise.studio.edits import Editor, finished_tree
from branchwise.studio.history import Entry, History
from branchwise.studio.nodes.given_splits import given_split
from branchwise.studio.nodes.node_candidates import (
    Candidate,
    CandidateMaker,
    Candidates,
)
from branchwise.studio.nodes.node_paths import number_of, path_of
from branchwise.studio.nodes.node_search import NodeSearch
from branchwise.studio.replay import carried_out
from branchwise.studio.session_state import State
from branchwise.studio.starts import Start

if TYPE_CHECKING:
    from branchwise.explain.diff import ModelDiff

#: A node: its path, or the number that the model has for it.
Node = str | int


class SessionTree:
    """The tree of a session, and all that can be read from it."""

    def __init__(self, start: Start) -> None:
        self._start = start
        opened = start.opened()
        self._editor: Editor = opened.editor
        self._held_out = opened.held_out
        self.history = History()
        self._states: dict[int, State] = {0: self._editor.start(start.recipe)}
        self._models: dict[int, Model] = {}
        #: What of a file of actions, or of a session that is refitted, does not fit.
        self.misfits: list[str] = []
        self._last_search: tuple[tuple[int, str], NodeSearch] | None = None

    @property
    def state(self) -> State:
        """The tree as it is counted, with the locks and notes of its nodes."""
        return self._state_of(self.history.current)

    def _state_of(self, number: int) -> State:
        """Return the state after an entry, carrying out what was not yet."""
        for entry in self.history.way_to(number):
            if entry.number not in self._states:
                self._states[entry.number] = self._carried_out(entry)
        return self._states[number]

    def _carried_out(self, entry: Entry) -> State:
        """Carry out a recorded action; what does not fit is said, and left out."""
        before = self._states[entry.parent or 0]
        if entry.action is None:
            raise AssertionError("the start is known")
        given = self._editor, before, entry.action, entry.way
        state, misfit = carried_out(*given)
        if misfit is not None:
            self.misfits.append(f"{entry.number}. {misfit}")
        return state

    @property
    def schema(self) -> Schema:
        """The columns and classes of the table."""
        counts = self._editor.counts(self.state.recipe)
        schema = replace(self._editor.schema, columns=counts.columns)
        return named_schema(schema, self._start.target, self._start.target_name)

    @property
    def model(self) -> Model:
        """The model of the tree as it is now."""
        number = self.history.current
        if number not in self._models:
            self._models.clear()
            self._models[number] = self._model_of(self.state)
        return self._models[number]

    def _model_of(self, state: State) -> Model:
        tree = finished_tree(self._editor, state)
        return labelled(Model(self.schema, tree, state.recipe), self._start.labels)

    @property
    def recipe(self) -> Recipe:
        """The recipe of the model."""
        return self.state.recipe

    @property
    def locks(self) -> list[str]:
        """The paths of the locked nodes."""
        return sorted(self.state.locks)

    @property
    def notes(self) -> dict[str, str]:
        """The notes by path."""
        return dict(self.state.notes)

    def path(self, node: Node) -> str:
        """Return the path of a node.

        Parameters
        ----------
        node : str or int
            The path or the number of a node.

        Returns
        -------
        str
            Such as "/0/2".
        """
        return path_of(self.state.tree, node)

    def number(self, node: Node) -> int:
        """Return the number that the model has for a node.

        Parameters
        ----------
        node : str or int
            The path or the number of a node.

        Returns
        -------
        int
            0 is the root.
        """
        return number_of(self.state.tree, self.path(node))

    def origin(self, node: Node) -> str:
        """Return where the split of a node comes from.

        Parameters
        ----------
        node : str or int
            The path or the number of a node.

        Returns
        -------
        {"hand", "grown", "leaf"}
            A leaf has no split.
        """
        path = self.path(node)
        if not self.state.tree.n_children[number_of(self.state.tree, path)]:
            return "leaf"
        return "hand" if path in self.state.hand else "grown"

    def __repr__(self) -> str:
        tree = self.state.tree
        return (
            f"<Session at {self.history.current} of {len(self.history) - 1} actions: "
            f"{counted(tree.n_leaves, 'leaf', 'leaves')}, depth {tree.max_depth}>"
        )

    @property
    def training(self) -> Training:
        """The encoded rows that the tree is grown from."""
        return self._editor.counts(self.state.recipe).rows

    @property
    def validation_fraction(self) -> float | None:
        """The share of the rows that is set aside to score the tree."""
        return self._start.validation_fraction

    def cases(self, node: Node) -> tuple[Ints, Floats | None]:
        """Return the rows of a node, and their weights there.

        Parameters
        ----------
        node : str or int
            The path or the number of a node.

        Returns
        -------
        array of int, array of float or None
            Positions among the rows of :attr:`training`; None where each weighs 1.
        """
        state = self.state
        counts = self._editor.counts(state.recipe)
        cases = counts.cases(state.tree, self.path(node))
        weight = None if cases.weight is None else cases.weight * counts.grid.unit
        return cases.row, weight

    def candidates(self, node: Node) -> Candidates:
        """Return what every column can do for a node, the best first.

        Parameters
        ----------
        node : str or int
            The path or the number of a node; of one with branches, what would be in
            place of them.

        Returns
        -------
        Candidates
            Columns without a split are at the end, with the reason.
        """
        return self._maker(self.path(node)).every()

    def _maker(self, path: str) -> CandidateMaker:
        counts = self._editor.counts(self.recipe)
        return CandidateMaker(path, counts, self._search_at(path), self.schema)

    def _search_at(self, path: str) -> NodeSearch:
        """Return the search at a node, the last one if it is for the same node."""
        key = self.history.current, path
        if self._last_search is None or self._last_search[0] != key:
            search = self._editor.search(self.state, path)
            self._last_search = key, search
        return self._last_search[1]

    def preview(
        self,
        node: Node,
        column: str | int,
        threshold: Any = None,
        groups: Sequence[Sequence[Value]] | None = None,
        values: Any = None,
    ) -> Candidate:
        """Return the figures of a split without making it.

        Parameters
        ----------
        node : str or int
            The path or the number of a node.
        column : str or int
            The column, or its position.
        threshold, groups, values
            As in :meth:`split`.

        Returns
        -------
        Candidate
            Its scores and its children.
        """
        action = self._split_action(node, column, threshold, groups, values)
        maker = self._maker(action.node)
        given_action = self.schema, self._search_at(action.node), action
        index, given = given_split(*given_action)
        if given is not None:
            return maker.given(given)
        name = self.schema.columns[index].name
        return next(each for each in maker.every() if each.column == name)

    def _split_action(
        self, node: Node, column: Any, threshold: Any, groups: Any, values: Any
    ) -> Split:
        path = self.path(node)
        if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
            names = [each.name for each in self.schema.columns]
            if not 0 <= column < len(names):
                raise ParameterError(
                    f"column must be a name, or a position from 0 to {len(names) - 1}. "
                    f"Got {column!r}."
                )
            column = names[column]
        every = values
        if values is not None and not isinstance(values, bool):
            # All values that are there, each a branch: checked as groups are.
            groups, every = [[each] for each in values], False
        given = {
            "do": "split",
            "node": path,
            "column": column,
            "threshold": _as_text(threshold),
            "groups": groups,
            "values": bool(every),
        }
        return cast("Split", read_action(given))

    def _detailed(self, before: State, action: Split, made: State) -> Split:
        """Return a split with its threshold or groups, the same one on other rows.

        A branch for each value has none: other rows may have other values.
        """
        if action.threshold is not None or action.groups is not None or action.values:
            return action
        best = self.preview(action.node, action.column)
        groups = best.groups
        if groups is not None and all(len(group) == 1 for group in groups):
            return action
        full = replace(action, threshold=best.shown_threshold, groups=groups)
        try:
            same = self._editor.apply(before, full).tree == made.tree
        except ParameterError:
            return action
        return full if same else action

    def diff(self, other: SessionTree | Model) -> ModelDiff:
        """Compare the model with that of another session.

        Parameters
        ----------
        other : Session or Model
            The other one, which is the new one of both.

        Returns
        -------
        ModelDiff
            The differences, in words with ``str``.
        """
        return self.model.diff(other.model if isinstance(other, SessionTree) else other)


def _as_text(threshold: Any) -> Any:
    """Return dates as texts."""
    return threshold.isoformat() if hasattr(threshold, "isoformat") else threshold
