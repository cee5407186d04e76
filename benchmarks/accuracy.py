"""Compare the accuracy of methods on many sets, half of which had no part in choices.

    python benchmarks/accuracy.py [--shared ../shared] [--method NAME ...]
                                  [--set TEXT ...] [--kind KIND ...] [--half HALF]
                                  [--against NAME] [--repeats 2] [--folds 5]
                                  [--processes 2] [--results FOLDER]
                                  [--again | --known] [--output FILE]

Sets are those of ``accuracy_sets.py``, methods those of ``accuracy_methods.py``. C5.0
was recorded on the shared sets, and is run on the others where its program is installed
(``c50_program.py``). Every set is in the choosing or in the confirming half, by a hash
of its name: parameters and methods are chosen by the first, and the second is looked at
once, at the end.

What was measured is kept in the folder of results, a file for each set and method, and
is not measured again; ``--again`` measures the named methods anew, as after a change,
``--known`` reports what is there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuracy_methods import METHODS, REFERENCE
from accuracy_sets import HALVES, KINDS, DataSet, Table, sets
from c50_program import PROGRAMS, fold_errors, program

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path.home() / ".cache" / "branchwise-accuracy"
#: Probabilities below this count as this much in the log loss.
LEAST_PROBABILITY = 0.001
#: Sets with fewer rows are left out: their folds have a handful of test rows.
LEAST_ROWS = 100


# ---------------------------------------------------------------------- measuring


@dataclass(frozen=True)
class Figures:
    """What a method did on a set of ``n`` rows: sums over the test rows of each fold.

    ``log_loss`` (in nats), ``brier`` (the sum of squared differences over classes) and
    ``leaves`` are empty where only the errors of a program are known.
    """

    n: int
    rows: list[int]
    errors: list[int]
    log_loss: list[float]
    brier: list[float]
    leaves: list[int]
    seconds: float

    @property
    def accuracy(self) -> float:
        """The share of right predictions, in percent."""
        return 100 - 100 * sum(self.errors) / sum(self.rows)

    @property
    def fold_accuracies(self) -> NDArray[np.float64]:
        """The accuracy in each fold, in percent."""
        return 100 - 100 * np.array(self.errors) / np.array(self.rows)

    def mean(self, name: str) -> float:
        """Return the mean of a loss over test rows, or that of leaves over folds."""
        amounts = getattr(self, name)
        if not amounts or (name == "leaves" and not any(amounts)):
            return float("nan")
        return sum(amounts) / (len(amounts) if name == "leaves" else sum(self.rows))


def measure(table: Table, method: str) -> Figures:
    """Fit on the other rows of every fold, and predict its test rows."""
    figures = Figures(len(table.y), [], [], [], [], [], 0.0)
    began = time.perf_counter()
    for test in table.tests:
        others = np.ones(len(table.y), dtype=bool)
        others[test] = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = METHODS[method](table.X[others], table.y[others], table.classes)
        X, y = table.X.iloc[test], table.y[test]
        figures.rows.append(len(test))
        figures.errors.append(int((np.asarray(model.predict(X)) != y).sum()))
        log_loss, brier = losses(model, X, y, table.classes)
        figures.log_loss.append(log_loss)
        figures.brier.append(brier)
        figures.leaves.append(size(model))
    return Figures(**{**asdict(figures), "seconds": time.perf_counter() - began})


def measure_program(table: Table, method: str) -> Figures:
    """Run a program that tells the size of its model and its errors."""
    began = time.perf_counter()
    found = fold_errors(table, method)
    rows, errors = [len(test) for test in table.tests], [wrong for _, wrong in found]
    sizes, seconds = [size for size, _ in found], time.perf_counter() - began
    return Figures(len(table.y), rows, errors, [], [], sizes, seconds)


def losses(model: Any, X: Any, y: Any, classes: list[str]) -> tuple[float, float]:
    """Add up the log loss and the Brier score of probabilities."""
    found = np.asarray(model.predict_proba(X))
    labels = list(getattr(model, "classes_", classes))
    probability = np.zeros((len(y), len(classes)))
    probability[:, [classes.index(label) for label in labels]] = found
    wanted = np.array(classes)[np.newaxis] == y[:, np.newaxis]
    right = np.maximum(probability[wanted], LEAST_PROBABILITY)
    return -float(np.log(right).sum()), float(((probability - wanted) ** 2).sum())


def size(model: Any) -> int:
    """Return the leaves of a tree, or the number of rules; 0 for a forest."""
    tree = getattr(getattr(model, "model_", model), "tree", None)
    if tree is not None:
        return int(tree.n_leaves)
    return int(getattr(model, "n_rules", 0))


@dataclass(frozen=True)
class Store:
    """Results on disk: a JSON file for each set, method and way of making folds."""

    folder: Path
    folds: str

    def path(self, data: DataSet, method: str) -> Path:
        """Return the file of a set and method."""
        folds = "" if data.kind == "shared" else self.folds
        key = hashlib.sha256(f"{data.name}/{method}/{folds}".encode()).hexdigest()[:16]
        return self.folder / f"{key}.json"

    def read(self, data: DataSet, method: str) -> Figures | None:
        """Return what was measured before, or None."""
        path = self.path(data, method)
        if not path.is_file():
            return None
        return Figures(**json.loads(path.read_text(encoding="utf-8"))["figures"])

    def write(self, data: DataSet, method: str, figures: Figures) -> None:
        """Keep what was measured."""
        self.folder.mkdir(parents=True, exist_ok=True)
        found = {"set": data.name, "method": method, "figures": asdict(figures)}
        path = self.path(data, method)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(found), encoding="utf-8")
        part.replace(path)


def measured(task: tuple[Store, DataSet, str]) -> tuple[str, str, Figures]:
    """Measure a method on a set, and keep the result."""
    store, data, method = task
    figures = (measure_program if method in PROGRAMS else measure)(data.load(), method)
    store.write(data, method, figures)
    return data.name, method, figures


def recorded(shared: Path, name: str, system: str) -> Figures | None:
    """Return the errors of a program on the shared folds."""
    path = shared / "reference" / "peers.json"
    about = json.loads(path.read_text(encoding="utf-8"))["sets"][name]
    found = about["systems"].get(system)
    if found is None:
        return None
    folds = np.loadtxt(shared / "reference" / "folds" / f"{name}.csv", int, ndmin=1)
    pairs = zip(np.bincount(folds, minlength=10), found["fold_errors"], strict=True)
    kept = [(int(rows), errors) for rows, errors in pairs if errors is not None]
    rows, errors = [pair[0] for pair in kept], [pair[1] for pair in kept]
    return Figures(sum(rows), rows, errors, [], [], [], 0.0)


# -------------------------------------------------------------------------- telling


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the mean of differences, and half the width of its 95 % interval."""
    from scipy.special import stdtrit

    values = np.array(differences)
    if len(values) < 2:
        return float(values.mean()), float("nan")
    error = values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(stdtrit(len(values) - 1, 0.975) * error)


def fold_interval(ours: Figures, theirs: Figures) -> tuple[float, float]:
    """Return the mean paired difference over folds, and half its 95 % interval.

    Folds share training rows, so their variance is raised by the share of test rows
    (Nadeau and Bengio 2003).
    """
    mean, width = interval((ours.fold_accuracies - theirs.fold_accuracies).tolist())
    k, tested = len(ours.rows), float(np.mean(ours.rows))
    share = tested / (ours.n - tested)
    return mean, width * float(np.sqrt(1 + k * share))


@dataclass(frozen=True)
class Report:
    """Figures of methods on sets, as Markdown."""

    sets: list[DataSet]
    figures: dict[tuple[str, str], Figures]
    methods: list[str]
    against: str

    def lines(self) -> Iterator[str]:
        """Yield the whole report."""
        for which in HALVES:
            if any(data.half == which for data in self.sets):
                yield from self._means(which)
        yield from self._every_set()

    def _common(self, which: str, kinds: Sequence[str], method: str) -> list[str]:
        """Return the sets of a half on which a method and the one it meets ran."""
        pair = (method, self.against)
        return [
            data.name
            for data in self.sets
            if data.half == which
            and data.kind in kinds
            and all((data.name, one) in self.figures for one in pair)
        ]

    def _means(self, which: str) -> Iterator[str]:
        yield from (f"## {which.capitalize()} half", "")
        yield (
            f"Difference: accuracy less that of {self.against} on the same sets, mean "
            "over sets with its 95 % interval."
        )
        yield ""
        yield (
            "| method | sets | accuracy | shared | carried | generated | difference | "
            "log loss | Brier | leaves |"
        )
        yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        for method in self.methods:
            names = self._common(which, KINDS, method)
            if not names:
                continue
            found = [self.figures[name, method] for name in names]
            cells = [method, str(len(names)), _mean([one.accuracy for one in found])]
            for kind in KINDS:
                of_kind = self._common(which, [kind], method)
                accuracies = [self.figures[name, method].accuracy for name in of_kind]
                cells.append(_mean(accuracies))
            cells.append(self._difference(names, method))
            cells += [
                _mean([one.mean("log_loss") for one in found], 4),
                _mean([one.mean("brier") for one in found], 4),
                _mean([one.mean("leaves") for one in found], 1),
            ]
            yield f"| {' | '.join(cells)} |"
        yield ""

    def _difference(self, names: list[str], method: str) -> str:
        if method == self.against:
            return ""
        mean, width = interval([
            self.figures[name, method].accuracy
            - self.figures[name, self.against].accuracy
            for name in names
        ])  # fmt: skip
        return f"{mean:+.2f} ± {width:.2f}"

    def _every_set(self) -> Iterator[str]:
        yield from ("## Every set", "")
        yield (
            "Accuracy in percent; in brackets the paired difference from "
            f"{self.against} over folds with its 95 % interval, where that excludes 0."
        )
        yield ""
        yield f"| set | half | rows | {' | '.join(self.methods)} |"
        yield f"|---|---|--:|{'--:|' * len(self.methods)}"
        for data in self.sets:
            cells = [self._cell(data.name, method) for method in self.methods]
            if not any(cells):
                continue
            rows = next(
                self.figures[data.name, method].n
                for method in self.methods
                if (data.name, method) in self.figures
            )
            yield f"| {data.name} | {data.half} | {rows:,} | {' | '.join(cells)} |"

    def _cell(self, name: str, method: str) -> str:
        ours = self.figures.get((name, method))
        if ours is None:
            return ""
        text = f"{ours.accuracy:.1f}"
        other = self.figures.get((name, self.against))
        if other is None or method == self.against or other.rows != ours.rows:
            return text
        mean, width = fold_interval(ours, other)
        return f"{text} ({mean:+.1f} ± {width:.1f})" if abs(mean) > width else text


def _mean(values: Sequence[float], digits: int = 2) -> str:
    known = [value for value in values if not np.isnan(value)]
    return f"{sum(known) / len(known):.{digits}f}" if known else ""


# -------------------------------------------------------------------------- running


def run(
    store: Store,
    chosen: list[DataSet],
    methods: Sequence[str],
    again: bool,
    processes: int,
) -> dict[tuple[str, str], Figures]:
    """Measure what is not known yet; programs only where they were not recorded."""
    figures: dict[tuple[str, str], Figures] = {}
    tasks = []
    for data in chosen:
        run_here = [] if data.kind == "shared" or program() is None else [*PROGRAMS]
        for method in [*methods, *run_here]:
            anew = again and method in methods
            known = None if anew else store.read(data, method)
            if known is not None:
                figures[data.name, method] = known
            else:
                tasks.append((store, data, method))
    with ProcessPoolExecutor(processes) as pool:
        for number, (name, method, found) in enumerate(pool.map(measured, tasks), 1):
            figures[name, method] = found
            print(
                f"{number}/{len(tasks)} {method}: {name}, {found.accuracy:.2f} %, "
                f"{found.seconds:.1f} s",
                file=sys.stderr,
                flush=True,
            )
    return figures


def known_figures(
    store: Store, chosen: list[DataSet], methods: Sequence[str]
) -> dict[tuple[str, str], Figures]:
    """Return what was measured before."""
    found = {(d.name, m): store.read(d, m) for d in chosen for m in methods}
    return {key: figures for key, figures in found.items() if figures is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--method", action="append", choices=METHODS, help="repeatable")
    parser.add_argument("--set", action="append", help="part of a name; repeatable")
    parser.add_argument("--kind", action="append", choices=KINDS, help="repeatable")
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--against", default="C4.5 groups", help="method to meet")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="measure anew")
    parser.add_argument("--known", action="store_true", help="measure nothing")
    parser.add_argument("--output", type=Path, help="also write the report to a file")
    options = parser.parse_args()
    chosen = [
        data
        for data in sets(options.shared, options.repeats, options.folds, LEAST_ROWS)
        if (options.half is None or data.half == options.half)
        and (options.kind is None or data.kind in options.kind)
        and (options.set is None or any(part in data.name for part in options.set))
    ]
    store = Store(options.results, f"{options.repeats}x{options.folds}")
    methods = options.method or list(METHODS)
    if options.known:
        figures = known_figures(store, chosen, [*methods, *PROGRAMS])
    else:
        figures = run(store, chosen, methods, options.again, options.processes)
    for data in chosen:
        for method, system in REFERENCE.items():
            if data.kind == "shared":
                found = recorded(options.shared, data.name, system)
                if found is not None:
                    figures[data.name, method] = found
    report = Report(chosen, figures, [*methods, *REFERENCE], options.against)
    page = "\n".join(report.lines()) + "\n"
    print(page)
    if options.output is not None:
        options.output.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
