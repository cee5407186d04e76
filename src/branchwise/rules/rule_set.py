"""Rule sets: the rules of a tree, sorted, filtered, and written in many formats.

Every format has the same rules in the same order with the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints
from branchwise.data.one_row import Framed
from branchwise.data.table_schema import Schema, Value
from branchwise.errors import ParameterError, counted, json_text, quoted
from branchwise.recipe import Recipe
from branchwise.rules.rule import Rule, tree_rules
from branchwise.text.as_html import as_html
from branchwise.text.blocks import Block, Items, Paragraph, Table
from branchwise.text.bounds import plain_value
from branchwise.text.document import Document
from branchwise.text.words import amount, percent, word
from branchwise.train.fitted_tree import FittedTree
from branchwise.tree.splits import EVERY_BRANCH, STOP
from branchwise.tree.tree import Tree

#: The name and version of the JSON document.
FORMAT, VERSION = "branchwise-rules", 1
#: What rules can be sorted by; the highest come first, of equals the first in the tree.
ORDERS: dict[str, Callable[[Rule], float]] = {
    "tree": lambda _: 0.0,
    "coverage": lambda rule: -rule.n,
    "confidence": lambda rule: -(rule.confidence or 0.0),
}
#: Longer sets of rules are not printed in full; to_text() has all of them.
_PRINTED_RULES = 1000
#: Notebooks show so many rules; to_html() and to_frame() have all of them.
_NOTEBOOK_RULES = 100
#: Columns of the dataframe that notebooks leave out: a page is small.
_NOT_IN_NOTEBOOKS = {"right", "low", "high", "node"}
#: Columns that are shares of 1.
_SHARES = {
    "coverage",
    "confidence",
    "estimated_error",
    "frequency",
    "weight_coverage",
    "weight_share",
}


class Rules(Framed, Document, Sequence[Rule]):
    """The rules of a tree: behaves like a list of :class:`Rule`, and can be written.

    ``note`` says what is done with values that no rule covers.
    """

    def __init__(self, rules: Iterable[Rule], schema: Schema, note: str = "") -> None:
        self._rules = tuple(rules)
        #: Where each rule was before anything was sorted or left out.
        self._position: Sequence[int] = range(len(self._rules))
        self.schema = schema
        self.note = note

    @overload
    def __getitem__(self, index: int) -> Rule: ...
    @overload
    def __getitem__(self, index: slice) -> Rules: ...
    def __getitem__(self, index: int | slice) -> Rule | Rules:
        """Return a rule, or some of the rules."""
        if isinstance(index, slice):
            return self._some(range(len(self))[index])
        return self._rules[index]

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Rules, list, tuple)):
            return self._rules == tuple(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Iterable[Rule]) -> list[Rule]:
        return [*self, *other]

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'rule')} of branchwise>"

    def __str__(self) -> str:
        lines = [str(rule) for rule in self._rules[:_PRINTED_RULES]]
        if len(self) > _PRINTED_RULES:
            lines.append(f"... ({len(self):,} rules; to_text() has all of them)")
        return "\n".join(lines)

    def _some(self, chosen: Sequence[int]) -> Rules:
        """Return some of the rules, in this order."""
        some = Rules([self._rules[at] for at in chosen], self.schema, self.note)
        some._position = [self._position[at] for at in chosen]
        return some

    def sort_by(self, order: str) -> Rules:
        """Return the rules in another order.

        Parameters
        ----------
        order : {"coverage", "confidence", "tree"}
            Those first that cover most, or are right most often, or that the tree
            has first. Of equals the first in the tree comes first. Where numbers are
            predicted there is no confidence.

        Returns
        -------
        Rules
            The same rules.
        """
        if order not in ORDERS:
            raise ParameterError(
                f"order must be {' or '.join(map(repr, ORDERS))}. Got {order!r} "
                "instead."
            )
        if order == "confidence" and not self.schema.classes:
            raise ParameterError(
                "order 'confidence' needs rules that predict classes. These predict "
                "numbers; use 'coverage' or 'tree'."
            )
        value = ORDERS[order]
        return self._some(
            sorted(
                range(len(self)),
                key=lambda at: (value(self._rules[at]), self._position[at]),
            )
        )

    def for_class(self, label: Value) -> Rules:
        """Return the rules that predict a class.

        Parameters
        ----------
        label : class
            Which class they predict.

        Returns
        -------
        Rules
            In the same order.
        """
        if not self.schema.classes:
            raise ParameterError(
                "for_class needs rules that predict classes. These predict numbers; "
                "filter them by rule.label."
            )
        if label not in self.schema.classes:
            raise ParameterError(
                f"label must be one of the classes {quoted(self.schema.classes, 20)}. "
                f"Got {label!r} instead."
            )
        return self._some([at for at, rule in enumerate(self) if rule.label == label])

    def to_text(self) -> str:
        """Return a numbered sentence for each rule, and the note."""
        return "\n".join(self._text_lines())

    def _text_lines(self) -> Iterator[str]:
        width = len(str(len(self)))
        for number, rule in enumerate(self, 1):
            yield f"{number:>{width}}. {rule.sentence()}"
        yield from (f"\n{line}" for line in self._closing())

    def blocks(self) -> Iterator[Block]:
        """Yield a numbered list of sentences, and the note."""
        yield Items([rule.sentence() for rule in self], numbered=True)
        yield from map(Paragraph, self._closing())

    def _repr_html_(self) -> str:
        """Show a table of the rules; of many rules the first."""
        columns = {
            name: cells
            for name, cells in self.to_columns().items()
            if name not in _NOT_IN_NOTEBOOKS
        }
        shown: list[Block] = [table_of(columns, _NOTEBOOK_RULES)]
        extra = len(self) - _NOTEBOOK_RULES
        if extra > 0:
            shown.append(Paragraph(f"... ({extra:,} more; to_frame() has all of them)"))
        return as_html([*shown, *map(Paragraph, self._closing())])

    def _closing(self) -> list[str]:
        """Return the lines after the rules."""
        return [self.note] if self.note else []

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the table of the rules as lists, a column each.

        Where cases had weights, ``weight_coverage`` is the share of all weight that a
        rule covers, and ``weight_share`` the share of that which has its class; all
        other columns count cases, whatever they weigh.
        """
        columns: dict[str, list[Any]] = {
            "rule": list(range(1, len(self) + 1)),
            "conditions": [rule.premise for rule in self],
        }
        names = ["label", "cases", "right", "coverage", "confidence", "low", "high"]
        if not self.schema.classes:
            columns["mean"] = [float(rule.label) for rule in self]
            names = ["deviation", "cases", "coverage"]
            if any(rule.interval is not None for rule in self):
                names += ["low", "high"]
        if any(rule.weight is not None for rule in self):
            names.append("weight_coverage")
            if self.schema.classes:
                names.append("weight_share")
        for name in [*names, "node"]:
            attribute = "n" if name == "cases" else name
            columns[name] = [getattr(rule, attribute) for rule in self]
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return the rules in plain values, as ``to_json`` writes them."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "target": self.schema.target,
            "classes": list(self.schema.classes),
            "note": self.note,
            "rules": [_described(rule) for rule in self],
        }

    def to_json(self) -> str:
        """Return the rules as a JSON document, a line each, every number exact."""
        whole = self.to_dict()
        lines = [json_text(rule) for rule in whole["rules"]]
        # Indented as a whole, it would take ten times as long.
        head = json_text({**whole, "rules": []}, indent=2)
        before, after = head.split('"rules": []')
        written = ",\n    ".join(lines)
        return f'{before}"rules": [\n    {written}\n  ]{after}'


def table_of(columns: dict[str, list[Any]], limit: int | None = None) -> Table:
    """Return the columns of rules in words."""
    shown = {
        name.replace("_", " "): [cell_of(name, cell) for cell in cells[:limit]]
        for name, cells in columns.items()
    }
    words = [at for at, name in enumerate(shown) if name in ("label", "conditions")]
    return Table(list(shown), list(zip(*shown.values(), strict=True)), words)


def cell_of(name: str, cell: Any) -> str:
    """Write a cell of a column."""
    if cell is None:
        return ""
    if name in _SHARES:
        return percent(cell)
    if name.endswith("accuracy"):
        return f"{cell:.4f}"
    if name == "label":
        return word(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    return cell if isinstance(cell, str) else amount(cell)


def rules_of(model: FittedTree, simplify: bool) -> Rules:
    """Return the rules of a tree."""
    schema, tree = model.schema, model.tree
    rules = tree_rules(schema, tree, simplify, model.reasons)
    return Rules(rules, schema, tree_note(schema, tree, model.recipe))


def _described(rule: Rule) -> dict[str, Any]:
    """Return a rule in plain values."""
    described: dict[str, Any] = {
        "node": rule.node,
        "conditions": [
            {"column": c.column, "op": c.op, "value": plain_value(c.of, c.value)}
            for c in rule.conditions
        ],
    }
    if rule.deviation is not None:
        described |= {"mean": float(rule.label), "deviation": rule.deviation}
        described |= {"cases": rule.n, "coverage": rule.coverage}
        if rule.interval is not None:
            described["interval"] = rule.interval
    else:
        described |= {
            "label": rule.label,
            "cases": rule.n,
            # A list, because the keys of a JSON object can only be text.
            "counts": [
                {"class": label, "cases": cases} for label, cases in rule.counts.items()
            ],
            "coverage": rule.coverage,
            "confidence": rule.confidence,
            "interval": rule.interval,
        }
    described |= weight_fields(rule)
    if rule.reason:
        described["decided_by"] = rule.reason
    return {**described, "text": str(rule), "sentence": rule.sentence()}


def weight_fields(rule: Rule) -> dict[str, Any]:
    """Return the weights of a rule in plain values; empty without weights."""
    if rule.weight is None:
        return {}
    fields: dict[str, Any] = {
        "weight": rule.weight,
        "weight_coverage": rule.weight_coverage,
    }
    if rule.weights:
        fields["weight_share"] = rule.weight_share
        fields["weights"] = [
            {"class": label, "weight": weight} for label, weight in rule.weights.items()
        ]
    return fields


def tree_note(schema: Schema, tree: Tree, recipe: Recipe) -> str:
    """Write what a tree does with missing and unseen values."""
    splitting = np.flatnonzero(tree.n_children)
    if not len(splitting):
        return ""
    missing = tree.missing_to[splitting]
    own = tree.n_codes[tree.first_child[splitting] + np.maximum(missing, 0)] == 0
    gone = _route(missing, recipe.missing == "error", own, tree.surrogates is not None)
    numeric = np.array([column.is_numeric for column in schema.columns])
    by_value = ~numeric[tree.column[splitting]]
    if not by_value.any():
        return f"The rules are about known values. A missing value {gone}."
    unseen = tree.unseen_to[splitting][by_value]
    new = _route(unseen, recipe.unseen == "error", own[by_value])
    start = "The rules are about known values. A missing value"
    routes = (
        f"{start}, or one that training did not have, {gone}."
        if gone == new
        else f"{start} {gone}; one that training did not have {new}."
    )
    return (
        f"{routes} A value that training had, but not at this split, gets the "
        "prediction of the node."
    )


def _route(
    route: Ints, rejected: bool, own: NDArray[np.bool_], surrogates: bool = False
) -> str:
    """Write where a value goes at the splits."""
    if rejected:
        return "is refused"
    routes = []
    if surrogates:
        routes.append("is replaced by other columns (surrogates)")
    if ((route >= 0) & own).any():
        routes.append("follows the branch of missing values, which has its own rules")
    if ((route >= 0) & ~own).any():
        routes.append("follows one of the branches")
    if (route == EVERY_BRANCH).any():
        routes.append("goes down every branch, by weight")
    if (route == STOP).any():
        routes.append("stops at the split and gets the prediction of that node")
    return ", or ".join(routes)
