"""How well the rules of a list do, one by one, and all of them beside the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from branchwise.counts import Floats
from branchwise.ruleset import Rules, escaped, premise
from branchwise.table.make import make_frame
from branchwise.table.schema import Value
from branchwise.words import aligned, amount, percent, word

#: What the table says in place of the conditions of its last line.
OTHERWISE = "otherwise"
#: ``str`` of a longer table leaves out what follows.
_SHOWN_RULES = 1000


@dataclass(frozen=True)
class Usage:
    """How rows fare: for each rule, and after them for the default, how many rows it
    decides about, and how many of those it is wrong about.

    ``weighted`` is, where rows had weights, the share of weight that the rules are
    right about, and that of the tree.
    """  # noqa: D205

    used: Floats
    errors: Floats
    tree_errors: float
    weighted: tuple[float, float] | None = None

    @property
    def accuracy(self) -> float:
        """The share of rows that the rules are right about."""
        return 1.0 - float(self.errors.sum()) / float(self.used.sum())

    @property
    def tree_accuracy(self) -> float:
        """The share of rows that the tree is right about."""
        return 1.0 - self.tree_errors / float(self.used.sum())


@dataclass(frozen=True)
class RuleTable:
    """How well the rules of a list do, and all of them beside the tree.

    ``str`` and ``to_markdown`` have all of it; ``to_columns`` and ``to_frame`` have a
    line for each rule and one for the default, ``summary`` compares with the tree.

    Attributes
    ----------
    rules : Rules
        The rules.
    default : value
        The class of rows that fulfil none of them.
    estimates : tuple of float
        The pessimistic error rates of the rules.
    tree_size : (int, int)
        How many rules and conditions the tree has.
    training, test : Usage
        How the training rows fare, and those of a test; None where there are none.
    """

    rules: Rules
    default: Value
    estimates: tuple[float, ...]
    tree_size: tuple[int, int]
    training: Usage
    test: Usage | None = None

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the lines of the rules as lists, a column each.

        ``cases``, ``coverage`` and ``confidence`` are of all training rows that fulfil
        a rule, ``used`` and ``errors`` of those that it decides about.
        """
        rules, left = self.rules, float(self.training.used[-1])
        columns: dict[str, list[Any]] = {
            "rule": list(range(1, len(rules) + 2)),
            "label": [*(rule.label for rule in rules), self.default],
            "cases": [*(rule.n for rule in rules), left],
            "coverage": [
                *(rule.coverage for rule in rules),
                left / float(self.training.used.sum()),
            ],
            "confidence": [
                *(rule.confidence for rule in rules),
                1 - float(self.training.errors[-1]) / left if left else None,
            ],
            "estimated_error": [*self.estimates, None],
            "used": self.training.used.tolist(),
            "errors": self.training.errors.tolist(),
        }
        if self.test is not None:
            columns["test_used"] = self.test.used.tolist()
            columns["test_errors"] = self.test.errors.tolist()
        columns["conditions"] = [*(premise(rule) for rule in rules), OTHERWISE]
        return columns

    def to_frame(self, library: str | None = None) -> Any:
        """Return the lines of the rules as a dataframe: see :meth:`Rules.to_frame`."""
        return make_frame(self.to_columns(), library)

    @property
    def summary(self) -> dict[str, dict[str, float]]:
        """Sizes and accuracies of the tree and of the rules; the default is no rule.

        Accuracies count rows; where rows had weights there are weighted ones, too.
        """
        n_conditions = sum(len(rule.conditions) for rule in self.rules)
        sides = {
            "tree": (*self.tree_size, self.training.tree_accuracy),
            "rules": (len(self.rules), n_conditions, self.training.accuracy),
        }
        found: dict[str, dict[str, float]] = {
            name: dict(zip(("rules", "conditions", "accuracy"), side, strict=True))
            for name, side in sides.items()
        }
        _add_weighted(found, "weighted_accuracy", self.training)
        if self.test is not None:
            found["tree"]["test_accuracy"] = self.test.tree_accuracy
            found["rules"]["test_accuracy"] = self.test.accuracy
            _add_weighted(found, "weighted_test_accuracy", self.test)
        return found

    def document(self) -> dict[str, Any]:
        """Tell all in plain values."""
        columns = self.to_columns()
        lines = [
            dict(zip(columns, line, strict=True))
            for line in zip(*columns.values(), strict=True)
        ]
        return {"lines": lines, "summary": self.summary}

    def _lines(self) -> list[list[str]]:
        """Return the head and the lines of the rules in words."""
        columns = self.to_columns()
        shown = {
            name.replace("_", " "): [_cell(name, cell) for cell in cells]
            for name, cells in columns.items()
        }
        return [list(shown), *map(list, zip(*shown.values(), strict=True))]

    def _summary_lines(self) -> list[list[str]]:
        sides = self.summary
        head = ["", *(name.replace("_", " ") for name in sides["tree"])]
        return [
            head,
            *(
                [side, *(_cell(name, number) for name, number in figures.items())]
                for side, figures in sides.items()
            ),
        ]

    def __str__(self) -> str:
        lines = self._lines()
        right = [name not in ("label", "conditions") for name in lines[0]]
        extra = len(lines) - 1 - _SHOWN_RULES
        if extra > 0:
            lines = lines[: 1 + _SHOWN_RULES]
        written = aligned(lines, right)
        if extra > 0:
            written.append(f"... ({extra:,} more; to_columns() has all of them)")
        summary = self._summary_lines()
        beside = aligned(summary, [False, *(True for _ in summary[0][1:])])
        return "\n".join([*written, "", *beside])

    def to_markdown(self) -> str:
        """Return both tables in Markdown, every name escaped."""
        return "\n\n".join(
            _markdown_table(lines) for lines in (self._lines(), self._summary_lines())
        )


def _add_weighted(found: dict[str, dict[str, float]], name: str, usage: Usage) -> None:
    """Add the accuracy by weight, where rows had weights."""
    if usage.weighted is not None:
        found["rules"][name], found["tree"][name] = usage.weighted


def _cell(name: str, cell: Any) -> str:
    """Write a cell of the table."""
    if cell is None:
        return ""
    if name in ("coverage", "confidence", "estimated_error"):
        return percent(cell)
    if name.endswith("accuracy"):
        return f"{cell:.4f}"
    if name in ("rule", "rules") or isinstance(cell, int):
        return f"{cell:,}" if name != "label" else word(cell)
    if name == "label":
        return word(cell)
    return cell if isinstance(cell, str) else amount(cell)


def _markdown_table(lines: Sequence[Sequence[str]]) -> str:
    head, *body = ([escaped(cell) for cell in line] for line in lines)
    rule = ["---" for _ in head]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *body))
