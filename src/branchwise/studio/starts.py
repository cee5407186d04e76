"""What a session starts with: a table, its target, a recipe, and options of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from branchwise.data.descriptions import grown_now
from branchwise.data.table_schema import Value
from branchwise.engines.base import check_columns, engine_of, source_of
from branchwise.engines.memory import MemoryTable, Training
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.fit import check_possible, labels_and_order, new_task
from branchwise.recipe import Recipe
from branchwise.studio.actions import (
    LONGEST_TEXT,
    Action,
    Split,
    check_criterion,
    read_recipe,
    recipe_fields,
    recipe_imports,
    recipe_in_python,
)
from branchwise.studio.edits import Editor
from branchwise.studio.history import LAYOUT
from branchwise.train.train import task_of

#: Options of a table, as ``fit_tree`` has them.
OPTIONS = (
    "sample_weight",
    "categorical_features",
    "categories",
    "order",
    "classes",
    "ignore",
    "class_weight",
    "date_features",
    "n_jobs",
)
#: Stands in a file for values of rows, which it does not hold.
_ROWS = {"rows": True}


@dataclass(frozen=True)
class Opened:
    """Encoded rows: those to grow from, in their editor, and those set aside."""

    editor: Editor
    held_out: Training | None


@dataclass(frozen=True)
class Start:
    """A table, its target and recipe, and the options of both."""

    table: Any
    target: Any
    recipe: Recipe
    options: Mapping[str, Any] = field(default_factory=dict)
    validation_fraction: float | None = None
    random_state: int = 0
    target_name: str | None = None
    labels: Any = None

    @classmethod
    def of(
        cls, table: object, target: object, recipe: Recipe, options: Any, **given: Any
    ) -> Start:
        """Return a start, checked; labels are read."""
        unknown = [name for name in options if name not in OPTIONS]
        if unknown:
            raise ParameterError(
                f"grow_by_hand has no parameter {unknown[0]!r}. Options of the table "
                f"are {quoted(OPTIONS, len(OPTIONS))}."
            )
        if not isinstance(recipe, Recipe):
            raise ParameterError(
                f"recipe must be a Recipe. Got {type(recipe).__name__}."
            )
        check_criterion(recipe)
        labels, order = labels_and_order(given.pop("labels"), options.get("order"))
        kept = {name: value for name, value in options.items() if value is not None}
        if order:
            kept["order"] = order
        start = cls(table, target, recipe, kept, labels=labels, **given)
        start.header()  # raises for what cannot be kept as text
        return start

    def on(self, table: object, target: object, options: Mapping[str, Any]) -> Start:
        """Return the same start on another table."""
        given = {**self.options, **options}
        rows = {"target": self.target} if target is None else {}
        rows |= {
            name: each for name, each in self.options.items() if name not in options
        }
        for name, value in rows.items():
            if _is_rows(name, value):
                raise ParameterError(
                    f"{name} was given as values of other rows. Pass {name} for these."
                )
        target = self.target if target is None else target
        return replace(self, table=table, target=target, options=given)

    def with_values_of(self, actions: Iterable[Action]) -> tuple[Start, list[str]]:
        """Return the start with all values that groups of actions name.

        Other rows may lack some of them; what is decided on these stays decided. Also
        returns these values, in sentences.
        """
        named: dict[str, dict[Value, None]] = {}
        for action in actions:
            if isinstance(action, Split) and action.groups is not None:
                values = (value for group in action.groups for value in group)
                named.setdefault(action.column, {}).update(dict.fromkeys(values))
        columns = self.opened().editor.schema.columns if named else ()
        absent = {
            column: [v for v in named[column.name] if v not in column.code_of]
            for column in columns
            if column.kind == "categorical" and column.name in named
        }
        absent = {column: values for column, values in absent.items() if values}
        categories = dict(self.options.get("categories") or {})
        categories |= {c.name: [*c.categories, *v] for c, v in absent.items()}
        options = {**self.options, "categories": categories} if absent else self.options
        return replace(self, options=options), [
            f"column {column.name!r}: no row has {quoted(values)}, which groups name."
            for column, values in absent.items()
        ]

    def opened(self) -> Opened:
        """Encode the rows."""
        engine = engine_of(self.table)
        if engine not in ("memory", "chunked"):
            raise ParameterError(
                "grow_by_hand needs the rows in memory: a table, or a file that is "
                f"read into it. Got a source of engine={engine!r}; read a sample of "
                "its rows first."
            )
        named = isinstance(self.target, str)
        task = new_task(self.target, **self.options)
        with source_of(self.table, "memory", named) as source:
            check_possible(source, task)
            if named:
                check_columns(task, source.label, source.names)
            # What readable thresholds need is learnt where a recipe has them.
            plain = replace(task_of(self.recipe, task), threshold="midpoint")
            plan = source.learn(plain)
            rows = cast("MemoryTable", source).rows
        held_out = None
        if self.validation_fraction is not None:
            rows, held_out = self._set_aside(rows)
        return Opened(Editor(rows, plan.schema, task.threads), held_out)

    def _set_aside(self, rows: Training) -> tuple[Training, Training]:
        from branchwise.evaluation.folds import FoldAssignment  # noqa: PLC0415  (slow)

        share = self.validation_fraction
        if isinstance(share, bool) or not isinstance(share, float) or not 0 < share < 1:
            raise ParameterError(
                "validation_fraction must be None or a share between 0 and 1, such as "
                f"0.3. Got {share!r}."
            )
        assignment = FoldAssignment(hold_out=share, seed=self.random_state)
        kept, aside = assignment.splits(rows.target, rows.n_classes > 0)[0]
        return rows.take(kept), rows.take(aside)

    def header(self) -> dict[str, Any]:
        """Return the first line of a file of actions."""
        return {
            "actions": LAYOUT,
            "branchwise": grown_now().branchwise,
            "target": self.target if isinstance(self.target, str) else None,
            "recipe": recipe_fields(self.recipe),
            "options": {
                name: _plain_option(name, value) for name, value in self.options.items()
            },
            "validation_fraction": self.validation_fraction,
            "random_state": self.random_state,
            "target_name": self.target_name,
            "labels": _plain_option("labels", self.labels),
        }

    @classmethod
    def read(
        cls,
        header: Mapping[str, Any],
        table: object,
        target: object,
        options: Mapping[str, Any],
        where: str,
    ) -> Start:
        """Return the start that the first line of a file describes, on a table."""
        try:
            return cls._read(header, table, target, options)
        except ParameterError as error:
            raise DataError(f"{where}: {error}") from None

    @classmethod
    def _read(
        cls,
        header: Mapping[str, Any],
        table: object,
        target: object,
        options: Mapping[str, Any],
    ) -> Start:
        recipe = read_recipe(header.get("recipe"))
        if recipe is None:
            raise ParameterError("It has no 'recipe'.")
        named = header.get("target")
        if target is None:
            target = _checked_text("target", named)
        if target is None:
            raise ParameterError(
                "The target was given as values, which the file does not hold. Pass "
                "target."
            )
        given = header.get("options", {})
        if not isinstance(given, Mapping):
            raise ParameterError("'options' must be an object.")
        kept = {name: _option(value) for name, value in given.items()}
        kept |= options
        needed = [name for name, value in kept.items() if value == _ROWS]
        if needed:
            raise ParameterError(
                f"{needed[0]} was given as values, which the file does not hold. Pass "
                f"{needed[0]}."
            )
        return cls.of(
            table,
            target,
            recipe,
            kept,
            validation_fraction=header.get("validation_fraction"),
            random_state=header.get("random_state", 0),
            target_name=_checked_text("target_name", header.get("target_name")),
            labels=_option(header.get("labels")),
        )

    def to_python(self, recipes: Iterable[Recipe] = ()) -> list[str]:
        """Return the code that starts the session, with imports for more recipes."""
        target = repr(self.target) if isinstance(self.target, str) else "target"
        given = {
            name: name if _is_rows(name, value) else repr(_python_option(value))
            for name, value in self.options.items()
        }
        given |= {
            name: repr(_python_option(value))
            for name, value in (
                ("validation_fraction", self.validation_fraction),
                ("random_state", self.random_state or None),
                ("target_name", self.target_name),
                ("labels", self.labels),
            )
            if value is not None
        }
        arguments = ["table", target, recipe_in_python(self.recipe)]
        arguments += [f"{name}={value}" for name, value in given.items()]
        return [
            *recipe_imports([self.recipe, *recipes]),
            "",
            "session = branchwise.grow_by_hand(",
            *(f"    {argument}," for argument in arguments),
            ")",
        ]


def _checked_text(name: str, value: object) -> str | None:
    if value is None or (isinstance(value, str) and len(value) <= LONGEST_TEXT):
        return value
    raise ParameterError(f"'{name}' must be null or a text.")


def _is_rows(name: str, value: object) -> bool:
    return name in ("sample_weight", "target") and not isinstance(value, str)


def _plain_option(name: str, value: Any) -> Any:
    """Return an option in plain values; pairs of a mapping as lists."""
    if _is_rows(name, value):
        return _ROWS
    return _plain(name, value)


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        pairs = [[_plain(name, k), _plain(name, v)] for k, v in value.items()]
        return {"pairs": pairs}
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return [_plain(name, each) for each in value]
    raise ParameterError(
        f"{name} must be made of texts, numbers, lists and dicts in a session, which "
        f"is kept as text. Got {type(value).__name__}."
    )


def _python_option(value: Any) -> Any:
    return _option(_plain("option", value))


def _option(value: Any) -> Any:
    """Return an option from plain values."""
    if value == _ROWS or not isinstance(value, (Mapping, list)):
        return value
    if isinstance(value, list):
        return [_option(each) for each in value]
    pairs = value.get("pairs")
    if set(value) != {"pairs"} or not isinstance(pairs, list):
        raise ParameterError(
            "An option must be a value, a list or an object of 'pairs'."
        )
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise ParameterError("'pairs' of an option must be pairs.")
    try:
        return {_option(key): _option(each) for key, each in pairs}
    except TypeError:
        raise ParameterError(
            "The first of each of the 'pairs' must be a value."
        ) from None
