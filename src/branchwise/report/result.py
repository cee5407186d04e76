"""What ``make_report`` returns: the findings as plain values, and the page."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from branchwise.files import atomic_write
from branchwise.model import Model
from branchwise.plain_text import json_text
from branchwise.report.page import page
from branchwise.steps.result import Steps


@dataclass(frozen=True, repr=False)
class Report:
    """A report on a table and its tree.

    Attributes
    ----------
    sections : dict
        All findings as plain values, ready for ``json.dumps``: "title", "data",
        "warnings", "model", "rules", "root_split", "evaluation", "importances",
        "pruning", "learning" and "reproduce".
    model : Model
        The tree, grown from all rows.
    steps : Steps or None
        How its first split was found.
    """

    sections: dict[str, Any]
    model: Model
    steps: Steps | None

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as plain values."""
        return self.sections

    def to_json(self) -> str:
        """Return all findings as JSON."""
        return json_text(self.sections, indent=2, allow_nan=False)

    def to_html(self) -> str:
        """Return the report as one HTML page that needs nothing else."""
        return page(self.sections, self.model, self.steps)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        content = self.to_html().encode("utf-8")
        with atomic_write(path) as file:
            file.write(content)

    def __repr__(self) -> str:
        return (
            f"<branchwise report on {self.sections['data']['rows']:,} rows: "
            f"{self.model!r}; save() writes the page>"
        )
