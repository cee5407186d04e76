"""Actions of a session: from and to plain values, checked; in Python and in words.

An action holds texts, numbers and lists only: a file of actions never runs code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from branchwise.data.table_schema import Value
from branchwise.errors import ParameterError, quoted
from branchwise.recipe import C45, CART, FIELDS, ID3, Recipe
from branchwise.studio.nodes.node_paths import is_path
from branchwise.text.words import listed, word

#: Limits of what a file may hold: characters of a text, values of a list.
LONGEST_TEXT = 10_000
MOST_VALUES = 1_000_000
#: Where missing values can be sent, besides a branch.
ROUTES = ("largest", "stop", "every")


@dataclass(frozen=True)
class Action:
    """What is done at a node."""

    do: ClassVar[str]
    node: str

    def to_dict(self) -> dict[str, Any]:
        """Return the action in plain values, without what is not given."""
        given = {
            field.name: _plain(getattr(self, field.name))
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }
        return {"do": self.do, **given}

    def to_python(self, session: str = "session") -> str:
        """Return the call that does the same."""
        given = self.to_dict()
        del given["do"]
        first = [repr(given.pop("node"))]
        first += [
            repr(given.pop(field.name))
            for field in fields(self)[1:]
            if field.default is MISSING
        ]
        if isinstance(recipe := getattr(self, "recipe", None), Recipe):
            given["recipe"] = _Verbatim(recipe_in_python(recipe))
        others = [f"{name}={value!r}" for name, value in given.items()]
        return f"{session}.{self.do}({', '.join([*first, *others])})"

    @property
    def words(self) -> str:
        """The action in a few words."""
        return f"{self.do} {self.node}"


class _Verbatim(str):
    """Code, whose ``repr`` is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Split(Action):
    """Split a node on a column; without more the column's best split is made."""

    do = "split"
    column: str
    threshold: Value | None = None
    groups: tuple[tuple[Value, ...], ...] | None = None
    values: bool = False

    @property
    def words(self) -> str:
        """The action in a few words."""
        told = f"split {self.node} on {word(self.column)}"
        if self.threshold is not None:
            return f"{told} at {word(self.threshold)}"
        if self.groups is not None:
            groups = [f"{{{listed(group, 3)}}}" for group in self.groups[:3]]
            more = len(self.groups) - len(groups)
            return f"{told} into {', '.join(groups)}" + (
                f" and {more} more" * (more > 0)
            )
        return f"{told}, a branch for each value" if self.values else told


@dataclass(frozen=True)
class Grow(Action):
    """Grow below a node by a recipe, as far as some levels or as the recipe says.

    With ``leaves`` only the leaves there grow, and the splits stay.
    """

    do = "grow"
    recipe: Recipe | None = None
    levels: int | None = None
    leaves: bool = False

    @property
    def words(self) -> str:
        """The action in a few words."""
        by = "" if self.recipe is None else f" by {self.recipe.algorithm}"
        told = f"grow {'the leaves of ' * self.leaves}{self.node}{by}"
        if self.levels is None:
            return told
        return f"{told}, {self.levels} level{'s' * (self.levels != 1)}"


@dataclass(frozen=True)
class Prune(Action):
    """Turn a node into a leaf."""

    do = "prune"


@dataclass(frozen=True)
class Lock(Action):
    """Keep a node and what is below it when the tree is grown again."""

    do = "lock"


@dataclass(frozen=True)
class Unlock(Action):
    """Release a lock."""

    do = "unlock"


@dataclass(frozen=True)
class Relabel(Action):
    """Let a node predict another class, or another number."""

    do = "relabel"
    prediction: Value

    @property
    def words(self) -> str:
        """The action in a few words."""
        return f"relabel {self.node} {word(self.prediction)}"


@dataclass(frozen=True)
class Note(Action):
    """Write a note at a node; an empty text removes it."""

    do = "note"
    text: str

    @property
    def words(self) -> str:
        """The action in a few words."""
        short = self.text if len(self.text) <= 40 else f"{self.text[:37]}..."
        return (
            f"note at {self.node}: {word(short)}"
            if short
            else f"no note at {self.node}"
        )


@dataclass(frozen=True)
class SetMissing(Action):
    """Send missing values at a node down a branch, every branch or none."""

    do = "set_missing"
    to: str | int

    @property
    def words(self) -> str:
        """The action in a few words."""
        to = f"branch {self.to}" if isinstance(self.to, int) else self.to
        return f"missing values at {self.node}: {to}"


ACTIONS: dict[str, type[Action]] = {
    kind.do: kind
    for kind in (Split, Grow, Prune, Lock, Unlock, Relabel, Note, SetMissing)
}


def read_action(given: object) -> Action:
    """Return the action of plain values, as :meth:`Action.to_dict` has them."""
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"An action must be an object with 'do' and 'node'. Got {_short(given)}."
        )
    kind = ACTIONS.get(given.get("do")) if isinstance(given.get("do"), str) else None  # type: ignore[arg-type]
    if kind is None:
        raise ParameterError(
            f"'do' of an action must be one of {quoted(ACTIONS, len(ACTIONS))}. Got "
            f"{_short(given.get('do'))}."
        )
    names = [field.name for field in fields(kind)]
    unknown = [name for name in given if name not in (*names, "do")]
    if unknown:
        raise ParameterError(
            f"The action {kind.do!r} has {quoted(names, len(names))}. Got "
            f"{_short(unknown[0])} besides; leave it out."
        )
    absent = [
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.name not in given
    ]
    if absent:
        raise ParameterError(f"The action {kind.do!r} lacks {quoted(absent)}.")
    return kind(**{name: CHECKS[name](given[name]) for name in names if name in given})


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return recipe_fields(value) if isinstance(value, Recipe) else value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def plain_value(name: str, value: object) -> Value:
    """Return a value as plain text, number or boolean; raise for others."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and len(value) <= LONGEST_TEXT:
        return value
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral) and abs(int(value)) < 2**63:
        return int(value)
    if isinstance(value, Real) and math.isfinite(float(value)):
        return float(value)
    raise ParameterError(
        f"{name} must be a text, a finite number or a boolean. Got {_short(value)}."
    )


def _node(value: object) -> str:
    if not is_path(value):
        raise ParameterError(
            f"node must be '/' or a path such as '/0/1'. Got {_short(value)}."
        )
    return str(value)


def _text(name: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        if isinstance(value, str) and len(value) <= LONGEST_TEXT:
            return value
        raise ParameterError(
            f"{name} must be a text of at most {LONGEST_TEXT:,} characters. Got "
            f"{_short(value)}."
        )

    return check


def _threshold(value: object) -> Value | None:
    return None if value is None else plain_value("threshold", value)


def read_groups(value: object) -> tuple[tuple[Value, ...], ...] | None:
    """Return groups of values as tuples; raise for others."""
    if value is None:
        return None
    listed_twice = _is_list(value) and all(map(_is_list, value))  # type: ignore[call-overload]
    if not listed_twice or sum(map(len, value)) > MOST_VALUES:  # type: ignore[call-overload]
        raise ParameterError(
            "groups must be a list with a list of values for each branch, such as "
            f"[['a', 'b'], ['c']]. Got {_short(value)}."
        )
    return tuple(
        tuple(plain_value("groups", each) for each in group)
        for group in value  # type: ignore[attr-defined]
    )


def _is_list(value: object) -> bool:
    plain = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
    return plain or isinstance(value, (set, frozenset))


def _flag(words: str) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        if isinstance(value, bool) or value is None:
            return bool(value)
        raise ParameterError(f"{words}, or left out. Got {_short(value)}.")

    return check


def check_levels(value: object) -> int | None:
    """Return a number of levels; raise for others."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if value is None or (whole and 1 <= value <= LONGEST_TEXT):  # type: ignore[operator]
        return None if value is None else int(value)  # type: ignore[call-overload]
    raise ParameterError(
        f"levels must be None or a whole number of at least 1. Got {_short(value)}."
    )


def check_route(value: object) -> str | int:
    """Return where missing values are sent; raise for others."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if value in ROUTES or (whole and value >= 0):  # type: ignore[operator]
        return value if isinstance(value, str) else int(value)  # type: ignore[call-overload]
    raise ParameterError(
        "missing must be 'largest', 'stop', 'every' or the position of a branch, from "
        f"0. Got {_short(value)}."
    )


def recipe_fields(recipe: Recipe) -> dict[str, Any]:
    """Return the fields of a recipe that are not the usual ones, as plain values."""
    given = {name: getattr(recipe, name) for name in FIELDS}
    return {
        name: [list(row) for row in value] if name == "costs" else value
        for name, value in given.items()
        if value != FIELDS[name]
    }


def read_recipe(given: object) -> Recipe | None:
    """Return the recipe of such fields; raise for others."""
    if given is None or isinstance(given, Recipe):
        return given
    if not isinstance(given, Mapping) or not all(isinstance(n, str) for n in given):
        raise ParameterError(
            f"recipe must be an object of parameters. Got {_short(given)}."
        )
    unknown = [name for name in given if name not in FIELDS]
    if unknown:
        raise ParameterError(
            f"recipe has the unknown parameter {_short(unknown[0])}. It may have "
            f"{quoted(FIELDS, len(FIELDS))}."
        )
    recipe = Recipe(**given)
    check_criterion(recipe)
    return recipe


def check_criterion(recipe: Recipe) -> None:
    """Reject a criterion that cannot be written down."""
    if not isinstance(recipe.criterion, str):
        raise ParameterError(
            "criterion must have a name, such as 'gain', for a session is kept as "
            f"text. Got the function {recipe.criterion_name!r}."
        )


def recipe_in_python(recipe: Recipe) -> str:
    """Return the code of a recipe: an algorithm, and what differs from it."""
    name, given = _changes(recipe)
    if not given:
        return name
    changed = ", ".join(f"{field}={value!r}" for field, value in given.items())
    return f"replace({name}, {changed})"


def recipe_imports(recipes: Iterable[Recipe]) -> list[str]:
    """Return the lines of code that import what the code of recipes needs."""
    changes = [_changes(recipe) for recipe in recipes]
    lines = (
        ["from dataclasses import replace", ""] if any(c for _, c in changes) else []
    )
    names = ", ".join(sorted({name for name, _ in changes}))
    return [*lines, "import branchwise", f"from branchwise.recipe import {names}"]


def _changes(recipe: Recipe) -> tuple[str, dict[str, Any]]:
    """Return the algorithm with the fewest other fields, and these fields."""
    own = {name: getattr(recipe, name) for name in FIELDS}
    found = [
        (name, {f: v for f, v in own.items() if v != getattr(base, f)})
        for name, base in (("ID3", ID3), ("C45", C45), ("CART", CART))
    ]
    return min(found, key=lambda each: len(each[1]))


CHECKS: dict[str, Callable[[object], Any]] = {
    "node": _node,
    "column": _text("column"),
    "threshold": _threshold,
    "groups": read_groups,
    "values": _flag("values must be True, for one branch per value"),
    "recipe": read_recipe,
    "levels": check_levels,
    "leaves": _flag("leaves must be True, to keep the splits"),
    "prediction": lambda value: plain_value("prediction", value),
    "text": _text("text"),
    "to": check_route,
}
