"""Model files: opening them, one tree of an ensemble, writing them, and their size."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from branchwise import model_file
from branchwise.cli.support import Reporter, open_output
from branchwise.errors import ModelFileError, ParameterError, counted
from branchwise.files.c45_files import C45_ENDINGS
from branchwise.files.options import ENDINGS
from branchwise.files.read_table import STANDARD_STREAM
from branchwise.model import Model

if TYPE_CHECKING:
    from branchwise.ensemble.ensemble import Ensemble

#: Endings of tables, which are sometimes given in place of a model.
_TABLES = (*ENDINGS, *C45_ENDINGS)
#: What ensembles are called.
_KINDS = {
    "forest": "forest",
    "boosted": "boosting",
    "gradient": "gradient boosting",
}
_CHOOSE = "Choose one with --tree N, from 0 to {last:,}."


def open_any(path: str) -> Model | Ensemble:
    """Open the file of a tree or of an ensemble; ``-`` is standard input."""
    stored = _stored(path)
    if not isinstance(stored, model_file.StoredEnsemble):
        return Model(*stored)
    from branchwise.ensemble.stored_model import model_of

    return model_of(stored)


def open_tree(path: str, number: int | None, advice: str = _CHOOSE) -> Model:
    """Open the file of a tree, or one tree of an ensemble.

    ``advice`` is what to do where an ensemble is given and no tree is chosen.
    """
    return tree_of(open_any(path), path, number, advice)


def open_model(path: str, advice: str) -> Model:
    """Open the file of a single tree; ``advice`` is what to do with an ensemble."""
    return open_tree(path, None, advice)


def tree_of(
    model: Model | Ensemble, path: str, number: int | None, advice: str = _CHOOSE
) -> Model:
    """Return a single tree: the model, or the chosen tree of an ensemble."""
    label = "standard input" if path == STANDARD_STREAM else path
    if isinstance(model, Model):
        if number is not None:
            raise ParameterError(
                f"--tree chooses a tree of an ensemble, and {label} holds a single "
                "tree. Leave it out."
            )
        return model
    last = len(model) - 1
    if number is None and model.recipe.method == "rules":
        raise ParameterError(
            f"{label} holds rules that vote, and a single tree is needed here. "
            "branchwise rules lists them, branchwise explain tells which hold for a "
            "row, branchwise show MODEL -o page.html writes a page of them, and "
            "branchwise fit -a c4.5 grows a tree."
        )
    if number is None:
        raise ParameterError(
            f"{label} holds an ensemble of {counted(len(model), 'tree')}, and a single "
            "tree is needed here. " + advice.format(last=last)
        )
    if number > last:
        raise ParameterError(
            f"--tree must be a number from 0 to {last:,}, of the trees of {label}. "
            f"Got {number:,}."
        )
    return model[number]


def _stored(path: str) -> model_file.StoredTree | model_file.StoredEnsemble:
    if path == STANDARD_STREAM:
        content = sys.stdin.buffer.read(model_file.MAX_BYTES + 1)
        return model_file.from_bytes(content, "standard input")
    try:
        return model_file.load(path)
    except ModelFileError as error:
        if not Path(path).is_file() or Path(path).suffix.lower() not in _TABLES:
            raise
        advice = "Give the model first, then the table."
        raise ModelFileError(f"{error} {advice}") from None


def size_of(model: Model | Ensemble) -> str:
    """Write how large a tree or an ensemble is."""
    if not isinstance(model, Model) and model.recipe.method == "rules":
        rules = model.voting_rules()
        conditions = sum(len(rule.conditions) for rule in rules)
        number = counted(len(rules), "rule")
        return f"set of {number} ({counted(conditions, 'condition')})"
    if not isinstance(model, Model):
        kind = _KINDS[model.recipe.method]
        trees = counted(len(model), f"{model.recipe.tree.algorithm} tree")
        return f"{kind} of {trees} ({counted(sum(map(len, model.trees)), 'node')})"
    tree = model.tree
    return (
        f"tree of {counted(len(tree), 'node')} "
        f"({counted(tree.n_leaves, 'leaf', 'leaves')}, depth {tree.max_depth:,})"
    )


def write_model(model: Model | Ensemble, output: str) -> None:
    """Write a model file, whole or not at all."""
    with open_output(output) as stream:
        stream.write(model.to_bytes())


def note_written(summary: str, output: str | None, reporter: Reporter) -> None:
    """Note where a model was written."""
    if output is None:
        reporter.note(f"{summary}; -o FILE writes it to a model file.")
    else:
        position = "standard output" if output == STANDARD_STREAM else output
        reporter.note(f"{summary} written to {position}.")
