"""Sections of the page on data and tree: summary, data, warnings, tree, rules, root."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from branchwise.errors import counted, plain
from branchwise.model import Model
from branchwise.render import view as viewer
from branchwise.render.svg import svg_lines
from branchwise.render.view import view
from branchwise.report.figures import (
    MOST_BARS,
    balance_chart,
    percent,
    score,
    spread_chart,
)
from branchwise.steps.result import Steps
from branchwise.text import as_html as html
from branchwise.text.blocks import (
    Block,
    Code,
    Columns,
    Figure,
    Fold,
    Html,
    Items,
    Paragraph,
    Table,
)
from branchwise.text.conditions import UNNAMED, rounded, word

#: So many columns of a table are listed.
_LISTED = 200
#: What each kind of warning is called.
_KINDS = {
    "leak": "may leak the target",
    "identifier": "names rows",
    "empty": "is empty",
    "constant": "is constant",
    "mostly_missing": "is mostly missing",
    "codes": "looks like codes",
    "duplicate": "are duplicates",
    "rare_class": "class with one row",
}


def target_name(sections: dict[str, Any]) -> str:
    """Return what is predicted, in words."""
    name = str(sections["data"]["target"]["name"])
    return "the target" if name == UNNAMED else word(name)


def lead(sections: dict[str, Any]) -> str:
    """Summarise the report in a few sentences."""
    return " ".join(_sentences(sections))


def _sentences(sections: dict[str, Any]) -> Iterator[str]:
    data, model, found = (sections[n] for n in ("data", "model", "evaluation"))
    kind = model["algorithm"]
    leaves = "1 leaf" if model["leaves"] == 1 else f"{model['leaves']:,} leaves"
    yield (
        f"{'An' if kind[0] in 'AEIOU' else 'A'} {kind} tree of {leaves} and depth "
        f"{model['depth']:,} predicts {target_name(sections)} from "
        f"{counted(len(data['columns']), 'column')} of {data['rows']:,} rows; it "
        f"splits on {len(model['used_columns']):,} of them."
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
        f"{_within(right, percent)}. Always predicting {word(largest['class'])} would "
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
        f"{_within(error, score)}; always predicting the mean has {score(usual)}."
    )
    if explained is not None:
        yield f"It explains {percent(explained)} of the variance (R squared)."
    own = found["on_training_rows"]["rmse"]
    yield f"On the rows it was grown from the error is {score(own)}."


def _within(found: dict[str, Any], number_format: Any) -> str:
    if found["low"] is None:
        return ""
    low, high = number_format(found["low"]), number_format(found["high"])
    return f" (95 % interval {low} to {high})"


def tiles(sections: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the main figures, each with what it is."""
    data, model, found = (sections[n] for n in ("data", "model", "evaluation"))
    if model["predicts"] == "numbers":
        scores, usual = found["scores"], found["baseline"]
        yield score(scores["rmse"]["mean"]), "root mean squared error, unseen rows"
        yield score(usual["rmse"]["mean"]), "the same, always predicting the mean"
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


def data_section(sections: dict[str, Any]) -> Iterator[Block]:
    """Describe the columns of the table."""
    data = sections["data"]
    used = set(sections["model"]["used_columns"])
    rows, columns, target = data["rows"], data["columns"], data["target"]
    told = f"{rows:,} rows and {counted(len(columns), 'column')} besides the target"
    share = percent(data["missing_share"])
    cells = f"{data['missing']:,} of their cells ({share}) are missing"
    yield Paragraph(f"{told}; {cells if data['missing'] else 'no cell is missing'}.")
    if data["weighted"]:
        yield Paragraph("Rows have weights, used in growing; figures count rows.")
    head = ["column", "kind", "content", "different values", "missing", "used"]
    listed = Table(
        head,
        [_row(one, rows, one["name"] in used) for one in columns[:_LISTED]],
        words=(0, 1, 2, 5),
    )
    shown = f"The first {_LISTED:,} of {len(columns):,} columns."
    more = Paragraph(shown if len(columns) > _LISTED else "", "faint")
    yield Columns([[_target_figure(sections)], [_target_table(target)]])
    yield Fold(f"Every column ({len(columns):,})", [listed, more])


def _row(column: dict[str, Any], rows: int, used: bool) -> list[str]:
    share = percent(column["missing"] / rows)
    missing = f"{column['missing']:,} ({share})" if column["missing"] else "0"
    return [
        word(column["name"]),
        column["kind"],
        _content(column),
        f"{column['distinct']:,}",
        missing,
        "yes" if used else "",
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


def _target_figure(sections: dict[str, Any]) -> Block:
    target = sections["data"]["target"]
    name = target_name(sections)
    if "classes" not in target:
        return Figure(spread_chart(target), f"How {name} is spread.")
    shown = min(len(target["classes"]), MOST_BARS)
    which = "" if shown == len(target["classes"]) else f", the {shown} most frequent"
    return Figure(balance_chart(target), f"The classes of {name}{which}.")


def _target_table(target: dict[str, Any]) -> Block:
    if "classes" in target:
        rows = [
            [word(one["class"]), f"{one['rows']:,}", percent(one["share"])]
            for one in target["classes"][:_LISTED]
        ]
        return Table(["class", "rows", "share"], rows)
    names = ("minimum", "median", "maximum", "mean", "deviation")
    return Table(
        [word(target["name"]), "value"],
        [[name, rounded(target[name], 5)] for name in names],
    )


def warnings_section(sections: dict[str, Any]) -> Iterator[Block]:
    """List warnings about the table."""
    found = sections["warnings"]
    if not found:
        yield Paragraph(
            "None. Checked for: columns that identify rows, leak the target, are "
            "constant, empty, mostly missing, look like codes or duplicate another "
            "column; classes with one row."
        )
        return
    listed = [_warning(one) for one in found[:_LISTED]]
    yield Html(html.page("report/templates/warnings.html", warnings=listed))


def _warning(one: dict[str, Any]) -> tuple[str, str, str]:
    kind = _KINDS.get(one["kind"], one["kind"])
    return kind[0].upper() + kind[1:], one["message"], one["advice"]


#: The size of a printed picture, in its own units: letters stay readable.
_PAPER = (1700.0, 1000.0)
_MOST_DEPTH, _MOST_NODES = 12, 150
#: Pictures up to this width need no landscape page.
_UPRIGHT = 900.0
#: So many rules are not folded away.
_OPEN_RULES = 12
#: So many columns are compared at the root.
_COMPARED = 40
#: So many lines of the tree in text.
_LINES = 300
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
#: What criteria are called.
_CRITERIA = {
    "gain": "information gain",
    "gain_ratio": "gain ratio",
    "gini": "decrease of Gini impurity",
    "variance": "decrease of variance",
    "poisson": "decrease of Poisson deviance",
}
#: Why not all of a large tree is on the page.
_WHY_LESS = "so that this page stays small: branchwise view writes all of it"
#: Why a column is out, where the reason's name is not words.
_OUT = {"average": "gains less than the average", "min_gain": "gains too little"}
#: Parameters of pruning, for where nothing is pruned.
_WITHOUT_EFFECT = ("m", "confidence", "raise_subtrees", "ccp_alpha", "tolerance")


def tree_section(sections: dict[str, Any], model: Model) -> Iterator[Block]:
    """Show the tree: to try on screen, as a picture on paper, in words."""
    small = shown_model(model)
    whole = len(small.tree) == len(model.tree)
    trying = ", try a case of your own in the panel" if whole else ""
    yield Paragraph(
        f"Click a node to read it, type to search{trying}; the ? in the corner lists "
        "all keys.",
        "on-screen faint",
    )
    lists = viewer.lists_for(small.tree)
    seen = view(small.schema, small.tree, small.recipe, lists=lists)
    seen = viewer.abridged(seen, len(model.tree), _WHY_LESS)
    words = str(model)
    drawn = html.page(
        "report/templates/tree.html",
        name=f"Decision tree for {target_name(sections)}",
        page=viewer.page(seen, words),
        **_paper(small, len(model.tree)),
    )
    yield Html(drawn)
    yield Fold("The tree as text", [_lines(words)])
    yield Fold("How it was grown: every parameter", list(_parameters(sections)))


def shown_model(model: Model) -> Model:
    """Return the model, or its upper levels if it is too large for a page."""
    depth_limit = viewer.beyond_a_notebook(model.tree)
    return model.collapse_nodes(*depth_limit) if depth_limit else model


def _paper(model: Model, n_nodes: int) -> dict[str, Any]:
    """Draw as many levels as can be read on paper."""
    seen = view(model.schema, model.tree, model.recipe)
    picture, depth = _fitting(seen)
    size = _SIZE.search(picture)
    note = (
        f"The upper {counted(depth, 'level')} of the tree, as far as a page has room. "
        "The rules below, the text, and the page on screen have the rest."
    )
    return {
        "wide": size is None or float(size[1]) > _UPRIGHT,
        "picture": base64.b64encode(picture.encode("utf-8")).decode("ascii"),
        "note": note if depth < seen["depth"] or len(model.tree) < n_nodes else "",
    }


def _fitting(seen: dict[str, Any]) -> tuple[str, int]:
    """Return the picture of the most levels that fit, and how many they are."""
    best, found = "\n".join(svg_lines(seen, 0, _MOST_NODES)), 0
    for depth in range(1, min(seen["depth"], _MOST_DEPTH) + 1):
        picture = "\n".join(svg_lines(seen, depth, _MOST_NODES))
        size = _SIZE.search(picture)
        if size is None or float(size[1]) > _PAPER[0] or float(size[2]) > _PAPER[1]:
            break
        best, found = picture, depth
    # A root split with many branches is drawn in any case.
    if not found and seen["depth"]:
        return "\n".join(svg_lines(seen, 1, _MOST_NODES)), 1
    return best, found


def _lines(words: str) -> Block:
    lines = words.split("\n")
    more = len(lines) - _LINES
    shown = lines[:_LINES] + ([f"... ({more:,} more lines)"] if more > 0 else [])
    return Code(shown)


def _parameters(sections: dict[str, Any]) -> Iterator[Block]:
    model = sections["model"]
    own = model["chosen"]
    if own:
        yield Paragraph("Chosen for this tree; all others are the algorithm's own:")
        yield Table(["parameter", "value"], list(own.items()), words=(0, 1))
    pruned = model["parameters"]["pruning"]
    rows = [
        [name, _value(value)]
        for name, value in model["parameters"].items()
        if pruned is not None or name not in _WITHOUT_EFFECT
    ]
    caption = f"{model['algorithm']}: the recipe in full"
    yield Table(["parameter", "value"], rows, words=(0, 1), caption=caption)
    if model["costs"] is not None:
        classes = [word(one["class"]) for one in sections["data"]["target"]["classes"]]
        yield Table(
            ["true class", *classes],
            [
                [name, *(f"{cost:g}" for cost in row)]
                for name, row in zip(classes, model["costs"], strict=True)
            ],
            caption="Cost of each predicted class",
        )


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def rules_section(sections: dict[str, Any]) -> Iterator[Block]:
    """Write the rules of the tree as sentences."""
    found = sections["rules"]
    shown, total = len(found["rules"]), found["of"]
    if shown < total:
        yield Paragraph(
            f"The {shown:,} rules that cover most, of {total:,}; together they cover "
            f"{percent(found['covered'])} of the training rows."
        )
    else:
        yield Paragraph(
            "One rule for each leaf, those that cover most first. Exactly one applies "
            "to a row whose values are known."
        )
    sentences = [rule["sentence"] for rule in found["rules"]]
    yield Items(sentences[:_OPEN_RULES], numbered=True, kind="rules")
    if rest := sentences[_OPEN_RULES:]:
        items = Items(rest, numbered=True, first=_OPEN_RULES + 1, kind="rules")
        yield Fold(f"{len(rest):,} more rules", [items])
    yield Paragraph(found["note"], "faint")


def root_section(sections: dict[str, Any], steps: Steps | None) -> Iterator[Block]:
    """Show how the split of the root was chosen, as a worked solution."""
    if steps is None:
        yield Paragraph(sections["root_split"]["left_out"])
        return
    root = sections["root_split"]
    used = root["column"]
    yield Paragraph(
        f"The root splits on {word(used)}. Each column is listed with its best split; "
        f"the score is its {_CRITERIA.get(root['criterion'], 'criterion')}."
        + ("" if root["as_chosen"] else " Pruning has changed the root since.")
    )
    rows = [
        [
            word(one["column"]),
            score(one["score"]),
            score(one["gain"]),
            "chosen"
            if one["column"] == used
            else _OUT.get(one["out"], one["out"] or ""),
        ]
        for one in root["candidates"][:_COMPARED]
    ]
    yield Table(["column", "score", "gain", ""], rows, words=(0, 3))
    yield Fold("The whole computation", [Html(steps.to_html_fragment(heading=3))])


def heading_of(sections: dict[str, Any]) -> str:
    """Return the heading of the page."""
    given = sections["title"]
    if given is not None:
        return plain(given)
    return f"{target_name(sections)}: report on a decision tree"
