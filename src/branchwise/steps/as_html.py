"""Worked solutions as HTML: one file, no network, no script.

Calculations are in collapsed sections, so that students can try first. All texts are
escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from branchwise.steps.blocks import (
    Block,
    Fold,
    Formulas,
    Heading,
    Items,
    Paragraph,
    Table,
)
from branchwise.steps.formulas import (
    Distances,
    Formula,
    Fraction,
    Log2,
    Name,
    Piece,
    Squared,
    Times,
)

#: The style of a fragment; every selector begins with its class.
STYLE = """\
.branchwise-steps { color-scheme: light dark; --ink: #1b1f24; --faint: #57606a;
  --line: #d0d7de; --ground: #ffffff; --soft: #f6f8fa; color: var(--ink);
  background: var(--ground); font: 16px/1.5 system-ui, sans-serif; max-width: 60rem;
  margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { .branchwise-steps { --ink: #e6edf3;
  --faint: #9da7b3; --line: #3d444d; --ground: #0d1117; --soft: #161b22; } }
.branchwise-steps table { border-collapse: collapse; margin: 0.5rem 0; display: block;
  overflow-x: auto; }
.branchwise-steps th, .branchwise-steps td { padding: 0.15rem 0.7rem;
  text-align: right; border-bottom: 1px solid var(--line); font-weight: normal;
  overflow-wrap: normal; }
.branchwise-steps thead th { color: var(--faint); }
.branchwise-steps th:first-child, .branchwise-steps .words { text-align: left; }
.branchwise-steps details { border-left: 3px solid var(--line); margin: 0.5rem 0;
  padding: 0.2rem 0 0.2rem 0.8rem; }
.branchwise-steps summary { cursor: pointer; color: var(--faint); }
.branchwise-steps ul.formulas { list-style: none; padding: 0.5rem 0.8rem; margin: 0;
  background: var(--soft); font-family: ui-monospace, monospace; font-size: 0.9em; }
@media print { .branchwise-steps { color: #000; background: #fff; max-width: none; }
  .branchwise-steps summary { display: none; }
  .branchwise-steps details::details-content { content-visibility: visible;
    height: auto; }
  .branchwise-steps table, .branchwise-steps ul.formulas { break-inside: avoid; } }
"""
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
@media (prefers-color-scheme: dark) {{ html {{ background: #0d1117; }} }}
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def to_html(blocks: Sequence[Block], reveal: bool) -> str:
    """Write blocks as a page of its own; with ``reveal`` nothing is folded away."""
    title = next((b.text for b in blocks if isinstance(b, Heading)), "")
    body = to_fragment(blocks, reveal)
    return _PAGE.format(title=escaped(title), style=STYLE, body=body)


def to_fragment(blocks: Sequence[Block], reveal: bool = False, heading: int = 1) -> str:
    """Write blocks as a part of another page, which brings :data:`STYLE` along.

    ``heading`` is the level of the first heading.
    """
    inside = "\n".join(_lines(blocks, reveal, heading - 1))
    return f'<section class="branchwise-steps">\n{inside}\n</section>'


def _lines(blocks: Sequence[Block], reveal: bool, deeper: int) -> Iterator[str]:
    for block in blocks:
        match block:
            case Heading(text, level):
                tag = f"h{min(6, level + deeper)}"
                yield f"<{tag}>{escaped(text)}</{tag}>"
            case Paragraph(text):
                yield f"<p>{escaped(text)}</p>"
            case Items(items):
                yield "<ul>"
                yield from (f"<li>{escaped(item)}</li>" for item in items)
                yield "</ul>"
            case Formulas(formulas):
                yield '<ul class="formulas">'
                yield from (f"<li>{_formula(formula)}</li>" for formula in formulas)
                yield "</ul>"
            case Table():
                yield from _table(block)
            case Fold(summary, inner):
                yield f"<details{' open' if reveal else ''}>"
                yield f"<summary>{escaped(summary)}</summary>"
                yield from _lines(inner, reveal, deeper)
                yield "</details>"


def _table(table: Table) -> Iterator[str]:
    last = ' class="words"' if table.head[-1] == "verdict" else ""
    kinds = [*[""] * (len(table.head) - 1), last]
    heads = "".join(
        f'<th scope="col"{kind}>{escaped(cell)}</th>'
        for cell, kind in zip(table.head, kinds, strict=True)
    )
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for first, *rest in table.rows:
        cells = "".join(
            f"<td{kind}>{escaped(cell)}</td>"
            for cell, kind in zip(rest, kinds[1:], strict=True)
        )
        yield f'<tr><th scope="row">{escaped(first)}</th>{cells}</tr>'
    yield "</tbody></table>"


def _formula(formula: Formula) -> str:
    terms = "".join(_piece(piece) for term in formula.terms for piece in term)
    middle = f" = {terms}" if terms else ""
    left = f"{escaped(formula.name)}({escaped(formula.of)})"
    return f"{left}{middle} = <strong>{_figure(formula.value)}</strong>"


def _piece(piece: Piece) -> str:
    match piece:
        case Fraction(top, bottom):
            return f"{_figure(top)}/{_figure(bottom)}"
        case Squared(of):
            return f"({_piece(of)})<sup>2</sup>"
        case Log2(of):
            return f"log<sub>2</sub> {_piece(of)}"
        case Distances(mean, weighted):
            weight = "w " if weighted else ""
            return f"Σ {weight}(y − {_signed(mean)})<sup>2</sup>"  # noqa: RUF001
        case Times():
            return " · "
        case Name(text):
            return escaped(text)
        case other:
            return _figure(other)


def _signed(number: str) -> str:
    return f"({_figure(number)})" if number.startswith("-") else _figure(number)


def _figure(text: str) -> str:
    return escaped(text).replace("-", "−")  # noqa: RUF001


def escaped(text: str) -> str:
    """Write text so that HTML shows it as it is, within elements and attributes."""
    return escape(text, quote=True)
