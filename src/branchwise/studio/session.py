"""Sessions: a tree that is grown by hand, step by step."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from branchwise.data.table_schema import Value
from branchwise.errors import DataError, ParameterError
from branchwise.recipe import C45, Recipe
from branchwise.studio.actions import (
    Action,
    Grow,
    Lock,
    Prune,
    Split,
    Unlock,
    read_action,
)
from branchwise.studio.history import (
    Journal,
    Move,
    Step,
    check_new,
    lines_text,
    read_lines,
    write_lines,
)
from branchwise.studio.replay import check_keep, kept_actions, way_to
from branchwise.studio.session_tree import Node, SessionTree
from branchwise.studio.starts import Start

if TYPE_CHECKING:
    from branchwise.studio.scores import SessionScore


class Session(SessionTree):
    """A tree that is grown by hand; :func:`~branchwise.grow_by_hand` starts one.

    Every action gives a new tree, and :attr:`model` is an ordinary model at every step.
    A node is named by its path, "/" being the root and "/0/2" the third branch of its
    first branch, or by the number that the model has for it.
    """

    def __init__(self, start: Start, journal: str | os.PathLike[str] | None) -> None:
        super().__init__(start)
        self._records: list[dict[str, Any]] = []
        self._journal: Journal | None = None
        if journal is not None:
            self._journal = Journal(journal, self._lines())

    def split(
        self,
        node: Node,
        column: str | int,
        threshold: Any = None,
        groups: Sequence[Sequence[Value]] | None = None,
        values: Any = None,
    ) -> None:
        """Split a node on a column, in place of the branches that it may have.

        Parameters
        ----------
        node : str or int
            The path or the number of a node.
        column : str or int
            The column, or its position. Alone, the best split of the column is made.
        threshold : number, date or value, optional
            Of numbers: those up to it go down the first branch. Of ordered categories
            the last value of the first branch.
        groups : list of lists of values, optional
            The values of each branch; all that have rows at the node must be in one.
            Branches are in the order of their first values in the column.
        values : bool or list, optional
            True for one branch for each value that has rows at the node.
        """
        self._do(self._split_action(node, column, threshold, groups, values))

    def grow(
        self,
        node: Node = "/",
        recipe: Recipe | None = None,
        levels: int | None = None,
        leaves: bool = False,
    ) -> None:
        """Grow below a node by a recipe, in place of the branches that it may have.

        Locked nodes stay, with the splits that lead to them. Limits of the recipe refer
        to all rows, and ``max_depth`` to the whole tree.

        Parameters
        ----------
        node : str or int
            The path or the number of a node.
        recipe : Recipe or None
            By default that of the session; that of growth at the root becomes it.
        levels : int or None
            How many levels are grown, without pruning them. None grows and prunes as
            the recipe says.
        leaves : bool
            True grows all leaves at and below the node, in one step, and keeps the
            splits that there are.
        """
        given: dict[str, Any] = {"do": "grow", "node": self.path(node)}
        given |= {"levels": levels, "leaves": leaves}
        if recipe is not None and not isinstance(recipe, Recipe):
            raise ParameterError(
                f"recipe must be a Recipe. Got {type(recipe).__name__}."
            )
        given["recipe"] = recipe
        self._do(read_action(given))

    def prune(self, node: Node) -> None:
        """Turn a node into a leaf.

        Parameters
        ----------
        node : str or int
            The path or the number of a node that has branches.
        """
        self._do(Prune(self.path(node)))

    def lock(self, node: Node) -> None:
        """Keep a node and what is below it, until it is unlocked.

        Parameters
        ----------
        node : str or int
            The path or the number of a node.
        """
        self._do(Lock(self.path(node)))

    def unlock(self, node: Node) -> None:
        """Release a lock.

        Parameters
        ----------
        node : str or int
            The path or the number of a locked node.
        """
        self._do(Unlock(self.path(node)))

    def relabel(self, node: Node, prediction: Value) -> None:
        """Let a node predict another class, or number, than its rows say.

        Parameters
        ----------
        node : str or int
            The path or the number of a node.
        prediction : class or number
            One of the classes; where numbers are predicted, any number.
        """
        given = {"do": "relabel", "node": self.path(node), "prediction": prediction}
        self._do(read_action(given))

    def note(self, node: Node, text: str) -> None:
        """Write a note at a node; an empty text removes it.

        Parameters
        ----------
        node : str or int
            The path or the number of a node.
        text : str
            Plain text; the model does not have it.
        """
        self._do(read_action({"do": "note", "node": self.path(node), "text": text}))

    def set_missing(self, node: Node, to: str | int) -> None:
        """Send the missing values of the column of a node down another branch.

        Parameters
        ----------
        node : str or int
            The path or the number of a node that has branches.
        to : {"largest", "stop", "every"} or int
            The branch of most weight, no branch (the node predicts), all branches by
            their weights, or the position of a branch.
        """
        self._do(read_action({"do": "set_missing", "node": self.path(node), "to": to}))

    def apply(self, action: Mapping[str, Any]) -> None:
        """Carry out an action that is given in plain values.

        Parameters
        ----------
        action : dict
            Such as ``{"do": "split", "node": "/", "column": "age", "threshold": 30}``.
        """
        self._do(read_action(action))

    def _do(self, action: Action) -> None:
        before = self.state
        state = self._editor.apply(before, action)
        if isinstance(action, Split):
            action = self._detailed(before, action, state)
        way = way_to(self._editor.schema, before.tree, action.node)
        self._record(Step(action, way).to_dict())
        # Before the history tells its listeners of the entry.
        self._states[len(self.history)] = state
        self.history.add(action, way)

    def _record(self, record: dict[str, Any]) -> None:
        if self._journal is not None:
            self._journal.append(record)
        self._records.append(record)

    def undo(self) -> None:
        """Go back to before the last action."""
        self._move("undo")

    def redo(self) -> None:
        """Do again what was undone last."""
        self._move("redo")

    def goto(self, number: int) -> None:
        """Go to any entry of the history.

        Parameters
        ----------
        number : int
            Its number; 0 is the start.
        """
        self._move("goto", number)

    def _move(self, move: str, number: object = None) -> None:
        to = self.history.check_move(move, number)
        self._state_of(to)
        self._record(Move(move, to if move == "goto" else None).to_dict())
        self.history.move(to, move)

    def _lines(self) -> list[dict[str, Any]]:
        return [self._start.header(), *self._records]

    def to_text(self) -> str:
        """Return the content of the file that :meth:`save` writes."""
        return lines_text(self._lines())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all actions into a file; :func:`~branchwise.open_session` reads it.

        Parameters
        ----------
        path : str or path
            The file, such as "x.actions.json"; what it held is replaced.
        """
        write_lines(path, self._lines())

    def script(self) -> str:
        """Return Python code that replays what led to the tree as it is now.

        Returns
        -------
        str
            It needs a variable ``table``, and ``target`` and ``sample_weight`` where
            these were not given by name; it makes ``session`` and ``model``.
        """
        actions = [e.action for e in self.history.way if e.action is not None]
        recipes = (a.recipe for a in actions if isinstance(a, Grow))
        lines = self._start.to_python(recipe for recipe in recipes if recipe)
        lines += [action.to_python() for action in actions]
        return "\n".join([*lines, "model = session.model", ""])

    def close(self) -> None:
        """End the journal: what follows is not written into it."""
        self._journal = None

    def continue_journal(self, path: str | os.PathLike[str]) -> None:
        """Write all actions into a file, and further ones as they are done."""
        self._journal = Journal(path, self._lines())

    def replay(self, steps: Sequence[Step | Move], name: str) -> None:
        """Carry out the actions and moves of a file; misfits are collected."""
        for at, step in enumerate(steps, 2):
            if isinstance(step, Step):
                self.history.add(step.action, step.way)
            else:
                try:
                    to = self.history.check_move(step.move, step.number)
                except ParameterError as error:
                    raise DataError(f"{name}, line {at}: {error}") from None
                self.history.move(to, step.move)
            self._records.append(step.to_dict())
        self._state_of(self.history.current)

    def refit(
        self, table: object, keep: str = "locked", target: object = None, **options: Any
    ) -> Session:
        """Start a session on other rows with the decisions of this one.

        What no longer fits is left out and said in ``misfits``.

        Parameters
        ----------
        table : table or file
            The rows, with the same columns.
        keep : {"locked", "all", "none"}
            Keep the splits of locked nodes, of what is below them and of the way to
            them, and grow the rest by the recipe; carry out all actions again, in which
            grown parts are grown from the new rows; or grow all of the tree.
        target : sequence or None
            The classes or numbers, where they were not given by name.
        **options
            Options that replace those of this session.

        Returns
        -------
        Session
            The other one; this one stays as it is.
        """
        check_keep(keep)
        start = self._start.on(table, target, options)
        if keep == "all":
            given = [Step(e.action, e.way) for e in self.history.way if e.action]
        else:
            state = self.state
            if keep == "none":
                state = replace(state, locks=frozenset(), notes={})
            given = [Step(action, None) for action in kept_actions(self.schema, state)]
        return _replayed(start, given, "refit")

    def score(
        self, method: str | None = None, folds: int = 5, repeats: int = 3
    ) -> SessionScore:
        """Score the tree, and the one that the recipe grows by itself.

        On rows that were set aside, no decision has seen what it is scored by, unless
        it was made to raise this very score. In cross-validation the actions are
        replayed on each training part, so that grown parts, counts and predictions come
        from these rows alone; but splits that were chosen by hand were chosen in the
        sight of all rows, and their score is too good by as much as that helped.

        Parameters
        ----------
        method : {"hold-out", "cross-validation"} or None
            By default the rows that ``validation_fraction`` has set aside, if there are
            any.
        folds, repeats : int
            Of cross-validation.

        Returns
        -------
        SessionScore
            Accuracies, or mean absolute errors, with intervals of 95 %, and their
            difference, row by row or fold by fold.
        """
        return self.scoring(method, folds, repeats)()

    def scoring(
        self,
        method: str | None = None,
        folds: int = 5,
        repeats: int = 3,
        pause: Callable[[], object] = bool,
    ) -> Callable[[], SessionScore]:
        """Return a function that scores the tree as it is now, whatever follows.

        Parameters
        ----------
        method, folds, repeats, pause
            As in :meth:`score`; ``pause`` is called between the steps of the work.

        Returns
        -------
        callable
            It returns the score, and may run in another thread.
        """
        from branchwise.studio import scores  # noqa: PLC0415  (slow to import)

        method = scores.check_method(method, self._held_out is not None)
        scoring = scores.Scoring(
            self._editor.rows,
            self._held_out,
            self._editor.schema,
            self.recipe,
            self._start.recipe,
            [(e.action, e.way) for e in self.history.way if e.action is not None],
            self.model.tree,
            self._start.random_state,
            self._editor.threads,
            pause,
        )
        if method == "hold-out":
            return scoring.on_held_out
        return partial(scoring.by_folds, folds, repeats)


def grow_by_hand(
    table: object,
    target: object,
    recipe: Recipe = C45,
    *,
    validation_fraction: float | None = None,
    journal: str | os.PathLike[str] | None = None,
    random_state: int = 0,
    target_name: str | None = None,
    labels: object = None,
    **options: Any,
) -> Session:
    """Start to grow a tree by hand.

    Parameters
    ----------
    table : table or file
        As :func:`~branchwise.fit_tree` takes it; the rows are in memory.
    target : sequence or str
        The class or number of each row, or the name of the column that has it.
    recipe : Recipe, default=C45
        What scores splits, sends missing values, and grows parts of the tree.
    validation_fraction : float or None
        The share of the rows that is set aside to score the tree, by class.
    journal : str, path or None
        A new file that gets every action before the call that does it returns.
    random_state : int, default=0
        Random seed of the rows that are set aside.
    target_name : str or None
        The name of the target in views.
    labels : dict, path or None
        Titles, units and words for values in views.
    **options
        ``sample_weight``, ``categorical_features``, ``categories``, ``order``,
        ``classes``, ``ignore``, ``class_weight``, ``date_features`` and ``n_jobs``, as
        :func:`~branchwise.fit_tree` has them.

    Returns
    -------
    Session
        With all rows in one leaf.
    """
    if journal is not None:
        check_new(journal)
    start = Start.of(
        table,
        target,
        recipe,
        options,
        validation_fraction=validation_fraction,
        random_state=random_state,
        target_name=target_name,
        labels=labels,
    )
    return Session(start, journal)


def open_session(
    path: str | os.PathLike[str],
    table: object,
    target: object = None,
    *,
    journal: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Session:
    """Open a file of actions on a table: the same one, or one with new rows.

    On the same rows the tree is the same. On others, decisions by hand are carried out
    as they were recorded, and grown parts are grown from the new rows. What no longer
    fits is left out and said in ``misfits``.

    Parameters
    ----------
    path : str or path
        What ``session.save`` or ``journal`` wrote; a last line that is truncated, as by
        a power failure, is left out.
    table : table or file
        The rows.
    target : sequence or None
        The classes or numbers, where they were not given by name.
    journal : str, path or None
        A file for all actions; it may be ``path``, which is then continued.
    **options
        Options that replace those of the file, such as ``sample_weight``, which it
        does not hold unless it is a name.

    Returns
    -------
    Session
        At the same place of its history.
    """
    name = Path(path).name
    header, steps = read_lines(Path(path).read_bytes(), name)
    start = Start.read(header, table, target, options, f"{name}, line 1")
    if journal is not None and Path(journal).resolve() != Path(path).resolve():
        check_new(journal)
    session = _replayed(start, steps, name)
    if journal is not None:
        session.continue_journal(journal)
    return session


def _replayed(start: Start, steps: Sequence[Step | Move], name: str) -> Session:
    """Return a new session after the actions and moves of a file."""
    actions = (step.action for step in steps if isinstance(step, Step))
    start, absent = start.with_values_of(actions)
    session = Session(start, None)
    session.misfits += absent
    session.replay(steps, name)
    return session
