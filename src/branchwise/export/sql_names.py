"""Names in an SQL export: those of the user's columns, and those it adds."""

from __future__ import annotations

from branchwise.export.plan import Plan
from branchwise.export.sql_dialects import Dialect
from branchwise.words import word


class Names:
    """Gives names that no column of the tree has, nor any name given before."""

    def __init__(self, plan: Plan, dialect: Dialect, table: str) -> None:
        self._dialect = dialect
        fields = [field.name for field in plan.fields]
        dialect.distinct(fields)
        self.table = dialect.named(table)
        #: The columns of the table, made to compare as the model does.
        self.compared = [
            dialect.column(field, f"{self.table}.{dialect.named(field.name)}")
            for field in plan.fields
        ]
        self._taken = {dialect.folds(name) for name in [table, *fields]}
        #: What steps of a query call these columns. To SQLite, true and false are
        #: constants, and no names for what a step selects.
        self.carried = [
            self.new(f"column {name}")
            if name.lower() in ("true", "false")
            else dialect.named(name)
            for name in fields
        ]
        self.prediction = self.new("prediction")
        self.chances = [
            self.new(f"probability of {word(c)}", f"probability {code + 1}")
            for code, c in enumerate(plan.classes)
        ]

    def new(self, name: str, instead: str = "name") -> str:
        """Return a name, quoted: ``instead`` if it cannot be one, changed if taken."""
        if self._dialect.no_name(name) is not None:
            name = instead
        number, free = 1, name
        while self._dialect.folds(free) in self._taken:
            number += 1
            free = f"{name} ({number})"
            if self._dialect.no_name(free) is not None:
                name = free = instead
        self._taken.add(self._dialect.folds(free))
        return self._dialect.named(free)
