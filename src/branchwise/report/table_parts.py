"""The first sections of a page: summary, data, warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from branchwise.errors import counted
from branchwise.report.blocks import (
    Raw,
    figure,
    folded,
    paragraph,
    percent,
    score,
    side_by_side,
    table,
    text,
)
from branchwise.report.figures import MOST_BARS, balance_chart, spread_chart
from branchwise.words import UNNAMED, rounded, word

#: So many columns of a table are listed.
_LISTED = 200
#: What each kind of warning is called.
_KINDS = {
    "leak": "may give the answer away",
    "identifier": "names rows",
    "empty": "is empty",
    "constant": "is constant",
    "mostly_missing": "is mostly missing",
    "codes": "looks like codes",
    "duplicate": "say the same",
    "rare_class": "class with one row",
}


def target_name(sections: dict[str, Any]) -> str:
    """Return what is predicted, in words."""
    name = str(sections["data"]["target"]["name"])
    return "the answer" if name == UNNAMED else word(name)


def summary(sections: dict[str, Any]) -> Raw:
    """Say the most important things in a few sentences and figures."""
    lead = " ".join(_sentences(sections))
    tiles = "".join(
        f'<div class="tile"><b>{text(figure)}</b><span>{text(words)}</span></div>'
        for figure, words in _tiles(sections)
    )
    return Raw(f'{paragraph(lead, "lead")}\n<div class="tiles">{tiles}</div>')


def _sentences(sections: dict[str, Any]) -> Iterator[str]:
    data, model, found = (sections[n] for n in ("data", "model", "evaluation"))
    kind = model["algorithm"]
    leaves = "1 leaf" if model["leaves"] == 1 else f"{model['leaves']:,} leaves"
    yield (
        f"{'An' if kind[0] in 'AEIOU' else 'A'} {kind} tree of {leaves} and depth "
        f"{model['depth']:,} predicts {target_name(sections)} from "
        f"{counted(len(data['columns']), 'column')} of {data['rows']:,} rows; it asks "
        f"about {len(model['asks_about']):,} of them."
    )
    if model["predicts"] == "numbers":
        yield from _about_numbers(found)
    else:
        yield from _about_classes(sections, found)
    number = len(sections["warnings"])
    if number:
        yield f"The table gives {counted(number, 'warning')}: see below."


def _about_classes(sections: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    right, usual = found["scores"]["accuracy"], found["baseline"]["accuracy"]["mean"]
    largest = max(sections["data"]["target"]["classes"], key=lambda one: one["rows"])
    yield (
        f"Tested {found['how']}, it is right for {percent(right['mean'])} of the rows"
        f"{_within(right, percent)}. Always answering {word(largest['class'])} would "
        f"be right for {percent(usual)}."
    )
    low, high = right["low"], right["high"]
    if low is not None and low <= usual <= high:
        yield "That is within the interval: the tree is not shown to do any better."
    elif low is not None and high < usual:
        yield "The tree does worse than that."
    own = found["on_training_rows"]["accuracy"]
    yield f"On the rows it was grown from it is right for {percent(own)}."


def _about_numbers(found: dict[str, Any]) -> Iterator[str]:
    error, usual = found["scores"]["rmse"], found["baseline"]["rmse"]["mean"]
    explained = found["scores"]["r2"]["mean"]
    yield (
        f"Tested {found['how']}, its root mean squared error is {score(error['mean'])}"
        f"{_within(error, score)}; always answering the mean has {score(usual)}."
    )
    if explained is not None:
        yield f"It explains {percent(explained)} of the variance (R squared)."
    own = found["on_training_rows"]["rmse"]
    yield f"On the rows it was grown from the error is {score(own)}."


def _within(found: dict[str, Any], form: Any) -> str:
    if found["low"] is None:
        return ""
    return f" (95 % interval {form(found['low'])} to {form(found['high'])})"


def _tiles(sections: dict[str, Any]) -> Iterator[tuple[str, str]]:
    data, model, found = (sections[n] for n in ("data", "model", "evaluation"))
    if model["predicts"] == "numbers":
        scores, usual = found["scores"], found["baseline"]
        yield score(scores["rmse"]["mean"]), "root mean squared error, unseen rows"
        yield score(usual["rmse"]["mean"]), "the same, always answering the mean"
        yield score(scores["r2"]["mean"]), "R squared, unseen rows"
    else:
        yield percent(found["scores"]["accuracy"]["mean"]), "right on unseen rows"
        yield (
            percent(found["baseline"]["accuracy"]["mean"]),
            "right with the most frequent class",
        )
        yield (
            percent(found["scores"]["balanced_accuracy"]["mean"]),
            "right on average over classes",
        )
    leaves, noun = counted(model["leaves"], "leaf", "leaves").split()
    yield leaves, f"{noun}, depth {model['depth']:,}"
    rows, noun = counted(data["rows"], "row").split()
    yield rows, f"{noun}, {counted(len(data['columns']), 'column')}"


def data_part(sections: dict[str, Any]) -> Iterator[Raw]:
    """Tell what is in the table."""
    data = sections["data"]
    asked = set(sections["model"]["asks_about"])
    rows, columns, target = data["rows"], data["columns"], data["target"]
    told = f"{rows:,} rows and {counted(len(columns), 'column')} besides the target"
    share = percent(data["missing_share"])
    cells = f"{data['missing']:,} of their cells ({share}) are missing"
    yield paragraph(f"{told}; {cells if data['missing'] else 'no cell is missing'}.")
    if data["weighted"]:
        yield paragraph("Rows have weights, which growing heeds; figures count rows.")
    head = ["column", "kind", "content", "different values", "missing", "asked"]
    listed = table(
        head,
        [_row(one, rows, one["name"] in asked) for one in columns[:_LISTED]],
        words=(0, 1, 2, 5),
    )
    yield side_by_side(_target_figure(sections), _target_table(target))
    yield folded(f"Every column ({len(columns):,})", listed, _more(len(columns)))


def _more(columns: int) -> Raw:
    if columns <= _LISTED:
        return Raw("")
    return paragraph(f"The first {_LISTED:,} of {columns:,} columns.", "faint")


def _row(column: dict[str, Any], rows: int, asked: bool) -> list[str]:
    share = percent(column["missing"] / rows)
    missing = f"{column['missing']:,} ({share})" if column["missing"] else "0"
    return [
        word(column["name"]),
        column["kind"],
        _content(column),
        f"{column['distinct']:,}",
        missing,
        "yes" if asked else "",
    ]


def _content(column: dict[str, Any]) -> str:
    if "most" in column:
        values = [f"{word(one['value'])} ({one['rows']:,})" for one in column["most"]]
        more = ", ..." if column["distinct"] > len(values) else ""
        return ", ".join(values) + more
    if column["minimum"] is None:
        return ""
    low, middle, high = (
        rounded(column[n], 5) for n in ("minimum", "median", "maximum")
    )
    return f"{low} to {high}, median {middle}"


def _target_figure(sections: dict[str, Any]) -> Raw:
    target = sections["data"]["target"]
    name = target_name(sections)
    if "classes" not in target:
        return figure(spread_chart(target), f"How {name} is spread.")
    shown = min(len(target["classes"]), MOST_BARS)
    which = "" if shown == len(target["classes"]) else f", the {shown} most frequent"
    return figure(balance_chart(target), f"The classes of {name}{which}.")


def _target_table(target: dict[str, Any]) -> Raw:
    if "classes" in target:
        rows = [
            [word(one["class"]), f"{one['rows']:,}", percent(one["share"])]
            for one in target["classes"][:_LISTED]
        ]
        return table(["class", "rows", "share"], rows)
    names = ("minimum", "median", "maximum", "mean", "deviation")
    return table(
        [word(target["name"]), "value"],
        [[name, rounded(target[name], 5)] for name in names],
    )


def warnings_part(sections: dict[str, Any]) -> Iterator[Raw]:
    """Tell what may be wrong with the table."""
    found = sections["warnings"]
    if not found:
        yield paragraph(
            "None. Looked for: columns that name rows, give the answer away, are "
            "constant, empty, mostly missing, look like codes or say the same; classes "
            "with one row."
        )
        return
    yield Raw(
        '<ul class="warnings">'
        + "\n".join(_warning(one) for one in found[:_LISTED])
        + "</ul>"
    )


def _warning(one: dict[str, Any]) -> str:
    kind = _KINDS.get(one["kind"], one["kind"])
    return (
        f"<li><b>{text(kind[0].upper() + kind[1:])}.</b> {text(one['message'])} "
        f'<span class="faint">{text(one["advice"])}</span></li>'
    )
