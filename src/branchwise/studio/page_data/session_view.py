"""A session as the page shows it: plain values about its tree and its nodes."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from branchwise import export as exports
from branchwise.data.table_schema import Value
from branchwise.errors import ParameterError, quoted
from branchwise.explain.alignment import Difference
from branchwise.model import Model
from branchwise.steps.result import worked_training
from branchwise.studio.actions import recipe_fields
from branchwise.studio.nodes.node_candidates import Candidate
from branchwise.studio.nodes.node_paths import ROOT, ancestors
from branchwise.studio.page_data.node_data import NodeCases, typed_row
from branchwise.studio.page_data.node_view import NodeViews, tree_description
from branchwise.studio.page_data.recipe_options import algorithms, recipe_of_options
from branchwise.studio.session import Session
from branchwise.text.conditions import condition_of, said
from branchwise.text.label_words import target_unit
from branchwise.text.signs import typeset_signs
from branchwise.text.words import word

#: Rows of a node that are shown by default.
_ROWS = 50
#: Exports that take rules that vote only.
_OF_RULES = ("dmn",)
#: What exports are called on the page, where that is not their name in capitals.
_EXPORTS = {"excel": "Excel", "javascript": "JavaScript", "python": "Python"}


class SessionView:
    """What the page shows of one session.

    Parameters
    ----------
    session : Session
        What the page works on.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        #: The class whose probability matters most, where there is one.
        self.positive: Value | None = None

    def choose(self, positive: Value | None) -> None:
        """Choose the positive class; of two it is the last one by default."""
        classes = self.session.schema.classes
        if positive is None:
            self.positive = classes[-1] if len(classes) == 2 else None
            return
        chosen = self._class(positive)
        if chosen not in classes:
            raise ParameterError(
                f"positive must be one of the classes {quoted(classes)}. Got "
                f"{positive!r:.60}."
            )
        self.positive = chosen

    # -- The tree

    def state(self) -> dict[str, Any]:
        """Return the whole tree, and what the page needs to show it."""
        session = self.session
        model = session.model
        return {
            **self.drawn(),
            "positive": self.positive,
            "recipe": recipe_fields(session.recipe),
            "recipes": algorithms(model.tree.is_regression),
            "validation_fraction": session.validation_fraction,
            "exports": [
                {
                    "target": name,
                    "words": _EXPORTS.get(name, name.upper()),
                    "options": target.choices,
                }
                for name, target in exports.TARGETS.items()
                if name not in _OF_RULES
            ],
            "locks": session.locks,
            "notes": session.notes,
            "misfits": session.misfits,
            **self._position(),
        }

    def drawn(self) -> dict[str, Any]:
        """Return what is needed to draw the tree."""
        return {**tree_description(self.session.model), "tree": self._nodes(ROOT)}

    def _nodes(self, path: str) -> list[dict[str, Any]]:
        session, state = self.session, self.session.state
        views = NodeViews(session.model, state.locks, state.notes, state.hand)
        return views.below(session.number(path), path)

    def _position(self) -> dict[str, Any]:
        """Return where the session is in its history."""
        history = self.session.history
        way = {0, *(entry.number for entry in history.way)}
        return {
            "history": [
                {
                    "number": entry.number,
                    "parent": entry.parent,
                    "text": entry.words,
                    "current": entry.number == history.current,
                    "on_way": entry.number in way,
                }
                for entry in history
            ],
            "number": history.current,
            "undo": history.undo_to is not None,
            "redo": history.redo_to is not None,
        }

    def _changed(self, path: str) -> dict[str, Any]:
        return {"at": path, "nodes": self._nodes(path), **self._position()}

    # -- Actions

    def apply(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an action; return the subtree that it has changed."""
        given = dict(action)
        if isinstance(given.get("recipe"), Mapping):
            regression = self.session.recipe.is_regression
            given["recipe"] = recipe_of_options(given["recipe"], regression)
        if "prediction" in given:
            given["prediction"] = self._class(given["prediction"])
        self.session.apply(given)
        return self._changed(str(given["node"]))

    def _class(self, given: Any) -> Any:
        """Return the class that the page calls so: it shows all of them as texts."""
        classes = self.session.schema.classes
        alike = [c for c in classes if given in (str(c), word(c))]
        return given if given in classes or not alike else alike[0]

    def move(self, make: Callable[[], None]) -> dict[str, Any]:
        """Go through the history; return the subtree that is another one now."""
        history = self.session.history
        before = {entry.number: entry for entry in history.way}
        make()
        after = {entry.number: entry for entry in history.way}
        changed = [
            entry.action.node
            for number, entry in {**before, **after}.items()
            if entry.action is not None and (number in before) != (number in after)
        ]
        return self._changed(_common(changed))

    # -- Splits

    def candidates(self, node: str) -> list[dict[str, Any]]:
        """Return what every column can do for a node, the best first."""
        return [self._shown(each) for each in self.session.candidates(node)]

    def preview(self, node: str, column: str, **how: Any) -> dict[str, Any]:
        """Return the figures of a split that is not made."""
        return self._shown(self.session.preview(node, column, **how))

    def _shown(self, candidate: Candidate) -> dict[str, Any]:
        """Return a candidate with the predictions of its children in words."""
        unit = target_unit(self.session.model.shown_schema)
        found = candidate.to_dict()
        for child in found["children"]:
            mean = child["mean"]
            told = word(child["prediction"]) if mean is None else unit.mean(mean)
            child["prediction"] = told
        return found

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.session.schema.columns]

    def check_column(self, column: str) -> int:
        """Return the position of a column."""
        if column not in self.columns:
            raise ParameterError(
                f"column must be one of {quoted(self.columns)}. Got {column!r:.60}."
            )
        return self.columns.index(column)

    def distribution(self, node: str, column: str) -> dict[str, Any]:
        """Return how the values of a column are distributed at a node."""
        index = self.check_column(column)
        return self._cases(node).distribution(index, self.session.recipe)

    def _cases(self, node: str) -> NodeCases:
        session = self.session
        return NodeCases(session.schema, session.training, *session.cases(node))

    def node(
        self, node: str, rows: int = _ROWS, worked: bool = False
    ) -> dict[str, Any]:
        """Return the rows of a node, its path in words, and its worked computation."""
        session = self.session
        number, model = session.number(node), session.model
        way, at = [], number
        while at:
            way.append(said(condition_of(model.shown_schema, model.tree, at)))
            at = int(model.tree.parent[at])
        found = {"path": way[::-1], **self._cases(node).table(rows)}
        if worked:
            training = session.training
            found["computation"] = worked_training(model, training, number).to_text()
        return found

    # -- Predictions, exports, files

    def explain(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the prediction for a row, its way through the tree, and why."""
        session, model = self.session, self.session.model
        typed = typed_row(session.schema, row)
        explanation: Any = model.explain(typed)
        arrivals = model.arrivals(typed)
        nodes = sorted({int(node) for node in model.visited(arrivals)[1]})
        return {
            "prediction": explanation.prediction,
            "probabilities": [
                (word(label), share)
                for label, share in sorted(
                    explanation.probabilities.items(), key=lambda pair: -pair[1]
                )
            ],
            "nodes": [session.path(node) for node in nodes],
            "steps": [str(step) for step in explanation.steps],
            "text": explanation.to_text(),
        }

    def diff(self, other: Session) -> dict[str, Any]:
        """Return how the tree of another session differs, and that tree.

        Differences have the paths of their nodes in both; numbers of cases that follow
        from other splits are not among them.
        """
        found = self.session.diff(other)
        marks = [
            {
                "kind": each.kind,
                "words": _typeset(each),
                "change": " → ".join(filter(None, each.typeset)),
                "here": _path_in(self.session, each.old_node),
                "there": _path_in(other, each.new_node),
            }
            for each in found.differences
            if each.kind != "size changed"
        ]
        told = {"words": found.to_text(), "misfits": other.misfits}
        return {**told, "marks": marks, "other": SessionView(other).drawn()}


def _typeset(difference: Difference) -> str:
    with typeset_signs():
        return str(difference).replace(" -> ", " → ")


def _path_in(session: Session, node: int | None) -> str | None:
    return None if node is None else session.path(node)


def exported(
    model: Model, target: str, options: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a model in another language, run and compared before."""
    chosen = exports.target_named(target)
    content, done = exports.exported(model, target, **options or {})
    binary = chosen.binary
    text = base64.b64encode(content).decode() if binary else content.decode()
    return {
        "name": f"tree{chosen.suffix}",
        "content": text,
        "encoding": "base64" if binary else "text",
        "verified": done.n_rows,
        "verification": str(done),
    }


def _common(paths: list[str]) -> str:
    """Return the lowest node that is at or above all of the nodes."""
    if not paths:
        return ROOT
    common = paths[0]
    for path in paths[1:]:
        above = {path, *ancestors(path)}
        while common not in above:
            common = next(ancestors(common))
    return common
