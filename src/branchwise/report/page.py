"""The HTML page of a report, and its sections on unseen rows.

The page needs nothing from outside. Scripts and styles are allowed by their hashes
only, and the network not at all. The tree is a page of its own within a frame that
shares nothing with this one.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from branchwise import __version__
from branchwise.estimators.base import TreeEstimator
from branchwise.evaluation.metrics import OF_CLASS
from branchwise.model import Model
from branchwise.render import view as viewer
from branchwise.render.charts import MOST_CELLS
from branchwise.report.figures import (
    MOST_BARS,
    calibration_chart,
    confusion_chart,
    importance_charts,
    learning_chart,
    percent,
    pruning_chart,
    ranked,
    residual_chart,
    score,
)
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
from branchwise.steps.result import Steps, style_sheet
from branchwise.text import as_html as html
from branchwise.text.blocks import Block, Code, Columns, Figure, Fold, Paragraph, Table
from branchwise.text.conditions import rounded, word


def page(sections: dict[str, Any], model: Model, steps: Steps | None) -> str:
    """Write the page of a report: findings, tree, and how the root was split."""
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


def _one_decimal(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"


#: What scores are called, and what they mean.
_SCORES = {
    "accuracy": ("accuracy", "share of right predictions", percent),
    "balanced_accuracy": ("balanced accuracy", "mean recall of the classes", percent),
    "log_loss": ("log loss", "0 is best; penalises confident mistakes", score),
    "auc": ("AUC", "0.5 is random, 1 is best", score),
    "brier_score": ("Brier score", "squared error of probabilities, 0 is best", score),
    "calibration_error": (
        "calibration error",
        "mean difference of probability and accuracy, 0 is best",
        percent,
    ),
    "mae": ("mean absolute error", "in units of the target", score),
    "rmse": ("root mean squared error", "in units of the target", score),
    "r2": ("R squared", "share of variance explained", score),
    "leaves": ("leaves", "of the trees tested", _one_decimal),
    "depth": ("depth", "of the trees tested", _one_decimal),
}
#: A table of up to so many rows fits beside a chart.
_BESIDE = 14
_MOST_CLASSES = 60
_MOST_COLUMNS = 200


def importance_section(sections: dict[str, Any]) -> Iterator[Block]:
    """Show the importances of the columns."""
    found = sections["importances"]
    by_shuffling, by_impurity = importance_charts(found)
    idle = len(found["columns"]) - len(ranked(found))
    which = ""
    if len(ranked(found)) > MOST_BARS:
        which = f" The first {MOST_BARS} of {len(ranked(found)):,} columns."
    if idle:
        which += f" {idle:,} of {len(found['columns']):,} columns are used by no tree."
    yield Paragraph(
        f"By shuffling: how much {found['score']} is lost on rows that the tree has "
        "not seen when the values of a column are shuffled among them; lines are one "
        f"standard deviation over {found['shuffles']} shuffles. A column "
        "with no loss does not help on new rows, however much it reduced impurity in "
        "growing."
        f"{which} {found['note']}"
    )
    unseen = "On unseen rows, by shuffling (permutation importance)."
    training = "On training rows, by impurity."
    yield Columns([[Figure(by_shuffling, unseen)], [Figure(by_impurity, training)]])
    number_format = percent if found["score"] == "accuracy" else score
    rows = [
        [word(one["column"])]
        + [number_format(one[name]) for name in ("permutation", "deviation")]
        + [percent(one["impurity"])]
        for one in ranked(found)[:_MOST_COLUMNS]
    ]
    head = ["column", f"loss of {found['score']}", "deviation", "impurity"]
    yield Fold("The figures", [Table(head, rows)])


def evaluation_section(sections: dict[str, Any]) -> Iterator[Block]:
    """Show the scores of the tree on rows that it has not seen."""
    found = sections["evaluation"]
    yield Paragraph(f"Tested {found['how']}. {found['note']}")
    yield _score_table(found)
    always = "most frequent class" if "confusion_matrix" in found else "mean"
    yield Paragraph(
        f"Intervals: {found['interval']}. The baseline always predicts the "
        f"{always} of the training rows.",
        "faint",
    )
    if "confusion_matrix" in found:
        yield from _class_sections(found)
    else:
        yield from _number_sections(sections, found)


def _score_table(found: dict[str, Any]) -> Block:
    rows = []
    for name, (called, meaning, number_format) in _SCORES.items():
        own = found["scores"].get(name)
        if own is None:
            continue
        size = number_format is _one_decimal
        usual = None if size else found["baseline"][name]["mean"]
        own_rows = found["on_training_rows"].get(name)
        rows.append(
            [
                called,
                number_format(own["mean"]),
                _span(own, number_format),
                number_format(usual),
                "" if own_rows is None else number_format(own_rows),
                meaning,
            ]
        )
    head = ["score", "tree", "95 % interval", "baseline", "on training rows", "meaning"]
    return Table(head, rows, words=(0, 5))


def _class_sections(found: dict[str, Any]) -> Iterator[Block]:
    names = [word(one["class"]) for one in found["classes"]]
    charts = []
    if len(names) <= MOST_CELLS:
        charts.append(
            Figure(
                confusion_chart(found),
                "Confusion matrix: rows of the table by true class (down) and "
                "predicted class (across); percent of the true class.",
            )
        )
    if found["calibration"]:
        charts.append(
            Figure(
                calibration_chart(found),
                "Calibration: on the dashed line, the share of right predictions is "
                "their probability. Larger dots are more rows; lines are 95 % "
                "intervals.",
            )
        )
    yield Columns([[chart] for chart in charts])
    yield _class_table(found)
    figures = [_confusion_table(names, found)] if len(names) <= _MOST_CLASSES else []
    yield Fold("The figures", [*figures, _calibration_table(found)])


def _class_table(found: dict[str, Any]) -> Block:
    def cell(one: dict[str, Any]) -> str:
        if one["low"] is None:
            return percent(one["mean"])
        return (
            f"{percent(one['mean'])} ({100 * one['low']:.0f} to "
            f"{100 * one['high']:.0f})"
        )

    rows = [
        [
            word(one["class"]),
            *(cell(one[name]) for name in OF_CLASS),
            f"{one['rows']:,}",
        ]
        for one in found["classes"][:_MOST_CLASSES]
    ]
    head = ["class", "precision", "recall", "F1", "rows"]
    caption = (
        "By class, with 95 % intervals. Precision: how many of such predictions are "
        "right; recall: how many of the class are found."
    )
    return Table(head, rows, caption=caption)


def _confusion_table(names: list[str], found: dict[str, Any]) -> Block:
    rows = [
        [name, *(f"{count:,}" for count in counts)]
        for name, counts in zip(names, found["confusion_matrix"], strict=True)
    ]
    return Table(["true class", *names], rows, caption="Confusion matrix")


def _calibration_table(found: dict[str, Any]) -> Block:
    rows = [
        [
            f"{percent(row['from'])} to {percent(row['to'])}",
            f"{row['rows']:,}",
            percent(row["mean_probability"]),
            percent(row["right"]),
            f"{percent(row['low'])} to {percent(row['high'])}",
        ]
        for row in found["calibration"]
    ]
    head = ["probability", "rows", "mean probability", "right", "95 % interval"]
    return Table(head, rows, caption="Calibration")


def _number_sections(
    sections: dict[str, Any], found: dict[str, Any]
) -> Iterator[Block]:
    points = found["residuals"]
    name = sections["data"]["target"]["name"]
    some = (
        f" {points['shown']:,} of {points['of']:,} rows are drawn."
        if points["shown"] < points["of"]
        else ""
    )
    quantiles = [
        [percent(one["share"]), rounded(one["error"], 5)]
        for one in found["error_quantiles"]
    ]
    chart = Figure(
        residual_chart(found, name),
        "Residuals: true minus predicted. A tree predicts one number for each "
        f"leaf, so that points stand in columns.{some}",
    )
    errors = Table(
        ["share of rows", "error at most"],
        quantiles,
        words=(),
        caption="Errors (true minus predicted): quantiles",
    )
    yield Columns([[chart], [errors]])
    yield _error_table(found)


def _error_table(found: dict[str, Any]) -> Block:
    rows = [
        [
            f"{rounded(one['from'], 5)} to {rounded(one['to'], 5)}",
            f"{one['rows']:,}",
            *(rounded(one[name], 5) for name in ("mean_error", "mae", "rmse")),
        ]
        for one in found["errors_by_range"]
    ]
    errors = ["mean error", "mean absolute error", "root mean squared error"]
    head = ["predicted", "rows", *errors]
    caption = (
        "Errors by predicted number, in groups of about equal size. A mean error far "
        "from 0 is a bias."
    )
    return Table(head, rows, caption=caption)


def pruning_section(sections: dict[str, Any]) -> Iterator[Block]:
    """Tell what smaller trees would do."""
    found = sections["pruning"]
    trees = found["trees"]
    if len(trees) < 2:
        yield Paragraph("The tree is as small as it can be.")
        return
    number_format = percent if found["error"] == "share of errors" else score
    rows = [
        [
            f"{tree['leaves']:,}",
            f"{tree['alpha']:.3g}",
            number_format(tree["training"]),
            number_format(tree["testing"]["mean"]),
        ]
        for tree in trees
    ]
    best = found["best"]
    yield Paragraph(
        "What is left of the tree when subtrees go that cost more leaves than they "
        f"save errors (cost-complexity pruning). Fewest errors on unseen rows: "
        f"{best['leaves']:,} of {trees[0]['leaves']:,} leaves, with ccp_alpha "
        f"{best['alpha']:.3g} a leaf (ccp_alpha)."
    )
    head = ["leaves", "ccp_alpha", "training rows", "unseen rows"]
    left_out = found["left_out"]
    more = f"{left_out:,} trees in between are left out." if left_out else ""
    chart = Figure(
        pruning_chart(found),
        f"Pruning curve: {found['error']} by the size of the tree; band: 95 % "
        "interval where there are folds.",
    )
    yield Columns([[chart], _figures(Table(head, rows, words=()), more)])


def learning_section(sections: dict[str, Any]) -> Iterator[Block]:
    """Tell what more rows would do."""
    found = sections["learning"]
    number_format = percent if found["score"] == "accuracy" else score
    rows = [
        [
            f"{size['rows']:,}",
            number_format(size["training"]),
            number_format(size["testing"]["mean"]),
            _span(size["testing"], number_format),
        ]
        for size in found["sizes"]
    ]
    yield Paragraph(
        "Where the line of unseen rows still climbs at its right end, more rows would "
        "help; where it is flat and far below that of the training rows, a simpler "
        f"tree would. {found['note']}"
    )
    head = ["training rows", "on those", "on unseen rows", "95 % interval"]
    chart = Figure(
        learning_chart(found),
        f"Learning curve: {found['score']} by the number of training rows, over "
        f"{found['folds']} folds; band: 95 % interval.",
    )
    yield Columns([[chart], _figures(Table(head, rows, words=()))])


def _figures(listed: Table, more: str = "") -> Sequence[Block]:
    """Set the figures of a chart beside it; fold them away if they are many."""
    blocks = (listed, Paragraph(more, "faint"))
    return [Fold("The figures", blocks)] if len(listed.rows) > _BESIDE else blocks


def _span(found: dict[str, Any], number_format: Any) -> str:
    if found["low"] is None:
        return ""
    return f"{number_format(found['low'])} to {number_format(found['high'])}"
