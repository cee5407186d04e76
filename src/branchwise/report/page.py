"""The HTML page of a report: a template for each section.

The page needs nothing from outside. Scripts and styles are allowed by their hashes
only, and the network not at all. The tree is a page of its own within a frame that
shares nothing with this one.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from branchwise import __version__
from branchwise.data.table_schema import Schema
from branchwise.ensemble.ensemble import Ensemble
from branchwise.errors import json_text, plain
from branchwise.estimators.fitted import FittedEstimator
from branchwise.model import Model
from branchwise.render import view as viewer
from branchwise.render.charts import MOST_CELLS
from branchwise.render.picture import class_styles
from branchwise.render.svg import svg_picture
from branchwise.report import figures
from branchwise.report.inputs import Source
from branchwise.report.labelled import shown_sections
from branchwise.steps.result import Steps, style_sheet
from branchwise.text import as_html as html
from branchwise.text.label_words import Unit, target_unit
from branchwise.text.words import UNNAMED, word

#: The size of a printed picture, in its own units: letters stay readable.
_PAPER = (1700.0, 1000.0)
_MOST_DEPTH, _MOST_NODES = 12, 150
#: Pictures up to this width need no landscape page.
_UPRIGHT = 900.0
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
#: Why not all of a large tree is on the page.
_WHY_LESS = "so that this page stays small: branchwise view writes all of it"


class WrittenReport:
    """Base class of reports: findings as plain values, and a page."""

    sections: dict[str, Any]
    model: Any

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as plain values."""
        return self.sections

    def to_json(self) -> str:
        """Return all findings as JSON."""
        return json_text(self.sections, indent=2, allow_nan=False)

    def to_html(self) -> str:
        """Return the report as one HTML page that needs nothing else."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        viewer.save_page(path, self.to_html())

    def __repr__(self) -> str:
        return (
            f"<branchwise report on {self.sections['data']['rows']:,} rows: "
            f"{self.model!r}; save() writes the page>"
        )


def page(sections: dict[str, Any], model: Model, steps: Steps | None) -> str:
    """Write the page of a report: findings, tree, and how the root was split."""
    found = shown_sections(sections, model.schema)
    target, title = _target(found), sections["title"]
    return html.page(
        "report/templates/page.html",
        **found,
        heading=f"{target}: report on a decision tree"
        if title is None
        else plain(title),
        target=target,
        drawn=_drawn(model),
        steps=steps,
        noun="tree",
        **_shared(model.schema),
    )


def _target(sections: dict[str, Any]) -> str:
    name = str(sections["data"]["target"]["name"])
    return "the target" if name == UNNAMED else word(name)


def ensemble_page(
    sections: dict[str, Any], schema: Schema, noun: str, **drawn: Any
) -> str:
    """Write the page of a report on an ensemble; ``drawn`` are its own sections."""
    found = shown_sections(sections, schema)
    target, title = _target(found), sections["title"]
    usual = f"{target}: report on {'an' if noun == 'ensemble' else 'a'} {noun}"
    return html.page(
        "report/templates/ensemble.html",
        **found,
        heading=usual if title is None else plain(title),
        target=target,
        noun=noun,
        **_shared(schema),
        **drawn,
    )


def _shared(schema: Schema) -> dict[str, Any]:
    """Return what all pages are filled in with: styles, scripts, charts, figures.

    The sections are in the unit of the target, whose name is all that they lack.
    """
    unit = Unit(target_unit(schema).name)
    assets = ("render/assets/charts.css", "report/assets/report.css")
    styles = [style_sheet(), *map(html.asset, assets), *class_styles()]
    style = html.markup("\n".join(styles))
    script = html.asset("report/assets/report.js")
    inner_style, inner_script = viewer.style_and_script()
    return {
        "policy": html.policy([style, inner_style], [script, inner_script]),
        "style": style,
        "script": script,
        "charts": figures,
        "percent": figures.percent,
        "score": figures.score,
        "error": lambda value: _in_unit(value, unit),
        "unit": unit,
        "span": _span,
        "most_bars": figures.MOST_BARS,
        "most_cells": MOST_CELLS,
    }


def _in_unit(value: float | None, unit: Unit) -> str:
    """Write an error of numbers with their unit."""
    written = figures.score(value)
    return unit.behind(written) if written[-1].isdigit() else written


def _span(found: dict[str, Any], shown: Callable[[float], str]) -> str:
    low, high = found["low"], found["high"]
    return "" if low is None else f"{shown(low)} to {shown(high)}"


def _drawn(model: Model) -> dict[str, Any]:
    """Draw the tree: to try on screen, and as many levels as can be read on paper."""
    beyond = viewer.beyond_a_notebook(model.tree)
    small = model.collapse_nodes(*beyond) if beyond else model
    lists = viewer.lists_for(small.tree)
    schema = small.shown_schema
    on_screen = viewer.view(schema, small.tree, small.recipe, lists=lists)
    on_screen = viewer.abridged(on_screen, len(model.tree), _WHY_LESS)
    picture, depth = _fitting(viewer.view(schema, small.tree, small.recipe))
    size = _SIZE.search(picture)
    whole = depth == small.tree.max_depth and not beyond
    return {
        "page": viewer.page(on_screen, str(model)),
        "abridged": bool(beyond),
        "wide": size is None or float(size[1]) > _UPRIGHT,
        "picture": base64.b64encode(picture.encode("utf-8")).decode("ascii"),
        "levels": None if whole else depth,
    }


def _fitting(seen: dict[str, Any]) -> tuple[str, int]:
    """Return the picture of the most levels that fit, and how many they are."""
    best, found = svg_picture(seen, 0, _MOST_NODES), 0
    for depth in range(1, min(seen["depth"], _MOST_DEPTH) + 1):
        picture = svg_picture(seen, depth, _MOST_NODES)
        size = _SIZE.search(picture)
        if size is None or float(size[1]) > _PAPER[0] or float(size[2]) > _PAPER[1]:
            break
        best, found = picture, depth
    # A root split with many branches is drawn in any case.
    if not found and seen["depth"]:
        return svg_picture(seen, 1, _MOST_NODES), 1
    return best, found


def file_mark(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the name of a file (without its directory), its size and its SHA-256."""
    file = Path(path)
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return {"name": file.name, "bytes": file.stat().st_size, "sha256": digest}


def reproduction(
    source: Source,
    model: Model | Ensemble,
    seed: int,
    commands: list[str],
    files: list[dict[str, Any]],
    reads: tuple[str, str] | None,
) -> dict[str, Any]:
    """Return what is needed to reproduce the page."""
    return {
        "commands": commands,
        "python": python_lines(source, reads),
        "seed": seed,
        "versions": {
            "branchwise": __version__,
            "Python": platform.python_version(),
            "NumPy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "files": files,
        "model_file": _model_mark(model),
    }


def _model_mark(model: Model | Ensemble) -> dict[str, Any] | None:
    """Mark the file that the model would be; there is none with a Python function."""
    recipe = model.recipe if isinstance(model, Model) else model.recipe.tree
    if callable(recipe.criterion):
        return None
    content = model.to_bytes()
    return {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def parameter(value: object) -> str:
    """Write a parameter as Python does; of a function only its name."""
    return str(getattr(value, "__name__", "?")) if callable(value) else repr(value)


def python_lines(source: Source, reads: tuple[str, str] | None = None) -> list[str]:
    """Return the lines that read the table, if that is known, and grow the tree."""
    estimator = source.estimator
    name, called = type(estimator).__name__, source.noun.replace(" ", "_")
    if reads is not None:
        return [
            f"from branchwise import {name}, read_table",
            f"table = {reads[0]}",
            f"{called} = {_written(estimator)}",
            f"{called}.fit({reads[1]})",
            *_labels_line(source),
        ]
    weights = "" if source.rows.weights is None else ", sample_weight=weights"
    aside = "" if source.pruned_with is None else ", validation=(X_valid, y_valid)"
    return [
        f"from branchwise import {name}",
        f"{called} = {_written(estimator)}",
        f"{called}.fit(X, y{weights}{aside})",
        *_labels_line(source),
    ]


def _labels_line(source: Source) -> list[str]:
    """Return the line that gives the model its labels, if it has any."""
    if source.labels.labels is None:
        return []
    given = source.labels.named or "labels"
    called = source.noun.replace(" ", "_")
    return [f"model = {called}.model_.with_labels({given})"]


def _written(estimator: FittedEstimator) -> str:
    """Write an estimator with the parameters that are not as usual."""
    given = ", ".join(f"{n}={written}" for n, written in changed(estimator).items())
    return f"{type(estimator).__name__}({given})"


def changed(estimator: FittedEstimator) -> dict[str, str]:
    """Return the parameters that are not as usual, as Python writes them."""
    usual = type(estimator)().get_params(deep=False)
    return {
        name: parameter(value)
        for name, value in estimator.get_params(deep=False).items()
        if repr(value) != repr(usual[name])
    }
