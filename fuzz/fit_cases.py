"""Random tables with estimators and parameters: the cases of ``fuzz/fits.py``.

A case follows from (seed, index) alone. It is made of plain Python values, so that it
can be printed as a script.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pprint import pformat
from typing import Any

from fit_parameters import draw_parameters

ESTIMATORS = ("ID3Classifier", "C45Classifier", "CARTClassifier", "CARTRegressor")
PLAIN_NAMES = ("age", "colour", "size", "income", "region", "code", "height", "kind")
HOSTILE = (
    "two words",
    "it's",
    'say "hi"',
    "back\\slash",
    "line\nbreak",
    "tab\there",
    "emoji 😀",
    "\u202eright to left",
    "e\u0301",
    "é",
    "</script><!-- & ]]>",
    "'; DROP TABLE rows; --",
    "=1+1",
    "{0} %s ${x} `x`",
    "None",
    "nan",
    "NULL",
    "true",
    "True",
    "0",
    "00",
    "1",
    "1.0",
    "1e3",
    "-0",
    "inf",
    "a,b",
    " ",
    " a",
    "a ",
    "a",
    "A",
    "ß",
    "SS",
    "\ufeffbom",
    "<= 3",
    "x = y: z",
    "branchwise",
    "\U0001f9d1\u200d\U0001f33e",
    "\uffff",
    "\U00010000",
    "z" * 70,
)
#: Numbers at the limits of floats.
EXTREMES = (
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    1e-300,
    1.0,
    1.0000000000000002,
    0.1,
    0.30000000000000004,
    0.3,
    1e15 + 0.5,
    2.0**53,
    -(2.0**53),
    1e300,
    1.7976931348623157e308,
    -1.7976931348623157e308,
)


@dataclass(frozen=True)
class Case:
    """A table, what is to be predicted, and an estimator with its parameters.

    ``others`` are further rows to predict; ``seed`` is for what checks draw.
    """

    estimator: str
    parameters: dict[str, Any]
    columns: dict[str, list[Any]]
    y: list[Any]
    weights: list[float] | None = None
    others: dict[str, list[Any]] = field(default_factory=dict)
    seed: int = 0

    @property
    def n_rows(self) -> int:
        """How many rows there are to learn from."""
        return len(self.y)

    @property
    def is_regression(self) -> bool:
        """Whether numbers are predicted."""
        return self.estimator == "CARTRegressor"

    @property
    def differences(self) -> bool:
        """Whether a cell of the training table is missing."""
        return any(is_missing(c) for cells in self.columns.values() for c in cells)

    def random(self, salt: str) -> random.Random:
        """Return what a check draws from."""
        return random.Random(f"{self.seed} {salt}")

    def take(self, rows: Sequence[int]) -> Case:
        """Return the case with these rows, in this order."""
        return replace(
            self,
            columns={name: [c[i] for i in rows] for name, c in self.columns.items()},
            y=[self.y[i] for i in rows],
            weights=None if self.weights is None else [self.weights[i] for i in rows],
        )

    def without(self, *names: str) -> Case:
        """Return the case with some parameters at their defaults."""
        kept = {k: v for k, v in self.parameters.items() if k not in names}
        return replace(self, parameters=kept)

    def script(self, check: str) -> str:
        """Return a script that runs a check on this case."""
        fields = (f"    {k}={pformat(v, width=100)},\n" for k, v in vars(self).items())
        return (
            "import sys\n"
            "from math import inf, nan\n\n"
            'sys.path[:0] = ["fuzz", "tests/helpers"]\n'
            "from fit_cases import Case\n"
            "from fits import CHECKS\n\n"
            f"case = Case(\n{''.join(fields)})\n"
            f"CHECKS[{check!r}](case)\n"
        )


def is_missing(cell: object) -> bool:
    """Tell whether a cell is missing."""
    return cell is None or cell != cell


def make_case(seed: int, index: int) -> Case:
    """Return the case of a seed and an index."""
    rng = random.Random(f"{seed}/{index}")
    estimator = rng.choice(ESTIMATORS)
    n_rows = _n_rows(rng)
    hostile = rng.random() < 0.3
    parameters = draw_parameters(rng, estimator)
    gaps = rng.choice([0.0, 0.0, 0.05, 0.3])
    if parameters.get("missing") == "error" and rng.random() < 0.9:
        gaps = 0.0
    columns = _columns(rng, n_rows, gaps, hostile)
    if estimator == "CARTRegressor":
        y = _numbers_to_predict(rng, columns, n_rows, parameters)
    else:
        y = _labels(rng, columns, n_rows, hostile)
        _add_class_parameters(rng, parameters, y)
    _add_column_parameters(rng, parameters, columns)
    return Case(
        estimator,
        parameters,
        columns,
        y,
        _weights(rng, n_rows),
        _other_rows(rng, columns, gaps),
        rng.randrange(10**6),
    )


def _n_rows(rng: random.Random) -> int:
    kind = rng.random()
    if kind < 0.02:  # long enough for what reads many equal cells at once
        return rng.randint(1000, 1300)
    if kind < 0.12:
        return rng.randint(80, 300)
    if kind < 0.2:
        return rng.randint(1, 4)
    return rng.choice([6, 10, 16, 24, 35, 50, 70])


def _columns(
    rng: random.Random, n_rows: int, gaps: float, hostile: bool
) -> dict[str, list[Any]]:
    named = [name for name in HOSTILE if name.strip()]  # blank ones are refused
    names = rng.sample(named if hostile else PLAIN_NAMES, rng.randint(1, 6))
    columns: dict[str, list[Any]] = {}
    for name in names:
        if columns and rng.random() < 0.1:  # a column twice: ties everywhere
            columns[name] = list(columns[rng.choice(list(columns))])
            continue
        draw = _drawer(rng, n_rows, hostile)
        missing = 1.0 if rng.random() < 0.02 else gaps
        none = rng.choice([None, math.nan])
        cells = [none if rng.random() < missing else draw() for _ in range(n_rows)]
        columns[name] = cells
    return columns


def _drawer(rng: random.Random, n_rows: int, hostile: bool) -> Callable[[], Any]:
    """Return what draws the cells of a column."""
    kind = rng.random()
    if kind < 0.4:
        size = rng.choice([1, 2, 2, 3, 3, 5, 5, 9, max(2, n_rows // 2)])
        values = [f"v{i}" for i in range(size)]
        if hostile:
            values = rng.sample(HOSTILE, min(size, len(HOSTILE)))
        return lambda: rng.choice(values)
    if kind < 0.5:
        return lambda: rng.random() < 0.5
    if kind < 0.65:
        low, high = rng.choice([(0, 1), (-3, 4), (0, 1000), (-(2**53), 2**53)])
        return lambda: rng.randint(low, high)
    return _number_drawer(rng)


def _number_drawer(rng: random.Random) -> Callable[[], float]:
    kind = rng.choice(["any", "few", "decimals", "extreme", "neighbours", "scaled"])
    if kind == "any":
        return lambda: rng.gauss(0, 1)
    if kind == "few":
        few = [rng.gauss(0, 10) for _ in range(rng.randint(1, 6))]
        return lambda: rng.choice(few)
    if kind == "decimals":
        return lambda: rng.randint(-20, 20) / 10
    if kind == "extreme":
        some = rng.sample(EXTREMES, 6)
        if rng.random() < 0.1:
            some.append(math.inf)
        return lambda: rng.choice(some)
    if kind == "neighbours":
        first = rng.choice([1.0, 1e-5, 1e17, 3.3])
        near = [first]
        for _ in range(4):
            near.append(math.nextafter(near[-1], math.inf))
        return lambda: rng.choice(near)
    scale = 10.0 ** rng.choice([-320, -200, -12, 9, 100, 300])
    return lambda: rng.randint(-9, 9) * scale


def _signal(rng: random.Random, columns: dict[str, list[Any]], n: int) -> list[int]:
    """Return small numbers that hang on one or two columns, with some noise."""
    varied = [c for c in columns.values() if len(set(map(repr, c))) > 1]
    used = [rng.choice(varied or list(columns.values())) for _ in range(2)]
    noise = rng.choice([0.0, 0.1, 0.1, 0.3, 1.0])
    ways: dict[str, int] = {}
    return [
        rng.randint(0, 6)
        if rng.random() < noise
        else ways.setdefault(repr([_coarse(c[i]) for c in used]), rng.randint(0, 6))
        for i in range(n)
    ]


def _coarse(cell: Any) -> Any:
    if isinstance(cell, str):
        return sum(map(ord, cell)) % 5
    return cell if is_missing(cell) or isinstance(cell, bool) else cell > 0


def _labels(
    rng: random.Random, columns: dict[str, list[Any]], n: int, hostile: bool
) -> list[Any]:
    size = rng.choice([2, 2, 2, 3, 3, 5, 7]) if rng.random() > 0.03 else 1
    kind = rng.choice(["text", "text", "boolean", "whole"])
    classes: list[Any] = [f"class {i}" for i in range(size)]
    if hostile:
        classes = rng.sample(HOSTILE, size)
    if kind == "boolean":
        classes = [True, False][:size]
    if kind == "whole":
        classes = rng.sample(range(-3, 12), size)
    return [classes[s % len(classes)] for s in _signal(rng, columns, n)]


def _numbers_to_predict(
    rng: random.Random,
    columns: dict[str, list[Any]],
    n: int,
    parameters: dict[str, Any],
) -> list[Any]:
    signal = _signal(rng, columns, n)
    kind = rng.choice(["whole", "tenths", "any", "outlier", "tiny", "huge", "constant"])
    draw: dict[str, Callable[[int], Any]] = {
        "whole": lambda s: s - 3,
        "tenths": lambda s: s / 10,
        "any": lambda s: s + rng.gauss(0, 1),
        "outlier": lambda s: 0.01 * s if rng.random() < 0.9 else 1e8,
        "tiny": lambda s: s * 10.0 ** rng.choice([-300, -160]),
        "huge": lambda s: (s - 3) * 1e100,
        "constant": lambda _: 0.1,
    }
    if parameters.get("criterion") == "poisson" and rng.random() < 0.95:
        return [abs(draw[kind](s)) for s in signal]
    drawn = [draw[kind](s) for s in signal]
    if rng.random() < 0.1:
        drawn = [-0.0 if d == 0 else d for d in drawn]
    return drawn


def _weights(rng: random.Random, n: int) -> list[float] | None:
    kind = rng.choice(
        ["none"] * 8
        + ["whole", "whole", "quarters", "any", "any", "small", "tiny", "huge", "mixed"]
        + ["tenths", "zeros"]
    )
    draw: dict[str, Callable[[], float]] = {
        "whole": lambda: float(rng.randint(0, 4)),
        "quarters": lambda: rng.randint(1, 9) / 4,
        "any": lambda: rng.uniform(0.01, 3),
        "tenths": lambda: rng.randint(1, 9) / 10,
        "small": lambda: rng.uniform(0, 1e-3 / n),
        "tiny": lambda: rng.uniform(0.1, 9) * 1e-300,
        "huge": lambda: rng.uniform(0.1, 0.9) * 1e300 / n,
        "mixed": lambda: rng.choice([1.0, 3.0, 1e16, 1e-16, 0.1]),
        "zeros": lambda: rng.choice([0.0, 0.0, 1.0, 0.7]),
    }
    return None if kind == "none" else [draw[kind]() for _ in range(n)]


def _add_class_parameters(
    rng: random.Random, parameters: dict[str, Any], y: list[Any]
) -> None:
    """Draw what has to name the classes."""
    classes = sorted(set(y))
    if rng.random() < 0.12:
        weights = {c: rng.choice([0.5, 1, 2, 0.3, 1 / 3, 7]) for c in classes}
        parameters["class_weight"] = rng.choice(["balanced", weights])
    if rng.random() < 0.1:
        parameters["priors"] = {c: rng.choice([0.1, 0.3, 0.5, 1]) for c in classes}
    if rng.random() < 0.1:
        parameters["costs"] = [
            [0.0 if i == j else rng.choice([0.5, 1.0, 2.0, 9.0]) for j in classes]
            for i in classes
        ]


def _add_column_parameters(
    rng: random.Random, parameters: dict[str, Any], columns: dict[str, list[Any]]
) -> None:
    """Draw what has to name columns and their values."""
    kind = rng.random()
    if kind < 0.08:
        parameters["categorical_features"] = "all"
    text = [
        name
        for name, cells in columns.items()
        if any(isinstance(c, str) for c in cells)
    ]
    if text and rng.random() < 0.1:
        name = rng.choice(text)
        values = sorted({c for c in columns[name] if isinstance(c, str)})
        values.append("never there")
        rng.shuffle(values)
        parameters["categories"] = {name: values}


def _other_rows(
    rng: random.Random, columns: dict[str, list[Any]], gaps: float
) -> dict[str, list[Any]]:
    """Return rows to predict: values of training and others, some missing."""
    n = rng.randint(1, 12)

    def cell(cells: list[Any]) -> Any:
        known = rng.choice(cells)
        chance = rng.random()
        if chance < 0.1 + gaps:
            return None
        if isinstance(known, str):
            return "never seen" if chance > 0.9 else known
        if isinstance(known, float) and math.isfinite(known):
            return rng.choice([known, math.nextafter(known, 0.0), -known])
        return known

    return {name: [cell(cells) for _ in range(n)] for name, cells in columns.items()}
