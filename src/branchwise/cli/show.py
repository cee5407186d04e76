"""``branchwise show`` and ``view``: the tree as text, picture, rules, JSON or page."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from branchwise.cli import options
from branchwise.cli.options import Page, check_idle, check_without_table, takes
from branchwise.cli.options.model_metadata import with_labels_of
from branchwise.cli.support import (
    Reporter,
    check_outputs,
    open_output,
    print_json,
    print_lines,
    style_of_file,
)
from branchwise.cli.support.models import note_written, open_any, open_tree, tree_of
from branchwise.cli.support.rows import (
    Inputs,
    check_two_streams,
    input_options,
    read_known_rows,
)
from branchwise.data.table_schema import Column
from branchwise.errors import DataError, ParameterError, counted, plain
from branchwise.files.read_table import STANDARD_STREAM
from branchwise.model import Model
from branchwise.text.conditions import condition_of, phrase
from branchwise.text.predictions import prediction

if TYPE_CHECKING:
    from branchwise.ensemble.ensemble import Ensemble

#: What branchwise rules tells of a rule beyond the description of a model.
_MORE_OF_RULES = frozenset(("coverage", "confidence", "interval", "sentence"))
#: Levels of indentation; deeper nodes have no more.
_DEEPEST_INDENT = 24


_SHOW, _VIEW = map(Page, ("show", "view"))
_STYLES = ("quinlan", "box", "markdown", "svg", "dot", "mermaid", "html", "png")
#: Styles that are pictures, not text.
_PICTURES = ("svg", "dot", "mermaid", "png")
#: File ending -> style, unless --style is given.
_ENDINGS = {
    "": "quinlan",
    ".txt": "quinlan",
    ".md": "markdown",
    ".svg": "svg",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".html": "html",
    ".htm": "html",
    ".png": "png",
}


def show(
    model_path: str = options.MODEL,
    style: str | None = _SHOW.option("--style", choices=_STYLES),
    rules: bool = _SHOW.flag("--rules"),
    max_depth: int | None = _SHOW.option("--max-depth", min=0),
    max_nodes: int | None = _SHOW.option("--max-nodes", min=1),
    empty_branches: bool = _SHOW.flag("--empty-branches"),
    nodes: bool = _SHOW.flag("--nodes"),
    output_format: str = options.FORMAT,
    output: str | None = options.OUTPUT,
    number: int | None = options.TREE,
    labels: str | None = options.SHARED.option("--labels", panel=None),
) -> None:
    """Print or draw a tree, or print its rules or a description as JSON."""
    if rules and nodes:
        raise ParameterError(
            "--rules has only leaves and --nodes all nodes. Give one of them."
        )
    given = {
        "--style": style,
        "--rules": rules,
        "--nodes": nodes,
        "--max-depth": max_depth,
        "--max-nodes": max_nodes,
        "--empty-branches": empty_branches,
    }
    text = output_format == "json" or rules or nodes
    style = _style_of(output, style, text)
    shown = "--rules" if rules else "--nodes" if nodes else f"--style {style}"
    if output_format == "json":
        shown = "--format json"
    _check_idle(shown, given)
    check_outputs({"-o": output}, model_path)
    opened = with_labels_of(labels, open_any(model_path))
    if number is None and not isinstance(opened, Model):
        _show_ensemble(opened, model_path, shown, given, output)
        return
    model = tree_of(opened, model_path, number)
    if output_format == "json":
        print_json(described(model), output)
    elif rules:
        print_lines((str(rule) for rule in model.rules()), output)
    elif nodes:
        print_lines(_numbered(model, max_depth), output)
    elif style == "png":
        with open_output(output) as stream:
            stream.write(_drawn(model, max_depth, max_nodes))
    else:
        tree = _shown(model, style, max_depth, max_nodes, empty_branches)
        heading = _heading(model) if style in ("quinlan", "box") else []
        print_lines([*heading, tree], output)


def _heading(model: Model) -> list[str]:
    """Return what the user has said of a model, in lines above the tree."""
    given = model.metadata.given
    named = [given[key] for key in ("name", "date") if key in given]
    notes = given.get("notes", "").splitlines()
    lines = [plain(line) for line in ([", ".join(named)] if named else []) + notes]
    return [*lines, ""] if lines else []


def _show_ensemble(
    ensemble: Ensemble,
    path: str,
    shown: str,
    given: Mapping[str, object],
    output: str | None,
) -> None:
    """Print a summary of an ensemble, as text, Markdown, JSON or a page.

    Of rules that vote, all of them.
    """
    votes = ensemble.recipe.method == "rules"
    found = ensemble.voting_rules() if votes else ensemble.summary()
    writers: dict[str, Callable[[], str]] = {
        "--format json": found.to_json,
        "--style quinlan": found.to_text,
        "--style markdown": found.to_markdown,
        "--style html": lambda: ensemble.to_html() or "",
    }
    if votes:
        writers["--rules"] = lambda: "\n".join(map(str, ensemble.voting_rules()))
    limits = ("--max-depth", "--max-nodes", "--empty-branches")
    limit = next((name for name in limits if given[name] not in (None, False)), None)
    if shown not in writers or limit or given["--style"] == "quinlan":
        tree_of(
            ensemble,
            path,
            None,
            f"{limit or shown} shows one: choose it with --tree N, from 0 to "
            "{last:,}. Without it a summary is shown, as text, Markdown, JSON or HTML.",
        )
    print_lines([writers[shown]()], output)
    if shown == "--style quinlan" and output is None and not votes:
        last = len(ensemble) - 1
        print_lines(["", f"--tree N shows a tree: 0 to {last:,}."])


def _style_of(output: str | None, style: str | None, text: bool) -> str:
    """Return the style: the one given, or that of the file's ending.

    ``text`` tells that rules, numbered nodes or JSON are shown in place of a style.
    """
    if output is None or output == STANDARD_STREAM:
        if style == "png":
            raise ParameterError(
                "--style png writes a file that is no text. Say where to with -o FILE."
            )
        return style or "quinlan"
    return style_of_file(output, style, _ENDINGS, text)


def _drawn(model: Model, max_depth: int | None, max_nodes: int | None) -> bytes:
    """Return the tree as a picture of dots, drawn by matplotlib."""
    from branchwise.plot import plot_tree

    picture = BytesIO()
    figure = plot_tree(model, max_depth=max_depth, max_nodes=max_nodes).figure
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _check_idle(shown: str, given: Mapping[str, object]) -> None:
    """Reject options that have no effect on what is shown."""
    text = {"--style", "--max-depth", "--empty-branches"}
    picture = {"--style", "--max-depth", "--max-nodes"}
    effective: dict[str, set[str]] = {
        "--format json": set(),
        "--rules": {"--rules"},
        "--nodes": {"--nodes", "--max-depth"},
        **{f"--style {style}": text for style in _STYLES},
        **{f"--style {style}": picture for style in _PICTURES},
        "--style html": {"--style"},
    }
    idle = {
        name: value for name, value in given.items() if name not in effective[shown]
    }
    check_idle(idle, f"with {shown}. Leave one of them out.")


def _shown(
    model: Model,
    style: str,
    max_depth: int | None,
    max_nodes: int | None,
    empty_branches: bool,
) -> str:
    """Return the tree in a style."""
    pictures = {
        "svg": model.to_svg,
        "dot": model.to_dot,
        "mermaid": model.to_mermaid,
    }
    if style in pictures:
        return pictures[style](max_depth, max_nodes)
    if style == "html":
        return model.to_html() or ""
    return model.to_text(
        max_depth=max_depth, empty_branches=empty_branches, style=style
    )


def described(model: Model) -> dict[str, Any]:
    """Return a description of a model as a dictionary."""
    schema = model.schema
    return {
        "algorithm": model.recipe.algorithm,
        "criterion": model.recipe.criterion_name,
        "pruning": model.recipe.pruning,
        "predicts": "numbers" if model.tree.is_regression else "classes",
        "nodes": len(model.tree),
        "leaves": model.tree.n_leaves,
        "depth": model.tree.max_depth,
        "metadata": model.metadata.given,
        "schema": {
            "target": schema.target,
            "classes": list(schema.classes),
            "columns": [_described_column(column) for column in schema.columns],
        },
        "rules": [
            {name: value for name, value in rule.items() if name not in _MORE_OF_RULES}
            for rule in model.rules().to_dict()["rules"]
        ],
    }


def _described_column(column: Column) -> dict[str, Any]:
    described: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if not column.is_numeric:
        described["values"] = list(column.categories)
    if column.date is not None:
        described["date"] = column.date.fields
    described["has_missing"] = column.has_missing
    seen = column.statistics
    if seen is not None:
        described |= {"known": seen.known, "missing": seen.missing}
        if column.is_numeric:
            described |= {"low": seen.low, "high": seen.high}
    return described


def _numbered(model: Model, max_depth: int | None) -> Iterator[str]:
    """Yield a line for each node: its number, its condition, its prediction."""
    schema, tree = model.schema, model.tree
    width = len(str(len(tree) - 1))
    for node in tree.preorder():
        depth = int(tree.depth[node])
        if max_depth is not None and depth > max_depth:
            continue
        indent = "|   " * min(depth - 1, _DEEPEST_INDENT)
        way = phrase(condition_of(schema, tree, node)) if node else "all cases"
        said = prediction(schema, tree, node, model.reasons)
        yield f"{node:>{width}}  {indent}{way}: {said}"


def report_model(
    model: Model | Ensemble,
    size: str,
    output: str | None,
    output_format: str,
    reporter: Reporter,
) -> None:
    """Note where a model was written, and print it if there is no output file.

    ``size`` tells how large it is and what it was made from.
    """
    note_written(size, output, reporter)
    if output == STANDARD_STREAM:
        return  # it has the model, which is JSON already
    if not isinstance(model, Model):
        votes = model.recipe.method == "rules"
        found = model.voting_rules() if votes else model.summary()
        if output_format == "json":
            print_lines([found.to_json()])
        elif output is None:
            print_lines([found.to_text()])
    elif output_format == "json":
        print_json(described(model))
    elif output is None:
        print_lines([*_heading(model), model.to_text()])


#: So much of a file is read to tell whether it is a page of ours.
_HEAD = 4096
#: On these systems there is always a screen.
_WITH_SCREEN = ("darwin", "win32", "cygwin")


@takes(inputs=input_options)
def view(
    model_path: str = options.MODEL,
    output: str | None = _VIEW.option("--output"),
    title: str | None = options.TITLE,
    number: int | None = options.TREE,
    data: str | None = _VIEW.option("--data"),
    labels: str | None = options.SHARED.option("--labels", panel=None),
    no_open: bool = _VIEW.flag("--no-open"),
    *,
    inputs: Inputs,
) -> None:
    """Write the tree as one HTML page and open it in the browser."""
    check_two_streams(MODEL=model_path, TABLE=data)
    check_without_table(inputs.reading, "--data", data, missing=inputs.missing)
    model = open_tree(
        model_path,
        number,
        "Choose one with --tree N, from 0 to {last:,}; branchwise show MODEL -o "
        "page.html writes a page of the whole.",
    )
    model = with_labels_of(labels, model)
    target = output if output is not None else _beside(model_path)
    check_outputs({"-o": target}, model_path, data)
    if data is None:
        page = model.to_html(title=title)
    else:
        with inputs.opened(data) as (table, _):
            rows = read_known_rows(model, table, None, None, inputs.reporter)
            page = rows.model.to_html(title=title, X=rows.X, y=rows.y)
    with open_output(target) as file:
        file.write(page.encode("utf-8"))
    if target == STANDARD_STREAM:
        return
    opened = not no_open and open_in_browser(Path(target).resolve().as_uri())
    nodes = counted(len(model.tree), "node")
    end = "opened in the browser." if opened else "open it in a browser."
    inputs.reporter.note(f"page of a tree of {nodes} written to {target}; {end}")


def _beside(model_path: str) -> str:
    """Return the name of a page next to a model, if nothing of the user's is there."""
    if model_path == STANDARD_STREAM:
        raise ParameterError(
            "-o must name the page where the model comes from standard input: there "
            "is no file name to take one from. Add -o tree.html."
        )
    path = Path(model_path).with_suffix(".html")
    if path.is_file() and not _is_ours(path):
        raise DataError(
            f"{str(path)!r} is there and was not written by branchwise. Name the page "
            f"with -o; -o {path} replaces that file."
        )
    return str(path)


def _is_ours(path: Path) -> bool:
    from branchwise.render.view import GENERATOR

    with path.open("rb") as file:
        return GENERATOR.encode("ascii") in file.read(_HEAD)


def open_in_browser(address: str) -> bool:
    """Open a page in the browser of the user, if there is a screen to show it on."""
    import webbrowser

    screen = sys.platform in _WITH_SCREEN or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if not screen:
        return False
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
