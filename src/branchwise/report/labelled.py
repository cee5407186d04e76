"""The findings of a report in words: titles of columns, words for values, units.

The sections keep the names and values of the table, for JSON; the page shows what
labels call them. Numbers of the target are in its unit: shares that were read as per
cent are these again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from branchwise.data.table_schema import Column, Schema, Value
from branchwise.text.bounds import shown
from branchwise.text.label_words import Unit, called, target_unit, title_of, unit_of
from branchwise.text.labels import class_called, target_title, with_labels
from branchwise.text.words import word

#: Scores in the unit of the target.
_ERRORS = ("mae", "rmse")
#: What of a score is in its unit.
_OF_SCORES = ("mean", "low", "high", "deviation")
_RANGE_DIGITS = 5


@dataclass(frozen=True)
class SchemaLabels:
    """What labels and the file of a table add to the schema of a model."""

    labels: Mapping[str, Mapping[str, Any]] | None = None
    #: How Python names the file of the labels.
    named: str = ""
    as_read: Callable[[Schema], Schema] | None = None

    def of(self, schema: Schema) -> Schema:
        """Return the schema with what the file tells, and what the user says."""
        if self.as_read is not None:
            schema = self.as_read(schema)
        return schema if self.labels is None else with_labels(schema, self.labels)


def shown_sections(sections: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the sections as the page shows them; ``schema`` has the labels."""
    words = _Words(schema)
    makers: dict[str, Callable[[Any], Any]] = {
        "data": words.data,
        "warnings": lambda found: [words.warning(one) for one in found],
        "model": words.model,
        "rules": words.rules,
        "root_split": words.root_split,
        "evaluation": words.evaluation,
        "importances": words.importances,
        "shap": words.shap,
    }
    return {
        name: makers[name](section) if name in makers and section else section
        for name, section in sections.items()
    }


@dataclass(frozen=True)
class _Words:
    """Sections of a report, each in words."""

    schema: Schema

    @property
    def _unit(self) -> Unit:
        return target_unit(self.schema)

    @property
    def _columns(self) -> dict[str, Column]:
        return {column.name: column for column in self.schema.columns}

    def _title(self, name: str) -> str:
        return title_of(self._columns.get(name), name)

    def _class(self, label: Value) -> Value:
        return class_called(self.schema, label)

    def _scaled(self, section: Mapping[str, Any], *names: str) -> dict[str, Any]:
        """Return a section whose numbers of the target are in its unit."""
        scaled = {}
        for name in names:
            value = section.get(name)
            if value is not None:
                scaled[name] = self._unit.scaled(value)
        return {**section, **scaled}

    def data(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return the description of columns and target."""
        columns = [self._column(one) for one in section["columns"]]
        return {**section, "columns": columns, "target": self._target(section)}

    def _column(self, one: Mapping[str, Any]) -> dict[str, Any]:
        column = self._columns[one["name"]]
        told = {**one, "name": title_of(column, column.name)}
        if "most" in one:
            told["most"] = [
                {**each, "value": called(column, each["value"])} for each in one["most"]
            ]
        elif one["minimum"] is not None:
            ends = (one["minimum"], one["maximum"], one["median"])
            low, high, middle = (_number(column, value) for value in ends)
            told["range"] = f"{low} to {high}, median {middle}"
        return told

    def _target(self, section: Mapping[str, Any]) -> dict[str, Any]:
        target = dict(section["target"])
        if self.schema.target is not None:
            target["name"] = target_title(self.schema)
        if "classes" in target:
            return {**target, "classes": self._classes(target["classes"])}
        names = ("minimum", "median", "maximum", "mean", "deviation")
        edges = [self._unit.scaled(edge) for edge in target["histogram"]["edges"]]
        histogram = {**target["histogram"], "edges": edges}
        return {**self._scaled(target, *names), "histogram": histogram}

    def _classes(self, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**one, "class": self._class(one["class"])} for one in found]

    def warning(self, one: Mapping[str, Any]) -> dict[str, Any]:
        """Return a warning with titles; what to do has the names of the table."""
        message = one["message"]
        for name in one["columns"]:
            title = self._title(name)
            if title != name:
                message = message.replace(repr(name), f"{title!r} ({name})")
        return {**one, "message": message}

    def model(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return the description of the model."""
        return {**section, "used_columns": [*map(self._title, section["used_columns"])]}

    def rules(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return rules, whose conditions are in words already."""
        if "rules" not in section or "weighted" not in section:
            return dict(section)  # those of a forest write themselves
        return {**section, "rules": [self._rule(rule) for rule in section["rules"]]}

    def _rule(self, rule: Mapping[str, Any]) -> dict[str, Any]:
        if self.schema.classes:
            return {**rule, "prediction": self._class(rule["prediction"])}
        return self._scaled(rule, "prediction", "deviation")

    def root_split(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return the candidates of the split of the root."""
        if "candidates" not in section:
            return dict(section)
        candidates = [
            {**one, "column": self._title(one["column"])}
            for one in section["candidates"]
        ]
        column = self._title(section["column"])
        return {**section, "column": column, "candidates": candidates}

    def evaluation(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return scores: errors of numbers in their unit."""
        if "classes" in section:
            return {**section, "classes": self._classes(section["classes"])}
        return {
            **section,
            "scores": self._errors(section["scores"]),
            "baseline": self._errors(section["baseline"]),
            "on_training_rows": self._scaled(section["on_training_rows"], *_ERRORS),
            "residuals": {
                **section["residuals"],
                **{
                    name: [self._unit.scaled(v) for v in section["residuals"][name]]
                    for name in ("predicted", "residual")
                },
            },
            "error_quantiles": [
                self._scaled(one, "error") for one in section["error_quantiles"]
            ],
            "errors_by_range": [
                self._scaled(one, "from", "to", "mean_error", *_ERRORS)
                for one in section["errors_by_range"]
            ],
        }

    def _errors(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        own = {name: scores[name] for name in _ERRORS if scores.get(name) is not None}
        scaled = {name: self._scaled(own[name], *_OF_SCORES) for name in own}
        return {**scores, **scaled}

    def importances(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return importances by the titles of columns; those of a forest have them."""
        columns = section.get("columns")
        if not columns or not isinstance(columns[0], Mapping):
            return dict(section)
        titled = [{**one, "column": self._title(one["column"])} for one in columns]
        return {**section, "columns": titled}

    def shap(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return the mean size of Shapley values, by title."""
        if "mean_size" not in section:
            return dict(section)
        sizes = {
            self._title(name): _times(size, self._unit.scaled(1.0))
            for name, size in section["mean_size"].items()
        }
        classes = [self._class(label) for label in section["classes"]]
        return {**section, "mean_size": sizes, "classes": classes}


def _times(value: Any, factor: float) -> Any:
    """Return a number, or those of the classes, times a factor."""
    if isinstance(value, list):
        return [each * factor for each in value]
    return value * factor


def _number(column: Column, value: float) -> str:
    """Write a number of a column with its unit; that of a date as the date."""
    if column.date is not None or column.date_feature is not None:
        return word(shown(column, value))
    return unit_of(column).rounded(value, _RANGE_DIGITS)
