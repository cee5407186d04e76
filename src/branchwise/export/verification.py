"""Writing an export, and running it against the model row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from branchwise.data.schema import Schema, Value
from branchwise.errors import ExportError, ParameterError, counted, quoted
from branchwise.export import (
    c as c_source,
)
from branchwise.export import (
    excel,
    javascript,
    json_rules,
    onnx,
    pmml,
)
from branchwise.export import (
    python as python_source,
)
from branchwise.export.base import (
    UNANSWERED,
    Answer,
    Options,
    Runner,
    Sample,
    Target,
    model_answers,
    same,
    sample_of_rows,
    sample_of_table,
)
from branchwise.export.plan import (
    ABOVE,
    AT_MOST,
    Cell,
    Field,
    Plan,
    Question,
    Row,
    make_plan,
)
from branchwise.export.sql import query as sql
from branchwise.recipe import Recipe
from branchwise.tree.tree import Tree

#: Numbers that other languages may read, write or compare in their own way.
_NUMBERS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    1 / 3,
    1e16 + 2.0,
    float(2**53),
    5e-324,
    -5e-324,
    1.7976931348623157e308,
    -1.7976931348623157e308,
)
#: Texts that other languages may take for something else.
_TEXTS = (
    "",
    " ",
    "NULL",
    "null",
    "None",
    "nan",
    "NaN",
    "?",
    "true",
    "0",
    "1.0",
    "'",
    '"',
    "\\",
    "a'b\"c",
    "\n",
    "\t",
    "é",
    "e\u0301",
    "😀",
    "\u202e",
    "</script>",
    "*/",
    "--",
    "=1+1",
    "%s",
    "$1",
    "{0}",
)
#: Cuts of a field that are tried, with the numbers next to them.
_MOST_CUTS = 200


def probe_rows(plan: Plan, n_rows: int = 1000, seed: int = 0) -> list[Row]:
    """Return about so many rows."""
    random = Random(seed)  # noqa: S311
    pools = _pools(plan, random)
    rows = [_towards(plan, node, pools, random) for node in _sampled(plan, n_rows)]
    while len(rows) < n_rows:
        rows.append(tuple(random.choice(pool) for pool in pools))
    return rows


def _sampled(plan: Plan, n_rows: int) -> Sequence[int]:
    """Return nodes to visit: all of them, or as many as half of the rows."""
    step = max(1, math.ceil(len(plan.nodes) / max(1, n_rows // 2)))
    return range(0, len(plan.nodes), step)


def _pools(plan: Plan, random: Random) -> list[list[Cell]]:
    """Return for every field the cells to choose from."""
    cuts: list[set[float]] = [set() for _ in plan.fields]
    for question in _questions(plan):
        if question.cut is not None:
            cuts[question.field].add(question.cut)
    return [
        _pool(field, sorted(of_field), random)
        for field, of_field in zip(plan.fields, cuts, strict=True)
    ]


def _questions(plan: Plan) -> list[Question]:
    asked = [node.question for node in plan.nodes if node.question is not None]
    return [*asked, *(s for question in asked for s in question.surrogates)]


def _pool(field: Field, cuts: list[float], random: Random) -> list[Cell]:
    if field.numeric:
        tried = random.sample(cuts, min(len(cuts), _MOST_CUTS))
        return [None, *_NUMBERS, *(n for cut in tried for n in _around(cut))]
    return [None, *field.values, *_unknown(field)]


def _around(cut: float) -> tuple[float, ...]:
    return (
        cut,
        math.nextafter(cut, -math.inf),
        math.nextafter(cut, math.inf),
        cut - 1.0,
        cut + 1.0,
    )


def _unknown(field: Field) -> list[Value]:
    """Return values that are not, or only nearly, among those of a field."""
    if field.kind == "boolean":
        return [True, False]
    if field.kind == "number":
        known = [float(value) for value in field.values]
        return [*_NUMBERS, *(math.nextafter(n, math.inf) for n in known[:50])]
    known_texts = [str(value) for value in field.values[:50]]
    near = [f(text) for text in known_texts for f in (str.upper, str.strip, _longer)]
    return [*_TEXTS, *near]


def _longer(text: str) -> str:
    return text + " "


def _towards(plan: Plan, wanted: int, pools: list[list[Cell]], random: Random) -> Row:
    """Return a row that arrives at a node, as far as one question allows another."""
    cells: list[Cell] = [random.choice(pool) for pool in pools]
    for position, branch in _way(plan, wanted):
        question = plan.nodes[position].question
        if question is not None:
            cells[question.field] = _cell_for(plan, question, branch, random)
    return tuple(cells)


def _way(plan: Plan, node: int) -> list[tuple[int, int]]:
    """Return the (node, branch) pairs from the root to a node."""
    parents = plan.parents
    way = []
    while node:
        parent = parents[node]
        way.append((parent, node - plan.nodes[parent].first_child))
        node = parent
    return way[::-1]


def _cell_for(plan: Plan, question: Question, branch: int, random: Random) -> Cell:
    field, codes = plan.fields[question.field], question.branches[branch]
    if not codes:
        return None
    code = random.choice(codes)
    if not field.numeric:
        return field.values[code]
    cut = question.cut
    if cut is None:
        return 0.0
    near = {AT_MOST: (cut, cut - 1.0), ABOVE: (math.nextafter(cut, math.inf), cut + 1)}
    return random.choice(near[code])


TARGETS = {
    target.name: target
    for target in (
        c_source.TARGET,
        excel.TARGET,
        javascript.TARGET,
        json_rules.TARGET,
        onnx.TARGET,
        pmml.TARGET,
        python_source.TARGET,
        sql.TARGET,
    )
}

#: Rows that an export is tried with where none are given.
_N_PROBES = 1000
#: Differences that are told one by one.
_SHOWN = 3


class Exportable(Protocol):
    """A model: anything with schema, tree and recipe."""

    schema: Schema
    tree: Tree
    recipe: Recipe


@dataclass(frozen=True)
class Difference:
    """A row that the export answers in another way than the model."""

    index: int
    row: Row
    model: Answer
    export: Answer

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
        """Whether the export was run on a row or more, and all answers were right."""
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
    """Return a target, or say which there are."""
    if name not in TARGETS:
        raise ParameterError(
            f"target must be one of {quoted(TARGETS, 99)}. Got {name!r}."
        )
    return TARGETS[name]


def write(model: Exportable, target: str, **options: str) -> bytes:
    """Return a model in another language or format.

    Parameters
    ----------
    model : Model
        What to export.
    target : str
        One of ``branchwise.export.TARGETS``.
    **options : str
        What the target lets choose: see ``docs/export.md``.
    """
    chosen = target_named(target)
    plan = make_plan(model.schema, model.tree, model.recipe)
    return chosen.write(plan, chosen.options(options))


def exported(
    model: Exportable, target: str, rows: object = None, **options: str
) -> tuple[bytes, Verification]:
    """Return a model in another language, verified: see :func:`verify`.

    Raises ExportError where the export answers in another way than the model, where
    nothing on this machine can run it, and where there is no row to try.
    """
    chosen = target_named(target)
    all_options = chosen.options(options)
    plan = make_plan(model.schema, model.tree, model.recipe)
    content = chosen.write(plan, all_options)
    sample = _sample(model, chosen, plan, rows)
    done = _verified(model, chosen, plan, sample, content, all_options)
    if done.differences:
        raise ExportError(
            f"The export to {target!r} answers in another way than the model, and is "
            f"not written. Please report this: {done}"
        )
    if not done.ran:
        raise ExportError(
            f"The export to {target!r} cannot be verified here: "
            f"{'; '.join(done.absent)}. Install what is lacking, or write it without "
            "verification (verify=False, --no-verify)."
        )
    if not done.n_rows:
        reasons = "".join(f" ({reason})" for reason in done.left_out)
        raise ExportError(
            f"The export to {target!r} was run on no row at all{reasons}, which "
            "verifies nothing. Give rows to verify with, leave them out so that some "
            "are made, or write it without verification (verify=False, --no-verify)."
        )
    return content, done


def verify(
    model: Exportable, target: str, rows: object = None, **options: str
) -> Verification:
    """Export a model, run the export, and compare every answer bit for bit.

    Parameters
    ----------
    model : Model
        What to export.
    target : str
        One of ``branchwise.export.TARGETS``.
    rows : table or None
        The rows to try; None makes rows of its own, among them the cuts and the
        numbers next to them, missing values, and values that training did not have.
    **options : str
        The options of the export.
    """
    chosen = target_named(target)
    all_options = chosen.options(options)
    plan = make_plan(model.schema, model.tree, model.recipe)
    sample = _sample(model, chosen, plan, rows)
    content = chosen.write(plan, all_options)
    return _verified(model, chosen, plan, sample, content, all_options)


def _sample(model: Exportable, target: Target, plan: Plan, rows: object) -> Sample:
    if rows is None:
        probes = probe_rows(plan, _N_PROBES)
        if target.fitting is not None:
            nearest = (target.fitting(plan, row) for row in probes)
            probes = [row for row in nearest if row is not None]
        return sample_of_rows(probes, model.schema, model.tree)
    return sample_of_table(rows, model.schema, model.tree)


def _verified(
    model: Exportable,
    target: Target,
    plan: Plan,
    sample: Sample,
    content: bytes,
    options: Options,
) -> Verification:
    leave_divided = options.get("divided") == UNANSWERED
    answers = model_answers(
        model.schema, model.tree, model.recipe, sample, leave_divided
    )
    held = _held(target, plan, sample.rows)
    rows = [sample.rows[index] for index in held]
    wanted = [answers[index] for index in held]
    ran, absent = [], []
    differences: list[Difference] = []
    for runner in target.runners(options):
        reason = runner.absent()
        if reason is not None:
            absent.append(reason)
            continue
        got = runner.run(content, plan, rows)
        ran.append(runner.name)
        differences += _differences(runner, plan, rows, wanted, got)
    return Verification(
        target.name,
        len(rows),
        tuple(ran),
        tuple(absent),
        tuple(differences),
        _left_out(target, len(sample.rows) - len(rows)),
    )


def _held(target: Target, plan: Plan, rows: Sequence[Row]) -> list[int]:
    """Return which rows a target can hold as they are."""
    if target.fitting is None:
        return list(range(len(rows)))
    return [i for i, row in enumerate(rows) if target.fitting(plan, row) == row]


def _left_out(target: Target, n_rows: int) -> tuple[str, ...]:
    if not n_rows:
        return ()
    return (f"{counted(n_rows, 'row')} not tried: {target.domain}",)


def _differences(
    runner: Runner,
    plan: Plan,
    rows: Sequence[Row],
    wanted: Sequence[Answer],
    got: Sequence[Answer],
) -> list[Difference]:
    if len(got) != len(wanted):
        raise ExportError(
            f"{runner.name} gave {len(got):,} answers to {len(wanted):,} rows."
        )
    return [
        Difference(index, row, mine, its)
        for index, (row, mine, its) in enumerate(zip(rows, wanted, got, strict=True))
        if not same(mine, its, plan)
    ]
