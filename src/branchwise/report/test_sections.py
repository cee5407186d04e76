"""Sections of the page on unseen rows: importances, scores, curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

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
from branchwise.text.blocks import Block, Columns, Figure, Fold, Paragraph, Table
from branchwise.text.conditions import rounded, word


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
        [
            word(one["column"]),
            number_format(one["permutation"]),
            number_format(one["deviation"]),
            percent(one["impurity"]),
        ]
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
            cell(one["precision"]),
            cell(one["recall"]),
            cell(one["f1"]),
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
            rounded(one["mean_error"], 5),
            rounded(one["mae"], 5),
            rounded(one["rmse"], 5),
        ]
        for one in found["errors_by_range"]
    ]
    head = [
        "predicted",
        "rows",
        "mean error",
        "mean absolute error",
        "root mean squared error",
    ]
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
