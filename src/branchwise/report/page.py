"""The HTML page of a report, without external resources.

Scripts and styles are allowed by their hashes only, and the network not at all. The
tree is a page of its own within a frame that shares nothing with this one.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from branchwise import __version__
from branchwise.estimators.base import TreeEstimator
from branchwise.model import Model
from branchwise.render import viewer
from branchwise.report.inputs import Source
from branchwise.report.sections import (
    data_section,
    heading_of,
    lead,
    root_section,
    rules_section,
    tiles,
    tree_section,
    warnings_section,
)
from branchwise.report.test_sections import (
    evaluation_section,
    importance_section,
    learning_section,
    pruning_section,
)
from branchwise.steps.result import Steps, style_sheet
from branchwise.text import as_html as html
from branchwise.text.blocks import Block, Code, Paragraph, Table


def page(sections: dict[str, Any], model: Model, steps: Steps | None) -> str:
    """Write the page.

    Parameters
    ----------
    sections : dict
        The findings: ``Report.sections``.
    model : Model
        The tree.
    steps : Steps or None
        How its first split was found.
    """
    assets = ("render/assets/charts.css", "report/assets/report.css")
    style = html.markup("\n".join([style_sheet(), *map(html.asset, assets)]))
    script = html.asset("report/assets/report.js")
    inner_style, inner_script = viewer.style_and_script()
    return html.page(
        "report/templates/page.html",
        policy=html.policy([style, inner_style], [script, inner_script]),
        title=heading_of(sections),
        style=style,
        lead=lead(sections),
        tiles=list(tiles(sections)),
        sections=[
            {"name": name, "title": title, "content": html.as_html(content)}
            for name, title, content in _sections(sections, model, steps)
        ],
        version=sections["reproduce"]["versions"]["branchwise"],
        script=script,
    )


def _sections(
    sections: dict[str, Any], model: Model, steps: Steps | None
) -> Iterator[tuple[str, str, Iterable[Block]]]:
    """Yield the sections: name, heading, content."""
    yield "data", "The data", data_section(sections)
    yield "warnings", "Warnings about the data", warnings_section(sections)
    yield "tree", "The tree", tree_section(sections, model)
    yield "rules", "The tree in rules", rules_section(sections)
    yield "root", "How the split of the root was chosen", root_section(sections, steps)
    yield "importances", "Which columns matter", importance_section(sections)
    yield "evaluation", "How well it does", evaluation_section(sections)
    yield "pruning", "What smaller trees would do", pruning_section(sections)
    yield "learning", "What more rows would do", learning_section(sections)
    yield "reproduce", "How to reproduce it", reproduce_section(sections)


def reproduce_section(sections: dict[str, Any]) -> Iterator[Block]:
    """Show how to reproduce the page and the tree."""
    found = sections["reproduce"]
    if found["commands"]:
        yield Paragraph("On the command line, in the directory of the files:")
        yield Code(found["commands"])
    yield Paragraph("The tree in Python:")
    yield Code(found["python"])
    yield Paragraph(
        "The same rows and parameters give the same tree, to the last bit, and the "
        f"same page: only the folds are random, with seed {found['seed']}."
    )
    yield Table(["software", "version"], list(found["versions"].items()), words=(0, 1))
    model = found["model_file"]
    rows = [[one["name"], f"{one['bytes']:,}", one["sha256"]] for one in found["files"]]
    if model is not None:
        name = "the model file of this tree"
        rows.append([name, f"{model['bytes']:,}", model["sha256"]])
    if rows:
        yield Table(["file", "bytes", "SHA-256"], rows, words=(0, 2))


def file_mark(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the name of a file (without its directory), its size and its SHA-256."""
    file = Path(path)
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return {"name": file.name, "bytes": file.stat().st_size, "sha256": digest}


def reproduction(
    source: Source,
    model: Model,
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


def _model_mark(model: Model) -> dict[str, Any] | None:
    """Mark the file that the model would be; there is none with a Python function."""
    if callable(model.recipe.criterion):
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
    name = type(estimator).__name__
    if reads is not None:
        return [
            f"from branchwise import {name}, read_table",
            f"table = {reads[0]}",
            f"tree = {_written(estimator)}",
            f"tree.fit({reads[1]})",
        ]
    weights = "" if source.rows.weights is None else ", sample_weight=weights"
    aside = "" if source.pruned_with is None else ", validation=(X_valid, y_valid)"
    return [
        f"from branchwise import {name}",
        f"tree = {_written(estimator)}",
        f"tree.fit(X, y{weights}{aside})",
    ]


def _written(estimator: TreeEstimator) -> str:
    """Write an estimator with the parameters that are not as usual."""
    given = ", ".join(f"{n}={written}" for n, written in changed(estimator).items())
    return f"{type(estimator).__name__}({given})"


def changed(estimator: TreeEstimator) -> dict[str, str]:
    """Return the parameters that are not as usual, as Python writes them."""
    usual = type(estimator)().get_params(deep=False)
    return {
        name: parameter(value)
        for name, value in estimator.get_params(deep=False).items()
        if repr(value) != repr(usual[name])
    }
