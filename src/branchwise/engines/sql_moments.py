"""Numbers to predict, in a database: expressions for the limbs of exact sums.

They say what ``table/exact.py`` and ``table/target.py`` say in NumPy. A database adds
up each limb by itself, in whatever order it likes.
"""

from __future__ import annotations

from branchwise.engines.sql_dialects import Binder, rounded
from branchwise.table.exact import SPLITTER, Limbs
from branchwise.table.target import LOWEST_BIT, Scale

#: What can be rounded to whole numbers; more has no other digits.
_WHOLE = 2.0**52


def on_grid(amount: str, step: float, binder: Binder) -> str:
    """Return the expression that puts an amount on a grid."""
    if step == 1.0:
        return f"({rounded(f'({amount})')})"
    mark = binder.bind(float(step))
    return f"({rounded(f'(({amount}) / {mark})')}) * {mark}"


def in_units(number: str, scale: Scale, binder: Binder) -> str:
    """Return the expression for a number in the unit of a scale."""
    scaled = f"({number}) * {binder.bind(2.0**-scale.unit)}"
    if not scale.rounds:
        return scaled
    return _rounded(f"({scaled})", 2.0**LOWEST_BIT, binder)


def _rounded(name: str, step: float, binder: Binder) -> str:
    """Return the expression for the nearest multiple of a step, of any number."""
    most = binder.bind(_WHOLE * step)
    fine = on_grid(name, step, binder)
    return f"CASE WHEN abs({name}) >= {most} THEN {name} ELSE {fine} END"


def terms(weight: str | None) -> tuple[list[dict[str, str]], list[str], list[str]]:
    """Return what numbers ``v`` and their squares are the sums of, row by row.

    Parameters
    ----------
    weight : str or None
        The name of the weight; None where all weigh 1.

    Returns
    -------
    tuple
        Fields to be added to the rows, some after the other; the names of the terms of
        weighted numbers; and those of weighted squares.
    """
    fields = [
        _upper("v"),
        {"vl": "v - vh", "q": "v * v"},
        {"qr": _rest("q", "v", "v")},
    ]
    if weight is None:
        return fields, ["v"], ["q", "qr"]
    pairs = {"p": "v", "s": "q", "t": "qr"}
    halved = (weight, "q", "qr")
    fields += [
        {name: upper for each in halved for name, upper in _upper(each).items()},
        {f"{name}l": f"{name} - {name}h" for name in halved}
        | {name: f"{weight} * {by}" for name, by in pairs.items()},
        {f"{name}r": _rest(name, weight, by) for name, by in pairs.items()},
    ]
    return fields, ["p", "pr"], ["s", "sr", "t", "tr"]


def _upper(name: str) -> dict[str, str]:
    """Return the upper half of the bits of a number."""
    wide = f"({SPLITTER:.1f}e0 * {name})"
    return {f"{name}h": f"{wide} - ({wide} - {name})"}


def _rest(product: str, a: str, b: str) -> str:
    """Return what the product of two numbers leaves over, exactly."""
    return f"((({a}h * {b}h - {product}) + {a}h * {b}l) + {a}l * {b}h) + {a}l * {b}l"


def limb(names: list[str], limbs: Limbs, at: int, binder: Binder) -> str:
    """Return the expression for a limb of the sum of terms."""
    parts = []
    for name in names:
        part = _rounded(name, limbs.steps[at], binder)
        if at:
            above = _rounded(name, limbs.steps[at - 1], binder)
            part = f"({part}) - ({above})"
        parts.append(f"({part})")
    return " + ".join(parts)
