"""The base of results that are written as documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from branchwise.errors import json_text
from branchwise.text.as_html import as_html
from branchwise.text.as_text import as_markdown, as_text
from branchwise.text.blocks import Block


class Document:
    """What has blocks can be written in every format, and shows itself in notebooks."""

    def blocks(self) -> Iterator[Block]:
        """Yield what there is to say."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        raise NotImplementedError

    def to_text(self) -> str:
        """Return it as text."""
        return as_text(self.blocks(), compact=True)

    def to_markdown(self) -> str:
        """Return it as Markdown."""
        return as_markdown(self.blocks())

    def to_html(self) -> str:
        """Return it as a piece of HTML, without styles and scripts."""
        return f'<div class="branchwise">\n{as_html(self.blocks())}\n</div>'

    def to_json(self) -> str:
        """Return it as JSON."""
        return json_text(self.to_dict(), indent=2)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()
