"""Hold our trees against those of C4.5, J48, C5.0, rpart and scikit-learn.

    python benchmarks/parity.py [--shared ../shared] [--quick] [--system NAME ...]
                                [--set NAME ...] [--processes 2] [--output FILE]

The peers' figures were measured once and lie in ``SHARED/reference`` (its README says
how); ours are measured in the run, on the same data sets and the same folds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from branchwise import Model, fit_tree
from branchwise.recipe import C45, CART, Recipe
from printed_trees import GOLDEN, SYSTEMS, differences, read_tree

ROOT = Path(__file__).resolve().parent.parent
#: What J48 calls a system, and our recipe for the same tree.
LIKE_J48 = {
    "j48": C45,
    "j48_unpruned": replace(C45, pruning=None),
    "j48_no_raising": replace(C45, raise_subtrees=False),
}
#: Systems that grow other trees than the peers: compared by accuracy.
OTHERS = {
    "groups": replace(C45, branching="groups"),
    "cart_full": CART,
    "cart_1se": replace(CART, pruning="cost-complexity", ccp_alpha="1-se"),
}
RECIPES: dict[str, Recipe] = LIKE_J48 | OTHERS
TITLES = {
    "j48": "J48 (`C45Classifier()`)",
    "j48_unpruned": "J48 -U (`prune=False`)",
    "j48_no_raising": "J48 -S (`raise_subtrees=False`)",
    "groups": "C4.5, `group_values=True`",
    "cart_full": "CART, full",
    "cart_1se": 'CART, `ccp_alpha="1-se"`',
}
#: Names where J48 itself stands beside.
OURS = {"j48": "C4.5 (`C45Classifier()`)"}
PEERS_WITH_GROUPS = {
    "c45r8_double_subset": "R8 -s",
    "c50": "C5.0",
    "c50_no_subset": "C5.0 without groups",
    "j48": "J48",
}
PEERS_OF_CART = {
    "rpart_full": "rpart full",
    "rpart_1se": "rpart 1-SE",
    "sklearn_gini": "scikit-learn gini",
    "sklearn_entropy": "scikit-learn entropy",
}
#: Points of accuracy that groups may cost a set before it is named.
GROUPS_MAY_COST = 1.5
#: A set with so many rows counts for the mean of the larger sets.
LARGE = 100
#: --quick leaves out sets with more rows.
QUICK_ROWS = 1000


# ---------------------------------------------------------------------- measuring


@dataclass(frozen=True)
class DataSet:
    """A training file, its folds, and its test file where it has one."""

    X: pd.DataFrame
    y: np.ndarray
    classes: list[str]
    folds: np.ndarray
    test: tuple[pd.DataFrame, np.ndarray] | None

    def fitted(self, recipe: Recipe, rows: np.ndarray | None = None) -> Model:
        """Grow a tree from all rows or from some."""
        kept = slice(None) if rows is None else rows
        return fit_tree(self.X[kept], self.y[kept], recipe, classes=self.classes)


@dataclass(frozen=True)
class Figures:
    """What one recipe did on one set; None stands for a fold without rows."""

    nodes: int
    nodes_with_empty: int
    train_errors: int
    test_errors: int | None
    fold_errors: list[int | None]
    seconds: float

    @property
    def cv_errors(self) -> int:
        """The errors of all folds."""
        return sum(errors or 0 for errors in self.fold_errors)


def load(shared: Path, name: str) -> DataSet:
    """Read a set: values are declared in sorted order, all files together."""
    folder = shared / "data" / name
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    files = {
        part: pd.read_csv(folder / file, dtype=str, keep_default_na=False)
        for part, file in meta["files"].items()
    }
    everything = pd.concat(files.values())
    tables = {part: _columns(table, everything, meta) for part, table in files.items()}
    target = meta["class_column"]
    main = "train" if "train" in files else "data"
    test = None
    if "test" in files:
        test = tables["test"], files["test"][target].to_numpy()
    return DataSet(
        tables[main],
        files[main][target].to_numpy(),
        sorted(everything[target].unique()),
        np.loadtxt(shared / "reference" / "folds" / f"{name}.csv", int, ndmin=1),
        test,
    )


def _columns(table: pd.DataFrame, everything: pd.DataFrame, meta: Any) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for name in table.columns:
        if name == meta["class_column"] or name in meta["ignore"]:
            continue
        cells = table[name].where(table[name] != meta["missing_marker"], None)
        if name in meta["numeric"]:
            columns[name] = pd.to_numeric(cells)
        else:
            values = set(everything[name].unique()) - {meta["missing_marker"]}
            columns[name] = pd.Categorical(cells, categories=sorted(values))
    return pd.DataFrame(columns)


def measure(task: tuple[Path, str, str]) -> tuple[str, str, Figures]:
    """Grow the tree of the whole file and those of the folds."""
    shared, name, system = task
    data, recipe = load(shared, name), RECIPES[system]
    began = time.perf_counter()
    model = data.fitted(recipe)
    fold_errors: list[int | None] = []
    for fold in range(10):
        held_out = data.folds == fold
        if not held_out.any():
            fold_errors.append(None)
            continue
        of_fold = data.fitted(recipe, ~held_out)
        fold_errors.append(errors(of_fold, data.X[held_out], data.y[held_out]))
    return (
        name,
        system,
        Figures(
            len(model.tree),
            len(model.tree) + empty_leaves(model),
            errors(model, data.X, data.y),
            None if data.test is None else errors(model, *data.test),
            fold_errors,
            time.perf_counter() - began,
        ),
    )


def errors(model: Model, X: pd.DataFrame, y: np.ndarray) -> int:
    return int((model.predict(X) != y).sum())


def empty_leaves(model: Model) -> int:
    """Count the values without cases, each of which is a leaf in J48's trees."""
    tree = model.tree
    columns = model.schema.columns
    return sum(
        len(columns[tree.column[node]].categories) - int(tree.n_children[node])
        for node in np.flatnonzero(~tree.is_leaf).tolist()
        if not columns[tree.column[node]].is_numeric
    )


# -------------------------------------------------------------------------- telling


Results = dict[tuple[str, str], Figures]


@dataclass(frozen=True)
class Report:
    """Our figures beside the peers'."""

    sets: dict[str, Any]
    ours: Results
    shared: Path

    def lines(self) -> Iterator[str]:
        """Write the whole page."""
        systems = {system for _, system in self.ours}
        yield "# Parity with other programs"
        yield ""
        yield (
            "Written by `make parity`. The peers' figures were measured once, with the "
            "programs themselves (C4.5 release 8, Weka's J48, C5.0, rpart, "
            "scikit-learn); ours are measured in the run, on the same rows and the "
            "same ten folds."
        )
        like = [system for system in LIKE_J48 if system in systems]
        if like:
            yield from self._summary(like)
        for system in like:
            yield from self._like_j48(system)
        if "j48" in systems and "j48_unpruned" in systems:
            yield from self._golden()
        if "groups" in systems:
            wanted = [s for s in ("j48", "groups") if s in systems]
            yield from self._accuracies("Groups of values", wanted, PEERS_WITH_GROUPS)
            yield from self._worse_with_groups()
        cart = [s for s in ("cart_full", "cart_1se") if s in systems]
        if cart:
            yield from self._accuracies("CART", cart, PEERS_OF_CART)

    def _names(self, system: str) -> list[str]:
        return [name for name in self.sets if (name, system) in self.ours]

    def _peer(self, name: str, system: str) -> Any:
        return self.sets[name]["systems"][system]

    def _compared(self, name: str, system: str) -> tuple[bool, list[bool]]:
        """Tell whether the whole file's tree and each fold equal J48's."""
        ours, theirs = self.ours[name, system], self._peer(name, system)
        whole = (
            ours.nodes_with_empty == theirs["nodes"]
            and ours.train_errors == theirs["train_errors"]
            and ours.test_errors == theirs.get("test_errors")
        )
        pairs = zip(ours.fold_errors, theirs["fold_errors"], strict=True)
        return whole, [a == b for a, b in pairs if b is not None]

    def _summary(self, systems: Sequence[str]) -> Iterator[str]:
        yield from ("", "## The trees of J48", "")
        yield (
            "Equal means: the same number of nodes and the same errors on the whole "
            "file (and on the test file where there is one); the same errors in a "
            "fold. J48 has a leaf for every declared value, also where no case has it; "
            "we have none, so nodes are compared with these empty leaves added. "
            "Exceptions are explained in [c45.md](c45.md)."
        )
        yield ""
        yield "| system | whole files equal | folds equal | exceptions |"
        yield "| --- | --- | --- | --- |"
        for system in systems:
            whole, folds, exceptions = 0, [], []
            names = self._names(system)
            for name in names:
                file_equal, folds_equal = self._compared(name, system)
                whole += file_equal
                folds += folds_equal
                exceptions += [] if file_equal else [f"{name} whole file"]
                exceptions += [
                    f"{name} fold {k}" for k, same in enumerate(folds_equal) if not same
                ]
            yield (
                f"| {TITLES[system]} | {whole} of {len(names)} | {sum(folds)} of "
                f"{len(folds)} | {', '.join(exceptions) or 'none'} |"
            )

    def _like_j48(self, system: str) -> Iterator[str]:
        yield from ("", f"### {TITLES[system]}", "")
        yield "Where we differ, J48's figure follows in brackets."
        yield ""
        yield (
            "| set | nodes | with empty leaves | training errors | test errors | "
            "errors of the folds | sum |"
        )
        yield "| --- | --- | --- | --- | --- | --- | --- |"
        for name in self._names(system):
            ours, theirs = self.ours[name, system], self._peer(name, system)
            folds = zip(ours.fold_errors, theirs["fold_errors"], strict=True)
            yield (
                f"| {name} | {ours.nodes} "
                f"| {_beside(ours.nodes_with_empty, theirs['nodes'])} "
                f"| {_beside(ours.train_errors, theirs['train_errors'])} "
                f"| {_beside(ours.test_errors, theirs.get('test_errors'))} "
                f"| {' '.join(_beside(a, b) for a, b in folds)} "
                f"| {_beside(ours.cv_errors, theirs['cv_errors'])} |"
            )

    def _golden(self) -> Iterator[str]:
        names = [name for name in GOLDEN if name in self.sets]
        yield from ("", "### Printed trees, node by node", "")
        yield (
            "Columns, thresholds, labels, weights and errors (to the two decimals that "
            "J48 prints)."
        )
        yield ""
        yield "| set | J48 | J48 -U |"
        yield "| --- | --- | --- |"
        for name in names:
            data = load(self.shared, name)
            verdicts = []
            for system in SYSTEMS.values():
                path = self.shared / "reference" / "trees" / f"{name}.{system}.txt"
                printed = read_tree(path.read_text(encoding="utf-8"))
                found = differences(data.fitted(RECIPES[system]), printed)
                verdicts.append(f"{len(found)} differences" if found else "equal")
            yield f"| {name} | {' | '.join(verdicts)} |"

    def _worse_with_groups(self) -> Iterator[str]:
        """Name the sets that groups do harm to."""
        worse = []
        for name in self._names("groups"):
            if (name, "j48") in self.ours:
                more = self.ours[name, "groups"].cv_errors
                more -= self.ours[name, "j48"].cv_errors
                points = 100 * more / self.sets[name]["rows_train"]
                if points > GROUPS_MAY_COST:
                    worse.append(f"{name} ({points:.1f} points)")
        yield ""
        yield (
            f"Sets that lose more than {GROUPS_MAY_COST} points by groups: "
            f"{', '.join(worse) or 'none'}."
        )

    def _accuracies(
        self, title: str, systems: Sequence[str], peers: dict[str, str]
    ) -> Iterator[str]:
        """Mean accuracies first, then the errors of every set."""
        names = [n for n in self.sets if all((n, s) in self.ours for s in systems)]
        errors = {
            **{
                f"**{OURS.get(system, TITLES[system])}**": [
                    self.ours[n, system].cv_errors for n in names
                ]
                for system in systems
            },
            **{
                label: [self._peer(n, peer)["cv_errors"] for n in names]
                for peer, label in peers.items()
            },
        }
        rows = np.array([self.sets[n]["rows_train"] for n in names])
        large = rows >= LARGE
        yield from ("", f"## {title}", "", "Mean accuracy in the ten folds, percent:")
        yield ""
        yield (
            f"| system | all {len(names)} sets | the {large.sum()} sets of {LARGE} "
            "rows or more |"
        )
        yield "| --- | --- | --- |"
        for label, wrong in errors.items():
            right = 100 * (1 - np.array(wrong) / rows)
            of_large = f"{right[large].mean():.2f}" if large.any() else "-"
            yield f"| {label} | {right.mean():.2f} | {of_large} |"
        yield from ("", "Errors in the ten folds together:", "")
        yield f"| set | rows | {' | '.join(errors)} |"
        yield "| --- | --- |" + " --- |" * len(errors)
        for index, name in enumerate(names):
            cells = " | ".join(str(wrong[index]) for wrong in errors.values())
            yield f"| {name} | {rows[index]} | {cells} |"


def _beside(ours: object, theirs: object) -> str:
    if ours is None and theirs is None:
        return "-"
    return str(ours) if ours == theirs else f"{ours} ({theirs})"


# ------------------------------------------------------------------------- running


def run(tasks: Sequence[tuple[Path, str, str]], processes: int) -> Results:
    """Measure everything; long tasks first, so that the processes end together."""
    results: Results = {}
    with ProcessPoolExecutor(processes) as pool:
        for name, system, figures in pool.map(measure, tasks):
            results[name, system] = figures
            print(
                f"{len(results)}/{len(tasks)} {system} {name}: {figures.seconds:.1f} s",
                file=sys.stderr,
                flush=True,
            )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--quick", action="store_true", help="small sets only")
    parser.add_argument("--system", action="append", choices=RECIPES, help="repeatable")
    parser.add_argument("--set", action="append", help="repeatable")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path, help="also write the page to a file")
    options = parser.parse_args()
    path = options.shared / "reference" / "peers.json"
    if not path.exists():
        parser.error(f"there is no {path}: pass the folder of the figures as --shared")
    sets = json.loads(path.read_text(encoding="utf-8"))["sets"]
    chosen = {
        name: about
        for name, about in sets.items()
        if (options.set is None or name in options.set)
        and not (options.quick and about["rows_train"] > QUICK_ROWS)
    }
    by_size = sorted(chosen, key=lambda name: -sets[name]["rows_train"])
    systems = options.system or list(RECIPES)
    tasks = [(options.shared, name, system) for name in by_size for system in systems]
    report = Report(chosen, run(tasks, options.processes), options.shared)
    page = "\n".join(report.lines()) + "\n"
    print(page)
    if options.output is not None:
        options.output.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
