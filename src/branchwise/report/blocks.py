"""The elements that a report is built from. Nothing reaches them unescaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from branchwise.plain_text import plain
from branchwise.words import rounded


class Raw(str):
    """HTML that is made here and stands as it is."""

    __slots__ = ()


def text(content: str) -> Raw:
    """Write text: nothing in it is taken for HTML, nothing in it is hidden."""
    if isinstance(content, Raw):
        return content
    lines = (plain(line) for line in content.split("\n"))
    return Raw(escape("\n".join(lines)))


def paragraph(content: str, kind: str = "") -> Raw:
    """Write a paragraph; none where there is nothing to say."""
    if not content:
        return Raw("")
    named = f' class="{kind}"' if kind else ""
    return Raw(f"<p{named}>{text(content)}</p>")


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    words: Sequence[int] = (0,),
    caption: str = "",
) -> Raw:
    """Write a table; the first cell of a row is its heading.

    ``words`` are the columns that hold words and not figures.
    """
    kinds = [' class="words"' if at in words else "" for at in range(len(head))]
    heads = "".join(
        f'<th scope="col"{kind}>{text(cell)}</th>'
        for cell, kind in zip(head, kinds, strict=True)
    )
    body = []
    for first, *rest in rows:
        cells = "".join(
            f"<td{kind}>{text(cell)}</td>"
            for cell, kind in zip(rest, kinds[1:], strict=True)
        )
        body.append(f'<tr><th scope="row"{kinds[0]}>{text(first)}</th>{cells}</tr>')
    # A caption within the table would be as wide as it is, and scroll with it.
    told = paragraph(caption, "caption")
    name = f' aria-label="{text(caption)}"' if caption else ""
    inside = "\n".join(body)
    return Raw(
        f'{told}<div class="scroll"><table{name}>\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{inside}\n</tbody></table></div>"
    )


def figure(chart: str, caption: str) -> Raw:
    """Put a chart and its words together."""
    return Raw(f"<figure>{chart}<figcaption>{text(caption)}</figcaption></figure>")


def side_by_side(*parts: str) -> Raw:
    """Set parts beside each other where there is room."""
    inside = "\n".join(f"<div>{part}</div>" for part in parts if part)
    return Raw(f'<div class="pair">{inside}</div>')


def folded(summary: str, *parts: str) -> Raw:
    """Fold parts away; on paper they are open."""
    inside = "\n".join(parts)
    return Raw(f"<details><summary>{text(summary)}</summary>\n{inside}\n</details>")


def code(lines: Iterable[str]) -> Raw:
    """Write lines of a program or of a terminal."""
    return Raw(f"<pre><code>{text(chr(10).join(lines))}</code></pre>")


def percent(share: float | None) -> str:
    """Write a share with one decimal; a dash where it is not known."""
    return "–" if share is None else f"{100 * share:z.1f} %"  # noqa: RUF001


def score(value: float | None) -> str:
    """Write a score; a dash where it is not known."""
    if value is None or math.isnan(value):
        return "–"  # noqa: RUF001
    return f"{value:z.3f}" if abs(value) < 10 else rounded(value, 5)
