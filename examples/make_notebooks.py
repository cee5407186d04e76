"""Make a notebook of each study: its prose, its code and what the code prints.

A study is a script with cells. A line ``# %%`` begins a cell, the comment below it is
Markdown, the rest is code; the docstring of the script is the title. A cell that
begins with ``# %% [script only]`` is left out.

    python examples/make_notebooks.py           write examples/notebooks/*.ipynb
    python examples/make_notebooks.py --check   say which are not up to date
"""

import argparse
import ast
import base64
import contextlib
import hashlib
import importlib.util
import io
import json
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
NOTEBOOKS = FOLDER / "notebooks"
MARK = "# %%"
SCRIPT_ONLY = "# %% [script only]"
#: Notebooks are started in their own folder; what the scripts share is one above.
SETUP = 'import sys\n\nsys.path.insert(0, "..")'
#: What an object can show itself as; the text is there for all.
SHOWN = {"_repr_html_": "text/html", "_repr_png_": "image/png"}
#: An interactive tree is longer: it is shown when the cell is run.
LONGEST = 60_000


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook: "markdown" or "code"."""

    kind: str
    source: str


def studies() -> list[Path]:
    """Return the scripts that have cells."""
    scripts = sorted(FOLDER.glob("[!_]*.py"))
    return [path for path in scripts if path != Path(__file__) and is_study(path)]


def is_study(path: Path) -> bool:
    """Tell whether a script has cells."""
    return any(map(_begins_cell, path.read_text(encoding="utf-8").splitlines()))


def cells_of(path: Path) -> list[Cell]:
    """Take a script apart."""
    text = path.read_text(encoding="utf-8")
    docstring = ast.parse(text).body[0]
    lines = text.splitlines()[docstring.end_lineno :]
    cells = [Cell("markdown", _title(ast.literal_eval(docstring.value)))]
    if re.search(r"^from _\w+ import", text, re.MULTILINE):
        cells.append(Cell("code", SETUP))
    for part in _parts(lines):
        if part[0] != SCRIPT_ONLY:
            cells += _prose_and_code(part)
    return cells


def _title(docstring: str) -> str:
    """Make a heading of the first line; code has two backticks in docstrings."""
    return f"# {docstring.strip()}".replace("``", "`")


def _begins_cell(line: str) -> bool:
    return line in (MARK, SCRIPT_ONLY)


def _parts(lines: list[str]) -> Iterator[list[str]]:
    part = [MARK]
    for line in lines:
        if _begins_cell(line):
            yield part
            part = []
        part.append(line)
    yield part


def _prose_and_code(part: list[str]) -> list[Cell]:
    """Parse one part: the comment below its mark is prose."""
    end = 1
    while end < len(part) and part[end].startswith("#"):
        end += 1
    prose = "\n".join(line[1:].removeprefix(" ") for line in part[1:end])
    code = "\n".join(part[end:]).strip("\n")
    cells = [Cell("markdown", prose), Cell("code", code)]
    return [cell for cell in cells if cell.source]


def notebook(cells: list[Cell]) -> dict[str, Any]:
    """Run the cells, and put them and what they show in a notebook."""
    outputs = run(cells)
    names = _names(cells)
    return {
        "cells": [
            _as_json(cell, name, shown)
            for cell, name, shown in zip(cells, names, outputs, strict=True)
        ],
        "metadata": {
            "kernelspec": {
                "display_name": "Python 3",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _names(cells: list[Cell]) -> list[str]:
    """Name cells by what they contain, so that others keep theirs if one changes."""
    names: list[str] = []
    for cell in cells:
        digest = hashlib.sha256(f"{cell.kind}\n{cell.source}".encode()).hexdigest()
        again = sum(name.startswith(digest[:12]) for name in names)
        names.append(digest[:12] + (f"-{again}" if again else ""))
    return names


def _as_json(cell: Cell, name: str, shown: list[dict[str, Any]]) -> dict[str, Any]:
    source = cell.source.splitlines(keepends=True)
    same = {"cell_type": cell.kind, "id": name, "metadata": {}}
    if cell.kind == "markdown":
        return {**same, "source": source}
    # A count would change in all cells below one that is added.
    return {**same, "execution_count": None, "outputs": shown, "source": source}


def run(cells: list[Cell]) -> list[list[dict[str, Any]]]:
    """Run code cells one after the other; return what each shows.

    Warnings are errors, unless a cell says which ones are expected from then on.
    """
    namespace: dict[str, Any] = {"__name__": "__notebook__"}
    outputs = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, cell in enumerate(cells):
            if cell.kind == "markdown" or cell.source == SETUP:
                outputs.append([])
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                value = _run_cell(cell.source, f"<cell {number}>", namespace)
            outputs.append(_outputs(printed.getvalue(), value))
    return outputs


def _run_cell(source: str, name: str, namespace: dict[str, Any]) -> object:
    """Run the statements; return the value of the last if it is an expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), name, "exec"), namespace)  # noqa: S102
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), name, "eval"), namespace)  # noqa: S307


def _outputs(printed: str, value: object) -> list[dict[str, Any]]:
    outputs: list[dict[str, Any]] = []
    if printed:
        text = printed.splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append(
            {
                "data": data | _rich(value),
                "execution_count": None,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def _rich(value: object) -> dict[str, Any]:
    """Return the rich outputs of an object."""
    made = {
        kind: getattr(value, method)()
        for method, kind in SHOWN.items()
        if hasattr(value, method)
    }
    return {
        kind: base64.b64encode(content).decode()
        if isinstance(content, bytes)
        else content.splitlines(keepends=True)
        for kind, content in made.items()
        if content is not None and len(content) <= LONGEST
    }


def stored_cells(path: Path) -> list[Cell]:
    """Return the cells of a notebook file, without what they showed."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return [Cell(c["cell_type"], "".join(c["source"])) for c in content["cells"]]


def is_up_to_date(script: Path) -> bool:
    """Tell whether the notebook of a script has the cells of the script."""
    made = NOTEBOOKS / f"{script.stem}.ipynb"
    return made.exists() and stored_cells(made) == cells_of(script)


def write(script: Path) -> Path:
    """Make the notebook of a script."""
    path = NOTEBOOKS / f"{script.stem}.ipynb"
    content = json.dumps(notebook(cells_of(script)), indent=1, ensure_ascii=False)
    path.write_text(content + "\n", encoding="utf-8")
    return path


def main(arguments: list[str] | None = None) -> int:
    """Write the notebooks, or check them: 1 if one is not up to date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("study", nargs="*", help="names of scripts; default all")
    options = parser.parse_args(arguments)
    known = {script.stem: script for script in studies()}
    if unknown := [name for name in options.study if name not in known]:
        parser.error(f"no study {unknown[0]!r}; there are {', '.join(known)}")
    scripts = [known[name] for name in options.study or known]
    if options.check:
        old = [script.stem for script in scripts if not is_up_to_date(script)]
        for name in old:
            print(f"not up to date: {name}.ipynb (make notebooks)")
        return int(bool(old))
    if importlib.util.find_spec("matplotlib") is None:
        parser.error("pictures need Matplotlib: pip install 'branchwise[plot]'")
    NOTEBOOKS.mkdir(exist_ok=True)
    sys.path.insert(0, str(FOLDER))
    for script in scripts:
        print(write(script).relative_to(FOLDER))
    return 0


if __name__ == "__main__":
    sys.exit(main())
