"""What verbs that make a model do with it: write, sum up, print."""

from __future__ import annotations

from branchwise.cli.options import Form
from branchwise.cli.show import described
from branchwise.cli.streams import Reporter, open_output, print_json, print_lines
from branchwise.errors import counted
from branchwise.model import Model
from branchwise.table.read import STANDARD_STREAM


def size_of(model: Model) -> str:
    """Write how large a tree is."""
    tree = model.tree
    return (
        f"tree of {counted(len(tree), 'node')} "
        f"({counted(tree.n_leaves, 'leaf', 'leaves')}, depth {tree.max_depth:,})"
    )


def write_model(model: Model, output: str) -> None:
    """Write a model file, whole or not at all."""
    with open_output(output) as stream:
        stream.write(model.to_bytes())


def report_model(
    model: Model, summary: str, output: str | None, form: Form, reporter: Reporter
) -> None:
    """Note where a model has gone, and print it where that is wanted.

    Parameters
    ----------
    model : Model
        What was made.
    summary : str
        How large it is and what it was made from.
    output : str or None
        The file that it was written to.
    form : Form
        How to print it.
    reporter : Reporter
        Who notes.
    """
    if output is None:
        reporter.note(f"{summary}; -o FILE writes it to a model file.")
    else:
        place = "standard output" if output == STANDARD_STREAM else output
        reporter.note(f"{summary} written to {place}.")
    if output == STANDARD_STREAM:
        return  # it has the model, which is JSON already
    if form is Form.JSON:
        print_json(described(model))
    elif output is None:
        print_lines([model.to_text()])
