"""A model: schema, tree and recipe; everything that reads, shows and saves."""

from __future__ import annotations

import os

from branchwise import persist, pruning
from branchwise.files import atomic_write
from branchwise.pruning import PruningTable
from branchwise.reading import Reading
from branchwise.recipes import Pruning
from branchwise.showing import Showing


class Model(Reading, Showing):
    """A fitted tree with the words to speak of it.

    Parameters
    ----------
    schema : Schema
        Columns, their kinds and possible values, and the classes.
    tree : Tree
        The arrays of the tree.
    recipe : Recipe
        How it was grown.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def prune(
        self,
        method: Pruning,
        X: object = None,
        y: object = None,
        *,
        confidence: float = 0.25,
        raise_subtrees: bool | None = None,
        tolerance: float = 0.0,
        ccp_alpha: float | str = 0.0,
        sample_weight: object = None,
    ) -> Model:
        """Return a smaller model, without growing the tree again.

        The new model's recipe has this way of pruning in place of the one it had.

        Parameters
        ----------
        method : {"error-based", "reduced-error", "cost-complexity"}
            How subtrees are judged: by pessimistic estimates of their errors in
            training, by their errors on other rows, or by what their leaves cost.
        X, y : table and sequence, or None
            "reduced-error": rows that the tree was not grown from. "error-based": the
            very rows that it was grown from, which are counted again where a branch
            takes the place of its parent; without them no branch does.
            "cost-complexity": rows for choosing ``ccp_alpha``.
        confidence : float, default=0.25
            "error-based": the lower, the smaller the tree.
        raise_subtrees : bool or None, default=None
            "error-based": whether a branch may take the place of its parent; None is
            wherever X and y are given.
        tolerance : float, default=0.0
            "reduced-error": by how much the accuracy on X may suffer with each subtree
            that goes.
        ccp_alpha : float, "best" or "1-se", default=0.0
            "cost-complexity": what a leaf costs; or the price whose tree errs least on
            X, or the largest within one standard error of that.
        sample_weight : sequence of float or None
            The weights of the rows of X.

        Returns
        -------
        Model
            A new model; this one does not change.
        """
        rows = pruning.Rows.of(X, y, sample_weight)
        recipe = pruning.pruning_recipe(
            self.recipe, method, confidence, raise_subtrees, tolerance, ccp_alpha, rows
        )
        tree, recipe = pruning.pruned(self.schema, self.tree, recipe, rows, self.recipe)
        return Model(self.schema, tree, recipe)

    def snip(self, *nodes: int) -> Model:
        """Return a new model in which some nodes are leaves.

        Nodes are numbered level by level from the root, 0; those of the new model are
        numbered anew. Its recipe stays: it tells how the tree was grown, not what was
        cut by hand.
        """
        return Model(self.schema, pruning.snip(self.tree, nodes), self.recipe)

    def merge_same_leaves(self, change_probabilities: bool = False) -> Model:
        """Return a new model in which leaves that say the same are one.

        A node whose branches are all leaves that say what the node says becomes a
        leaf; leaves of a node that say the same share a branch. By default nodes say
        the same if they, and what they are together, give every class the same
        probability, so nothing but the length of the tree changes. With
        ``change_probabilities`` the same answer will do: answers stay, except that
        of rows that go down several branches, and probabilities may change. Numbers
        must be equal in any case.
        """
        tree = pruning.merged(self.tree, self.recipe, change_probabilities)
        return Model(self.schema, tree, self.recipe)

    def pruning_path(self, X: object = None, y: object = None) -> PruningTable:
        """Return sizes and errors of the trees of cost-complexity pruning.

        Parameters
        ----------
        X, y : table and sequence, or None
            Rows to validate with.

        Returns
        -------
        PruningTable
            From the tree itself (without splits that gain nothing) to its root.
        """
        rows = pruning.Rows.of(X, y)
        return pruning.pruning_table(self.schema, self.tree, self.recipe, rows)

    def export(
        self,
        target: str,
        path: str | os.PathLike[str] | None = None,
        verify: object = True,
        **options: str,
    ) -> str | bytes:
        """Return the model in another language or format, and write it to a file.

        Parameters
        ----------
        target : str
            One of ``branchwise.export.TARGETS``: see ``docs/export.md``.
        path : str, path or None
            Where to write it to.
        verify : bool or table
            The export is run, and every answer compared with the model's: on rows made
            to break it (True), or on those of a table. False writes it as it is.
        **options : str
            What the target lets choose.

        Returns
        -------
        str or bytes
            The export; bytes where the format is not text.
        """
        from branchwise import export  # noqa: PLC0415

        if verify is False:
            content = export.write(self, target, **options)
        else:
            rows = None if verify is True else verify
            content, _ = export.exported(self, target, rows, **options)
        if path is not None:
            with atomic_write(path) as file:
                file.write(content)
        return content if export.TARGETS[target].binary else content.decode()

    def to_bytes(self) -> bytes:
        """Return the content of the model file."""
        return persist.to_bytes(self.schema, self.tree, self.recipe)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, whole or not at all."""
        persist.save(path, self.schema, self.tree, self.recipe)


def load(path: str | os.PathLike[str]) -> Model:
    """Open a model file. This never runs code from the file.

    Parameters
    ----------
    path : str or path
        A file written by :meth:`Model.save` or by ``branchwise fit``.

    Returns
    -------
    Model
        The model, which predicts exactly as the one that was saved.
    """
    return Model(*persist.load(path))


def pruning_path(model: Model, X: object = None, y: object = None) -> PruningTable:
    """Return sizes and errors of a model's prunings: :meth:`Model.pruning_path`."""
    return model.pruning_path(X, y)
