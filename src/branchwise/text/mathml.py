"""Formulas as MathML, which browsers set without a script or a network."""

from __future__ import annotations

import re
from functools import cache

from markupsafe import Markup, escape

from branchwise.text.blocks import Formula, Notation

#: Numbers, signs, and anything else that a figure may be made of.
_TOKENS = re.compile(
    r"(?P<mn>\d[\d,.]*(?:e[+-]?\d+)?)|(?P<mo>\.\.\.|[-+/()=])|(?P<mtext>[^\s\d()/+=-]+)"
)
_SIGNS = {"-": "−", "...": "…"}  # noqa: RUF001
_PATTERNS = {
    "fraction": "<mfrac><mrow>{}</mrow><mrow>{}</mrow></mfrac>",
    "squared": "<msup><mrow><mo>(</mo>{}<mo>)</mo></mrow><mn>2</mn></msup>",
    "log2": '<msub><mi>log</mi><mn>2</mn></msub><mspace width="0.2em"/>{}',
    "distances": "<mo>∑</mo><msup><mrow><mo>(</mo><mi>y</mi><mo>−</mo>{}<mo>)</mo>"  # noqa: RUF001
    "</mrow><mn>2</mn></msup>",
    "weighted distances": "<mo>∑</mo><mi>w</mi><msup><mrow><mo>(</mo><mi>y</mi>"
    "<mo>−</mo>{}<mo>)</mo></mrow><mn>2</mn></msup>",  # noqa: RUF001
    "times": "<mo>·</mo>",
}

_EQUALS = '<mo form="infix">=</mo>'
_NAMED = Markup(
    '<mi>{}</mi><mo stretchy="false">(</mo><mtext>{}</mtext><mo stretchy="false">)</mo>'
)


def in_mathml(formula: Formula) -> Markup:
    """Write a formula; between its terms a line may end, which MathML cannot do."""
    pieces = [_NAMED.format(formula.name, formula.of)]
    for at, term in enumerate(formula.terms):
        equals = Markup("" if at else _EQUALS)  # noqa: S704
        pieces.append(equals + Markup(_notation().terms([term])))  # noqa: S704
    value = _figure(formula.value)
    pieces.append(Markup(_EQUALS + '<mrow class="value">{}</mrow>').format(value))  # noqa: S704
    math = Markup("<math>{}</math>")
    return Markup(" ").join(math.format(piece) for piece in pieces)


def _figure(text: str) -> Markup:
    """Write figures, signs and brackets."""
    written = []
    for token in _TOKENS.finditer(text):
        kind, found = token.lastgroup, token[0]
        # A sign between terms, which stands at the beginning of its own piece.
        between = kind == "mo" and text[: token.start()].endswith(" ")
        spacing = ' lspace="0.1em" rspace="0.25em"' if between else ""
        pattern = Markup(f"<{kind}{spacing}>{{}}</{kind}>")  # noqa: S704
        written.append(pattern.format(_SIGNS.get(found, found)))
    return Markup("").join(written)


@cache
def _notation() -> Notation:
    patterns = {kind: Markup(pattern) for kind, pattern in _PATTERNS.items()}  # noqa: S704
    return Notation(
        patterns,
        name=lambda text: Markup("<mtext>{}</mtext>").format(escape(text)),
        figure=_figure,
    )
