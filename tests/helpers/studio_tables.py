"""Tables of the studio's tests, and a page that asks a workspace."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from branchwise.studio import protocol
from branchwise.studio.workspace import Workspace

#: A table by name: its content and its target.
TABLES: dict[str, tuple[bytes, str]] = {}


def _csv(header: str, *columns: Any) -> bytes:
    rows = (",".join(map(str, row)) for row in zip(*columns, strict=True))
    return "\n".join([header, *rows, ""]).encode()


def _fill() -> None:
    rng = np.random.default_rng(19)
    n = 60
    colour = rng.choice(["red", "green", "blue", "?"], n, p=[0.4, 0.3, 0.2, 0.1])
    size = rng.integers(1, 60, n)
    code = rng.integers(0, 4, n)
    day = [f"2024-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in rng.integers(0, 300, n)]
    weight = rng.normal(50, 20, n).round(1)
    risk = (colour == "red") * 3 + (size > 30) * 2 + (code == 2) + rng.normal(0, 1, n)
    bought = np.where(risk > 2.5, "yes", "no")
    header = "colour,size,code,day,weight,"
    cells = (colour, size, code, day, weight)
    TABLES["classes"] = _csv(header + "bought", *cells, bought), "bought"
    TABLES["numbers"] = _csv(header + "price", *cells, risk.round(2)), "price"


_fill()


class Page:
    """Asks a workspace as the page does; errors fail the test."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def answer(self, method: str, args: dict[str, Any]) -> dict[str, Any]:
        answer = protocol.respond(self.workspace, {"method": method, "args": args})
        if self.workspace.last_failure is not None:
            raise self.workspace.last_failure
        return answer

    def ask(self, asked: str, **args: Any) -> Any:
        answer = self.answer(asked, args)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, asked: str, **args: Any) -> dict[str, Any]:
        answer = self.answer(asked, args)
        assert "error" in answer, answer
        return answer["error"]

    def load(self, name: str) -> Any:
        content, _ = TABLES[name]
        encoded = base64.b64encode(content).decode()
        return self.ask("load", name=f"{name}.csv", content=encoded)
