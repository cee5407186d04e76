"""Run the benchmarks and print one table; each line is a ratio within this run.

    python benchmarks/run.py [--rows 1000000] [--only NAME ...] [--list]
                             [--repeats N] [--adult FILE] [--shared FOLDER]
                             [--output FILE]

Everything runs on one thread. A time is that of the processor, the best of a few runs,
taken in turns with those of the peers, so that a busy machine hits all alike. Our fits
get their rows in a new order each time. Losses are printed like wins.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from c45 import C45Workloads  # noqa: E402
from cart import CARTWorkloads  # noqa: E402
from cliffs import CliffWorkloads  # noqa: E402
from forests import ForestWorkloads  # noqa: E402
from generate import Tables, planted  # noqa: E402
from measure import (  # noqa: E402
    Action,
    Line,
    Runs,
    Shuffled,
    best_times,
    compare,
    compare_fits,
    show,
)
from parity import ROOT  # noqa: E402
from peers import OURS, SKLEARN, others  # noqa: E402
from shared_sets import SharedWorkloads  # noqa: E402


class Workloads:
    """The works of the table; each ``time_*`` returns lines."""

    def __init__(self, tables: Tables) -> None:
        self.rows = tables.rows
        self.tables = tables
        self.peers = others()

    def time_fit_category(self) -> list[Line]:
        """Fit the first workload from a category DataFrame."""
        A = self.tables["A"]
        X, y = A.frame(), A.labels()
        size = f"{self.rows:,} x 20"
        every = [SKLEARN, *self.peers]
        return [
            compare_fits(
                f"fit {size} category, depth 8",
                X, y, 8, "100 x sklearn, 15 x others", every,
            ),
            compare_fits(
                f"fit {size} category, unlimited",
                X, y, None, "100 x sklearn, 30 x others", every,
            ),
        ]  # fmt: skip

    def time_fit_strings(self) -> list[Line]:
        """Fit the first workload from string columns."""
        A = self.tables["A"]
        work = f"fit {self.rows:,} x 20 strings, depth 8"
        every = [SKLEARN, *self.peers]
        bar = "10 x sklearn, 3 x others"
        return [compare_fits(work, A.frame("str"), A.labels(), 8, bar, every, 3)]

    def time_fit_csv(self) -> list[Line]:
        """Fit the first workload from a CSV file, as the command line does."""
        import pyarrow.csv

        plain = pyarrow.csv.WriteOptions(quoting_style="none")
        return [self._fit_file(
            "csv",
            lambda table, path: pyarrow.csv.write_csv(table, path, plain),
            pd.read_csv,
            at_least={"pandas + sklearn": 20.0},
            at_most=0.55,
        )]  # fmt: skip

    def time_fit_parquet(self) -> list[Line]:
        """Fit the first workload from a Parquet file, as the command line does."""
        import pyarrow.parquet

        return [self._fit_file(
            "parquet",
            pyarrow.parquet.write_table,
            pd.read_parquet,
            at_least={"pandas + sklearn": 30.0},
        )]  # fmt: skip

    def _fit_file(
        self,
        suffix: str,
        write: Callable[[Any, str], object],
        read: Callable[[str], pd.DataFrame],
        **promised: Any,
    ) -> Line:
        """Fit from a file, which is written in a new order before each run."""
        import pyarrow as pa

        from branchwise import Recipe, fit_tree
        from branchwise.files.read_table import read_table

        A = self.tables["A"]
        table = Shuffled(A.frame("str"), A.labels().astype("str"))
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / f"table.{suffix}")

            def rewrite(name: str) -> None:
                if name == OURS.name:
                    table.shuffle()
                    frame = table.X.assign(y=table.y)
                    write(pa.Table.from_pandas(frame, preserve_index=False), path)

            def ours() -> object:
                rows = read_table(path)
                X, y = rows.drop(["y"]), rows.column("y")
                return fit_tree(X, y, Recipe(max_depth=8))

            def theirs() -> object:
                rows = read(path)
                return SKLEARN.fit(rows.drop(columns="y"), rows["y"], 8)

            actions = {OURS.name: ours, "pandas + sklearn": theirs}
            turns = {OURS.name: 3, "pandas + sklearn": 1}
            times = best_times(actions, turns, rewrite)
        work = f"fit {self.rows:,} x 20 from {suffix.upper()}, depth 8"
        return show(Line(work, times.pop(OURS.name), times, **promised))

    def time_fit_wide(self) -> list[Line]:
        """Fit many columns and five classes."""
        C = self.tables["C"]
        work = f"fit {self.rows // 10:,} x 100 category, 5 classes, unlimited"
        every = [SKLEARN, *self.peers]
        return [compare_fits(work, C.frame(), C.labels(), None, "60 x sklearn", every)]

    def time_fit_mixed(self) -> list[Line]:
        """Fit numbers, categories and gaps."""
        mixed = self.tables["mixed"]
        X, y = mixed.frame(), mixed.labels()
        work = f"fit {self.rows // 2:,}, 10 numeric + 10 category, 3 % missing"
        every = [SKLEARN, *self.peers]
        least = {SKLEARN.name: 15.0, "LightGBM": 1.0, "XGBoost": 1.0, "YDF CART": 1.0}
        shallow = least | {"LightGBM": 3.0}
        return [
            compare_fits(f"{work}, depth 10", X, y, 10, "", every, 3, OURS, shallow),
            compare_fits(f"{work}, unlimited", X, y, None, "", every, 3, OURS, least),
        ]

    def time_predict(self) -> list[Line]:
        """Predict the first workload, end to end and from ready codes."""
        A = self.tables["A"]
        X, y = A.frame(), A.labels()
        lines = []
        for max_depth in (8, None):
            depth = "depth-8" if max_depth else "unlimited"
            actions: dict[str, Action] = {}
            for peer in [OURS, SKLEARN, *self.peers]:
                model = peer.fit(X, y, max_depth)
                actions[peer.name] = lambda m=model, p=peer: p.predict(m, X)
                if peer is OURS:
                    ours = model
                if peer is SKLEARN:
                    theirs = model
            turns = dict.fromkeys(actions, 2) | {OURS.name: 5}
            work = f"predict {self.rows:,} rows, {depth} tree"
            bar = "50 x sklearn, 3 x others"
            lines.append(compare(work, actions, turns, bar))
            lines.append(self._predict_codes(ours, theirs, X, depth))
        return lines

    def _predict_codes(
        self, ours: Any, theirs: Any, X: pd.DataFrame, depth: str
    ) -> Line:
        from branchwise.data.encode import encode_columns
        from branchwise.data.frames import open_table

        model = ours.model_
        data = encode_columns(open_table(X), model.schema, model.tree.used_columns)
        ready = theirs[0].transform(X).astype(np.float32)
        actions = {
            OURS.name: lambda: model.walker.classify(data),
            SKLEARN.name: lambda: theirs[1].predict(ready),
        }
        work = f"predict {self.rows:,} rows from ready codes, {depth} tree"
        return compare(work, actions, dict.fromkeys(actions, 3), "5 x sklearn")

    def time_small(self) -> list[Line]:
        """Fit a small table and predict one row: what a call costs at the least."""
        from branchwise import datasets

        car = datasets.load("car")
        X = pd.DataFrame(car.X).astype("category")
        y = pd.Series(pd.Categorical(car.y), name="y")
        one = X.iloc[[17]]
        fits: dict[str, Action] = {}
        predictions: dict[str, Action] = {}
        for peer in (OURS, SKLEARN):
            model = peer.fit(X, y, None)
            fits[peer.name] = lambda p=peer: p.fit(X, y, None)
            predictions[peer.name] = lambda p=peer, m=model: p.predict(m, one)
            if peer is OURS:
                ours = model
        turns = {OURS.name: 100, SKLEARN.name: 100}
        row = one.iloc[0].to_dict()
        from_dict = predictions | {OURS.name: lambda: ours.predict(row)}
        frame_bar, dict_bar = "4 x sklearn, 0.3 ms", "4 x sklearn, 50 us"
        return [
            compare("fit car, 1,728 x 6 category", fits, turns, "4 x sklearn"),
            compare("predict one row of car", predictions, turns, frame_bar),
            compare("predict one row of car, a dict", from_dict, turns, dict_bar),
        ]

    def track_fractional(self) -> list[Line]:
        """Predict fractional cases: rows that go down every branch somewhere."""
        from branchwise import CARTClassifier

        A = self.tables["A"]
        X, y = A.frame(), A.labels()
        gone = np.random.default_rng(0).random(X.shape) < 0.03
        model = CARTClassifier(max_depth=8, missing="split").fit(X, y).model_
        whole, split = model.encoded(X), model.encoded(X.mask(gone))
        actions: dict[str, Action] = {
            "whole": lambda: model.walker.probabilities(whole),
            "split": lambda: model.walker.probabilities(split),
        }
        times = best_times(actions, dict.fromkeys(actions, 5))
        line = Line(
            f"probabilities of {self.rows:,} rows, 3 % missing, fractional cases",
            times["split"] / times["whole"],
            unit="x time without missing values",
        )
        return [show(line)]

    def track_growth(self) -> list[Line]:
        """Growth alone: nanoseconds for each row and remaining column."""
        from branchwise import Recipe
        from branchwise.data.encode import learn_columns
        from branchwise.data.frames import open_table
        from branchwise.data.target import learn_target
        from branchwise.data.weights import weigh
        from branchwise.grow.native_kernel import grow_native

        A = self.tables["A"]
        columns, data = learn_columns(open_table(A.frame()), "from_dtype", None)
        classes, labels = learn_target(A.labels())
        grid = weigh(None, data.n_rows, fractions=False)
        recipe = Recipe(max_depth=8)
        times = best_times(
            {"grow": lambda: grow_native(
                columns, data, labels, len(classes), grid, recipe
            )},
            {"grow": 7},
        )  # fmt: skip
        tree = grow_native(columns, data, labels, len(classes), grid, recipe)
        split = tree.n_children > 0
        cells = float((tree.cases[split] * (20 - tree.depth[split])).sum())
        line = Line(
            f"growth on {self.rows:,} x 20, depth 8",
            times["grow"] / cells * 1e9,
            bar="at most 0.5 ns",
            unit="ns per row and remaining column",
        )
        return [show(line)]

    def track_scaling(self) -> list[Line]:
        """Ten times the rows, ten times the columns."""
        lines = []
        small = {
            "rows x 10": (planted(self.rows // 10, 20), planted(self.rows, 20)),
            "columns x 10": (
                planted(self.rows // 10, 10),
                planted(self.rows // 10, 100, seed=0),
            ),
        }
        for work, (one, ten) in small.items():
            seconds = []
            for table in (one, ten):
                X, y = table.frame(), table.labels()
                action = {"fit": lambda X=X, y=y: OURS.fit(X, y, 8)}
                seconds.append(best_times(action, {"fit": 5})["fit"])
            line = Line(
                work, seconds[1] / seconds[0], bar="at most x 12", unit="x time"
            )
            lines.append(show(line))
        return lines

    def time_fit_reference(self) -> list[Line]:
        """Fit with the NumPy reference: it must be usable by itself."""
        A = self.tables["A"]
        X, y = A.frame(), A.labels()

        def reference() -> object:
            os.environ["BRANCHWISE_KERNEL"] = "reference"
            try:
                return OURS.fit(X, y, None)
            finally:
                del os.environ["BRANCHWISE_KERNEL"]

        actions = {OURS.name: reference, SKLEARN.name: lambda: SKLEARN.fit(X, y, None)}
        work = f"fit {self.rows:,} x 20 category, unlimited, NumPy reference"
        turns = {OURS.name: 2, SKLEARN.name: 1}
        return [compare(work, actions, turns, "faster than sklearn")]

    def peakmem_fit(self) -> list[Line]:
        """Peak memory above the input, for both kernels."""
        size = f"{self.rows:,} x 20"
        make = f"t = planted({self.rows}, 20); X, y = t.frame(), t.labels()"
        shallow, full = "ID3Classifier(max_depth=8)", "ID3Classifier()"
        unlimited = f"{size}, unlimited, NumPy reference"
        return [
            _peak(f"{size}, depth 8", make, shallow, "native", 100),
            _peak(unlimited, make, full, "reference", 1000),
        ]

    def peakmem_numbers(self) -> list[Line]:
        """Peak memory above the input of numeric columns, classes and numbers."""
        table = f"t = planted({self.rows}, 0, 20, n_classes={{}}); X = t.frame(); y = "
        classes = table.format(2) + "t.labels()", "CARTClassifier"
        numbers = table.format(20) + "t.quantities()", "CARTRegressor"
        most = round(2 * self.rows * 20 * 8 / 2**20)
        return [
            _peak(
                f"{self.rows:,} x 20 numeric, {name}, {what}",
                make, f"{estimator}(max_depth={depth})", "native", most,
            )
            for what, (make, estimator) in (
                ("classes", classes), ("regression", numbers)
            )
            for name, depth in (("depth 8", 8), ("unlimited", None))
        ]  # fmt: skip


def _peak(what: str, make: str, estimator: str, kernel: str, at_most: float) -> Line:
    """Fit a table in a process of its own; ``make`` makes X and y there."""
    script = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from generate import planted
from branchwise import CARTClassifier, CARTRegressor, ID3Classifier
{make}
{estimator}.fit(X[:1000], y[:1000])  # load what is loaded once
def now():
    with open('/proc/self/statm') as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 2**20
open('/proc/self/clear_refs', 'w').write('5')  # forget the peak so far
before = now()
{estimator}.fit(X, y)
peak = next(int(l.split()[1]) for l in open('/proc/self/status') if 'VmHWM' in l) / 1024
print(peak - before)
"""
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"BRANCHWISE_KERNEL": kernel},
    )
    work = f"peak memory above the input, {what}"
    return show(Line(work, float(run.stdout), unit="MB", at_most=at_most))


HEADER = "| work | branchwise | peers | bar |\n|---|---|---|---|"


def machine() -> str:
    """Describe the machine and the versions."""
    cpu = platform.processor() or platform.machine()
    try:
        names = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next(n.split(":")[1].strip() for n in names if n.startswith("model name"))
    except (OSError, StopIteration):
        pass
    tools = ["branchwise", "numpy", "pandas", "pyarrow", "scikit-learn"]
    tools += [t for t in ("lightgbm", "xgboost", "xgboost-cpu", "ydf") if _installed(t)]
    versions = ", ".join(
        f"{tool} {version(tool)}" for tool in tools if _installed(tool)
    )
    load = os.getloadavg()[0]
    return (
        f"{cpu}, {os.cpu_count()} cores (one thread used), {platform.system()}, Python "
        f"{platform.python_version()}; {versions}; load {load:.1f} at the end."
    )


def _installed(name: str) -> bool:
    try:
        version(name)
    except ModuleNotFoundError:
        return False
    return True


def all_works(
    tables: Tables, adult: Path | None, shared: Path
) -> dict[str, Callable[[], list[Line]]]:
    """Return the works by name."""
    suites = (
        Workloads(tables),
        CliffWorkloads(tables),
        C45Workloads(tables, adult),
        CARTWorkloads(tables),
        ForestWorkloads(tables),
        SharedWorkloads(shared),
    )
    return {
        name: getattr(suite, name)
        for suite in suites
        for name in dir(suite)
        if name.startswith(("time_", "track_", "peakmem_"))
    }


def main() -> None:
    """Run the chosen works and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="works named like these"
    )
    parser.add_argument("--list", action="store_true", help="print the names of works")
    parser.add_argument(
        "--adult", type=Path, help="a copy of adult: CSV with names, the class last"
    )
    parser.add_argument(
        "--shared",
        type=Path,
        default=ROOT.parent / "shared",
        help="the folder with the data sets of parity.py",
    )
    parser.add_argument("--repeats", type=int, help="run nothing more often than this")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    Runs.most = arguments.repeats
    works = all_works(Tables(arguments.rows), arguments.adult, arguments.shared)
    if arguments.only:
        works = {
            name: work
            for name, work in works.items()
            if any(wanted in name for wanted in arguments.only)
        }
    if not works:
        parser.error("no work is named like that; --list prints the names.")
    if arguments.list:
        print("\n".join(works))
        return
    print(HEADER)
    lines = [line for work in works.values() for line in work()]
    print(f"\n{machine()}")
    if arguments.output:
        rows = "\n".join(line.row() for line in lines)
        arguments.output.write_text(
            f"# Results\n\n{machine()}\n\n{HEADER}\n{rows}\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
