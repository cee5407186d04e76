"""Rows made to break an export: cuts and their neighbours, gaps, unknown values.

Every node is visited by a row made for it, where one can be; the other rows are
random mixes. The same plan always gives the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from branchwise.export.plan import ABOVE, AT_MOST, Cell, Field, Plan, Question, Row
from branchwise.table.schema import Value

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
