"""``branchwise fit``: a table -> a model file."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from branchwise.cli.models import located
from branchwise.cli.options import (
    Categorical,
    Form,
    Format,
    Ignore,
    MissingMarks,
    Numeric,
    Quiet,
    TablePath,
    missing_marks,
)
from branchwise.cli.show import described
from branchwise.cli.streams import (
    Reporter,
    check_output,
    counted,
    open_output,
    print_json,
    print_lines,
)
from branchwise.cli.training import (
    assign_roles,
    case_weights,
    class_weights,
    parted,
    remark_columns,
    samples,
)
from branchwise.fitting import fit_tree
from branchwise.model import Model
from branchwise.recipes import Recipe
from branchwise.table.read import STANDARD_STREAM, TableFile

_GROWING = "Growing the tree"


class Criterion(StrEnum):
    """What makes a split good."""

    GAIN = "gain"
    GAIN_RATIO = "gain_ratio"
    GINI = "gini"


class Policy(StrEnum):
    """What a missing or unseen value does."""

    BRANCH = "branch"
    SPLIT = "split"
    LARGEST = "largest"
    NODE = "node"
    ERROR = "error"


def fit(
    table_path: TablePath,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column to predict.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The model file to write, - is standard output. Without it, the tree "
            "is printed.",
            show_default=False,
        ),
    ] = None,
    form: Format = Form.TEXT,
    quiet: Quiet = False,
    categorical: Categorical = None,
    numeric: Numeric = None,
    ignore: Ignore = None,
    missing: MissingMarks = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            "--categories",
            metavar="COLUMN=A,B,...",
            help="All possible values of a column, in order; may be repeated.",
            show_default=False,
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            "--weight",
            metavar="COLUMN",
            help="The column with the weight of each row.",
            show_default=False,
        ),
    ] = None,
    criterion: Annotated[
        Criterion,
        typer.Option(help="What makes a split good."),
    ] = Criterion.GAIN,
    max_depth: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="The most questions from the root to a leaf.",
            show_default="no limit",
        ),
    ] = None,
    min_samples_split: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="The fewest cases a node needs to be split; below 1, a share.",
        ),
    ] = "2",
    min_samples_leaf: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="The fewest cases each branch must get; below 1, a share.",
        ),
    ] = "1",
    min_gain: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="The least gain, in bits, that a split must bring.",
        ),
    ] = 0.0,
    missing_policy: Annotated[
        Policy,
        typer.Option(
            help="What a missing value does: has its own branch, goes down every "
            "branch by weight, follows the largest, stops at the node, is an error.",
        ),
    ] = Policy.BRANCH,
    unseen_policy: Annotated[
        Policy,
        typer.Option(
            help="What a value does that training did not have; branch takes it for a "
            "missing one.",
        ),
    ] = Policy.NODE,
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="balanced|CLASS=NUMBER,...",
            help="Weights of the classes; those not named have 1.",
            show_default=False,
        ),
    ] = None,
    max_bins: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="N",
            help="Cut number columns only between so many ranges: faster on long "
            "tables, no longer exact.",
            show_default="every threshold",
        ),
    ] = None,
    n_jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Threads to grow with, -1 is all cores; the tree is the same.",
            show_default="1",
        ),
    ] = None,
) -> None:
    """Grow a decision tree from a table and write it to a model file.

    Every column but the target is an attribute; see branchwise schema for what each
    is taken for.

    \b
    Examples:
      branchwise fit data.csv --target play -o tree.json
      branchwise fit data.csv --target play                  (just print the tree)
      branchwise fit data.csv -t play --ignore id --categorical zip --missing NA
      branchwise fit data.csv -t play --max-depth 3 --class-weight yes=2,no=1
      zcat big.csv.gz | branchwise fit - --target play -o tree.json
    """
    recipe = Recipe(
        "ID3",
        criterion.value,
        max_depth,
        samples("--min-samples-split", min_samples_split),
        samples("--min-samples-leaf", min_samples_leaf),
        min_gain,
        missing_policy.value,
        unseen_policy.value,
        max_bins,
    )
    reporter = Reporter(quiet)
    check_output(output)
    file = TableFile(table_path)
    roles = assign_roles(file, target, weight, categorical, numeric, ignore, categories)
    with reporter.working(f"Reading {file.label}") as say:
        table = file.read(
            missing=missing_marks(missing),
            text_columns=roles.text,
            number_columns=roles.numbers,
            ignore=roles.ignored,
        )
        labels, attributes = parted(table, roles, file)
        weights = case_weights(table, weight, file)
        weights = class_weights(class_weight, labels, weights)
        say(_GROWING)
        with located(file):
            model = fit_tree(
                attributes,
                labels,
                recipe,
                sample_weight=weights,
                categories=roles.categories or None,
                target_name=target,
                n_jobs=n_jobs,
                progress=lambda nodes: say(f"{_GROWING}: {nodes:,} nodes"),
            )
        if output is not None:
            say("Writing")
            with open_output(output) as stream:
                stream.write(model.to_bytes())
    remark_columns(attributes, roles, reporter)
    reporter.note(_summary(model, table.num_rows, output))
    if output == STANDARD_STREAM:
        return  # it has the model, which is JSON already
    if form is Form.JSON:
        print_json(described(model))
    elif output is None:
        print_lines([model.to_text()])


def _summary(model: Model, n_rows: int, output: str | None) -> str:
    tree = model.tree
    size = (
        f"tree of {counted(len(tree), 'node')} "
        f"({counted(tree.n_leaves, 'leaf', 'leaves')}, depth {tree.max_depth:,}) "
        f"from {counted(n_rows, 'row')}"
    )
    if output is None:
        return f"{size}; -o FILE writes it to a model file."
    place = "standard output" if output == STANDARD_STREAM else output
    return f"{size} written to {place}."
