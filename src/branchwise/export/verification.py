"""Exports with verification: test rows, runs and comparison with the model."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from branchwise.data.table_schema import Schema, Value
from branchwise.errors import ExportError, ParameterError, counted, quoted
from branchwise.export import c, excel, json_rules, onnx, pmml, scripts, sql
from branchwise.export.base import (
    UNANSWERED,
    Exportable,
    ExportableEnsemble,
    Options,
    Prediction,
    Runner,
    Sample,
    Target,
    ensemble_predictions,
    model_predictions,
    plan_of,
    same,
    sample_of_rows,
    sample_of_table,
)
from branchwise.export.dates import (
    date_cells,
    dates_of_age,
    number_of,
    random_dates,
)
from branchwise.export.plan import Cell, Field, Plan, PlanSplit, Row
from branchwise.export.rule_sets import dmn
from branchwise.files.raw_bytes import atomic_write
from branchwise.tree.splits import ABOVE, AT_MOST

#: Numbers that other languages may read, write or compare in their own way.
_NUMBERS = (
    *(0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, 1e16 + 2.0, 2.0**53, 5e-324, -5e-324),
    *(sys.float_info.max, -sys.float_info.max),
)
#: Texts that other languages may take for something else.
_TEXTS = (
    *("", " ", "NULL", "null", "None", "nan", "NaN", "?", "true", "0", "1.0"),
    *("'", '"', "\\", "a'b\"c", "\n", "\t", "é", "e\u0301", "😀", "\u202e"),
    *("</script>", "*/", "--", "=1+1", "%s", "$1", "{0}"),
)
#: The most thresholds of a field that are tested, with the numbers next to them.
_MOST_THRESHOLDS = 200


def probe_rows(plan: Plan, n_rows: int = 1000, seed: int = 0) -> list[Row]:
    """Return about so many rows."""
    random = Random(seed)  # noqa: S311
    pools = _pools(plan, random)
    derived = _derived_numbers(plan, pools)
    rows = [
        _towards(plan, node, pools, derived, random) for node in _sampled(plan, n_rows)
    ]
    while len(rows) < n_rows:
        rows.append(tuple(random.choice(pool) for pool in pools))
    return rows


def _sampled(plan: Plan, n_rows: int) -> Sequence[int]:
    """Return nodes to visit: all of them, or as many as half of the rows."""
    step = max(1, math.ceil(len(plan.nodes) / max(1, n_rows // 2)))
    return range(0, len(plan.nodes), step)


def _pools(plan: Plan, random: Random) -> list[list[Cell]]:
    """Return for every input the cells to choose from."""
    thresholds: list[set[float]] = [set() for _ in plan.fields]
    for split in _splits(plan):
        if split.threshold is not None:
            thresholds[split.field].add(split.threshold)
    pools = [
        _pool(field, sorted(thresholds[at]), random)
        for at, field in enumerate(plan.inputs)
    ]
    for source in sorted({field.source for field in plan.derived}):
        date = plan.inputs[source].date
        if date is not None:
            pools[source] += random_dates(date, random)
            for at, field in enumerate(plan.derived, len(plan.inputs)):
                if field.source == source and field.feature is not None:
                    near = sorted(thresholds[at])[:_MOST_THRESHOLDS]
                    pools[source] += dates_of_age(date, field.feature, near)
            pools[source] += [None] * (len(pools[source]) // 20)
    return pools


#: The dates among which one is looked for that goes the wanted way.
_MOST_DATES = 60
#: For each derived field the number of every cell that may be chosen.
_Derived = dict[int, dict[Cell, float]]


def _derived_numbers(plan: Plan, pools: list[list[Cell]]) -> _Derived:
    found: _Derived = {}
    for at, field in enumerate(plan.derived, len(plan.inputs)):
        date, cells = plan.inputs[field.source].date, pools[field.source]
        if field.feature is not None and date is not None:
            dates = np.array([number_of(date, cell) for cell in cells])
            numbers = field.feature.numbers(dates, date).tolist()
            found[at] = dict(zip(cells, numbers, strict=True))
    return found


def _splits(plan: Plan) -> list[PlanSplit]:
    splits = [node.split for node in plan.nodes if node.split is not None]
    return [*splits, *(s for split in splits for s in split.surrogates)]


def _pool(field: Field, thresholds: list[float], random: Random) -> list[Cell]:
    if field.numeric:
        trials = random.sample(thresholds, min(len(thresholds), _MOST_THRESHOLDS))
        if field.date is not None:
            return [None, *date_cells(field.date, trials)]
        return [
            None,
            *_NUMBERS,
            *(n for threshold in trials for n in _around(threshold)),
        ]
    return [None, *field.values, *_unknown(field)]


def _around(threshold: float) -> tuple[float, ...]:
    return (
        threshold,
        math.nextafter(threshold, -math.inf),
        math.nextafter(threshold, math.inf),
        threshold - 1.0,
        threshold + 1.0,
    )


def _unknown(field: Field) -> list[Value]:
    """Return values that are not, or only nearly, among those of a field."""
    if field.kind == "boolean":
        return [True, False]
    if field.kind == "number":
        known = [float(value) for value in field.values]
        return [*_NUMBERS, *(math.nextafter(n, math.inf) for n in known[:50])]
    known_texts = [str(value) for value in field.values[:50]]
    near = [n for t in known_texts for n in (t.upper(), t.strip(), f"{t} ")]
    return [*_TEXTS, *near]


def _towards(
    plan: Plan,
    wanted: int,
    pools: list[list[Cell]],
    derived: _Derived,
    random: Random,
) -> Row:
    """Return a row that arrives at a node, unless splits on its path exclude it."""
    cells: list[Cell] = [random.choice(pool) for pool in pools]
    dated: dict[int, list[Cell]] = {}
    for position, branch in _way(plan, wanted):
        split = plan.split_of(position)
        if split.field not in derived:
            cells[split.field] = _cell_for(plan, split, branch, random)
            continue
        source = plan.fields[split.field].source
        among = dated.get(source)
        if among is None:
            pool = pools[source]
            among = random.sample(pool, min(len(pool), _MOST_DATES))
        left = [c for c in among if _goes_to(split, branch, derived[split.field][c])]
        dated[source] = left or among
        cells[source] = random.choice(dated[source])
    return tuple(cells)


def _goes_to(split: PlanSplit, branch: int, number: float) -> bool:
    """Tell whether a number is one of a branch; without codes, of missing ones."""
    codes = split.branches[branch]
    if not codes or math.isnan(number):
        return math.isnan(number) and not codes
    above = split.threshold is not None and number > split.threshold
    return (ABOVE if above else AT_MOST) in codes


def _way(plan: Plan, node: int) -> list[tuple[int, int]]:
    """Return the (node, branch) pairs from the root to a node."""
    parents = plan.parents
    way = []
    while parents[node] >= 0:
        parent = parents[node]
        way.append((parent, node - plan.nodes[parent].first_child))
        node = parent
    return way[::-1]


def _cell_for(plan: Plan, split: PlanSplit, branch: int, random: Random) -> Cell:
    field, codes = plan.fields[split.field], split.branches[branch]
    if not codes:
        return None
    code = random.choice(codes)
    if not field.numeric:
        return field.values[code]
    threshold = split.threshold
    if field.date is not None:
        number = threshold or 0.0
        return field.date.show(number if code == AT_MOST else math.floor(number) + 1)
    if threshold is None:
        return 0.0
    near = {
        AT_MOST: (threshold, threshold - 1.0),
        ABOVE: (math.nextafter(threshold, math.inf), threshold + 1),
    }
    return random.choice(near[code])


TARGETS = {
    target.name: target
    for target in (
        c.TARGET,
        dmn.TARGET,
        excel.TARGET,
        scripts.JAVASCRIPT,
        json_rules.TARGET,
        onnx.TARGET,
        pmml.TARGET,
        scripts.PYTHON,
        sql.TARGET,
    )
}

#: Rows that an export is tried with where none are given.
_N_PROBES = 1000
#: The most differences that are listed.
_SHOWN = 3


@dataclass(frozen=True)
class Difference:
    """A row for which the export and the model differ."""

    index: int
    row: Row
    model: Prediction
    export: Prediction

    def __str__(self) -> str:
        return f"row {self.index} {self.row!r}: {self.model!r} became {self.export!r}"


@dataclass(frozen=True)
class Verification:
    """What came of running an export.

    ``ran`` names what it was run with, ``absent`` says of everything else why it was
    not run here, ``left_out`` which rows were not tried because the target cannot hold
    them.
    """

    target: str
    n_rows: int
    ran: tuple[str, ...]
    absent: tuple[str, ...]
    differences: tuple[Difference, ...]
    left_out: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the export was run on a row or more, without differences."""
        return bool(self.ran) and self.n_rows > 0 and not self.differences

    def __str__(self) -> str:
        lines = []
        for runner in self.ran:
            found = counted(len(self.differences), "difference")
            rows = counted(self.n_rows, "row")
            lines.append(f"{self.target}: {rows} in {runner}: {found}")
        lines += [f"{self.target}: not run: {reason}" for reason in self.absent]
        lines += [f"{self.target}: {reason}" for reason in self.left_out]
        lines += [f"  {d}" for d in self.differences[:_SHOWN]]
        return "\n".join(lines)


def target_named(name: str) -> Target:
    """Return a target by name."""
    if name not in TARGETS:
        raise ParameterError(
            f"target must be one of {quoted(TARGETS, 99)}. Got {name!r}."
        )
    return TARGETS[name]


def write(model: Exportable | ExportableEnsemble, target: str, **options: str) -> bytes:
    """Return a model in another language or format, without running it.

    Parameters are those of :func:`verify`; ``docs/export.md`` lists the options.
    """
    chosen = target_named(target)
    return chosen.write(plan_of(model), chosen.options(options))


def exported(
    model: Exportable | ExportableEnsemble,
    target: str,
    rows: object = None,
    **options: str,
) -> tuple[bytes, Verification]:
    """Return a model in another language, verified: see :func:`verify`.

    Raises ExportError if the export and the model differ, if nothing on this machine
    can run it, and if there is no row to test.
    """
    content, done = _verified(model, target, rows, options)
    if done.differences:
        raise ExportError(
            f"The export to {target!r} differs from the model, and is not written. "
            f"Please report this: {done}"
        )
    if not done.ran:
        raise ExportError(
            f"The export to {target!r} cannot be verified here: "
            f"{'; '.join(done.absent)}. Install what is lacking, or write it without "
            "verification (verify=False)."
        )
    if not done.n_rows:
        reasons = "".join(f" ({reason})" for reason in done.left_out)
        raise ExportError(
            f"The export to {target!r} was run on no row at all{reasons}, which "
            "verifies nothing. Give rows to verify with, leave them out so that some "
            "are made, or write it without verification (verify=False)."
        )
    return content, done


def exported_to(
    model: Exportable | ExportableEnsemble,
    target: str,
    path: str | os.PathLike[str] | None,
    verify: object,
    **options: str,
) -> str | bytes:
    """Return an export, verified unless ``verify`` is False, and write it to a file."""
    if verify is False:
        content = write(model, target, **options)
    else:
        rows = None if verify is True else verify
        content, _ = exported(model, target, rows, **options)
    if path is not None:
        with atomic_write(path) as file:
            file.write(content)
    return content if TARGETS[target].binary else content.decode()


def verify(
    model: Exportable | ExportableEnsemble,
    target: str,
    rows: object = None,
    **options: str,
) -> Verification:
    """Export a model, run the export, and compare every prediction bit for bit.

    Parameters
    ----------
    model : Model or Ensemble
        What to export.
    target : str
        One of ``branchwise.export.TARGETS``.
    rows : table or None
        The rows to test; None generates rows, among them the thresholds and the
        numbers next to them, missing values and unseen categories.
    **options : str
        The options of the export.
    """
    return _verified(model, target, rows, options)[1]


def _sample(schema: Schema, target: Target, plan: Plan, rows: object) -> Sample:
    if rows is None:
        probes = probe_rows(plan, _N_PROBES)
        if target.fitting is not None:
            nearest = (target.fitting(plan, row) for row in probes)
            probes = [row for row in nearest if row is not None]
        return sample_of_rows(probes, schema, plan)
    return sample_of_table(rows, schema, plan)


def _verified(
    model: Exportable | ExportableEnsemble,
    name: str,
    given_rows: object,
    given: Options,
) -> tuple[bytes, Verification]:
    """Write an export and run it."""
    target = target_named(name)
    options = target.options(given)
    plan = plan_of(model)
    content = target.write(plan, options)
    sample = _sample(model.schema, target, plan, given_rows)
    leave_fractional = options.get("divided") == UNANSWERED
    if isinstance(model, ExportableEnsemble):
        predictions = ensemble_predictions(model, plan, sample, leave_fractional)
    else:
        predictions = model_predictions(
            model.schema, model.tree, model.recipe, sample, leave_fractional
        )
    if plan.classes and not target.has_probabilities(options):
        predictions = [one and (one[0], ()) for one in predictions]
    # Rows that the target can hold as they are.
    fits = target.fitting
    held = [i for i, r in enumerate(sample.rows) if fits is None or fits(plan, r) == r]
    rows = [sample.rows[index] for index in held]
    wanted = [predictions[index] for index in held]
    ran, absent = [], []
    differences: list[Difference] = []
    for runner in target.runners(options):
        reason = runner.absent()
        if reason is not None:
            absent.append(reason)
            continue
        got = runner.run(content, plan, rows)
        ran.append(runner.name)
        differences += _differences(runner, target, plan, rows, wanted, got)
    n_left = len(sample.rows) - len(rows)
    return content, Verification(
        target.name,
        len(rows),
        tuple(ran),
        tuple(absent),
        tuple(differences),
        (f"{counted(n_left, 'row')} not tried: {target.domain}",) if n_left else (),
    )


def _differences(
    runner: Runner,
    target: Target,
    plan: Plan,
    rows: Sequence[Row],
    wanted: Sequence[Prediction],
    got: Sequence[Prediction],
) -> list[Difference]:
    if len(got) != len(wanted):
        raise ExportError(
            f"{runner.name} gave {len(got):,} predictions for {len(wanted):,} rows."
        )
    rounding = target.rounding(plan)
    return [
        Difference(index, row, mine, its)
        for index, (row, mine, its) in enumerate(zip(rows, wanted, got, strict=True))
        if not same(mine, its, plan, rounding)
    ]
